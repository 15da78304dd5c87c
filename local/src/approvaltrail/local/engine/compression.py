"""Bodies as clients compress them: gzip, deflate, lz4 frames, zstd."""

from __future__ import annotations

import gzip
import io
import sys
import zlib
from typing import TYPE_CHECKING, Protocol

import lz4.frame  # type: ignore[import-untyped]

from approvaltrail.local.engine import codes
from approvaltrail.local.engine.errors import QueryError

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

if TYPE_CHECKING:
    from collections.abc import Callable


class _Stream(Protocol):
    def read(self, size: int, /) -> bytes: ...


_OPEN: dict[str, Callable[[io.BytesIO], _Stream]] = {
    "gzip": lambda source: gzip.GzipFile(fileobj=source),
    "lz4": lz4.frame.LZ4FrameFile,  # clients send one frame after another
    "zstd": zstd.ZstdFile,
}
_COMPRESS: dict[str, Callable[[bytes], bytes]] = {
    "lz4": lz4.frame.compress,
    "zstd": zstd.compress,
    "gzip": lambda body: gzip.compress(body, 1),
    "deflate": lambda body: zlib.compress(body, 1),
}


def decompress(body: bytes, content_encoding: str, *, limit_bytes: int) -> bytes:
    """Undo a request's Content-Encoding. Raises QueryError for what cannot be, or is too much."""
    names = [name.strip().lower() for name in content_encoding.split(",")]
    for name in reversed([name for name in names if name not in ("", "identity")]):
        body = _decompress_once(body, name, limit_bytes)
    return body


def _decompress_once(body: bytes, name: str, limit_bytes: int) -> bytes:
    if not body:
        return body
    try:
        if name == "deflate":
            plain = zlib.decompressobj().decompress(body, limit_bytes + 1)
        elif name in _OPEN:
            plain = _OPEN[name](io.BytesIO(body)).read(limit_bytes + 1)
        else:
            raise QueryError.of(
                codes.UNKNOWN_COMPRESSION_METHOD, f"Unknown compression method: {name!r}."
            )
    except (OSError, EOFError, RuntimeError, zlib.error, zstd.ZstdError) as error:
        if isinstance(error, QueryError):
            raise
        raise QueryError.of(codes.CANNOT_DECOMPRESS, f"The body is not {name}.") from error
    if len(plain) > limit_bytes:
        raise too_large(limit_bytes)
    return plain


def compress(body: bytes, accept_encoding: str) -> tuple[bytes, str | None]:
    """Compress by the first method that the client offers and we have; name None for none."""
    for offer in accept_encoding.split(","):
        name = offer.partition(";")[0].strip().lower()
        if name in _COMPRESS:
            return _COMPRESS[name](body), name
    return body, None


def too_large(limit_bytes: int) -> QueryError:
    """Return the error for a body over the limit."""
    return QueryError.of(
        codes.TOO_MANY_BYTES,
        f"The request's body is larger than {limit_bytes} bytes: send it in several inserts.",
        status=413,
    )
