"""ClickHouse's HTTP interface, the answer's side."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from starlette.responses import Response, StreamingResponse

from approvaltrail.local.engine.compression import compress

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from starlette.requests import Request

    from approvaltrail.local.engine.errors import QueryError
    from approvaltrail.local.engine.executor import Answer

_PIECE_BYTES = 1 << 16


class Answers:
    """Builds responses as a server of this version and time zone would."""

    def __init__(self, version: str, timezone: str) -> None:
        self._version = version
        self._timezone = timezone

    def result(self, request: Request, query_id: str, answer: Answer) -> Response:
        """Return a statement's result."""
        headers = self._headers(query_id)
        headers["X-ClickHouse-Summary"] = json.dumps(_summary(answer))
        if answer.output_format:
            headers["X-ClickHouse-Format"] = answer.output_format
        body, encoding = compress(answer.body, _accepted(request))
        if encoding:
            headers["Content-Encoding"] = encoding
        if len(body) <= _PIECE_BYTES:
            return Response(body, headers=headers)
        return StreamingResponse(_pieces(body), headers=headers)

    def failure(self, request: Request, query_id: str, error: QueryError) -> Response:
        """Return an error with ClickHouse's code in the header that clients read."""
        headers = self._headers(query_id)
        headers["X-ClickHouse-Exception-Code"] = str(error.code)
        text = f"{error.text} (version {self._version} (official build))\n"
        body, encoding = compress(text.encode("utf-8", "replace"), _accepted(request))
        if encoding:
            headers["Content-Encoding"] = encoding
        return Response(body, error.status, headers, media_type="text/plain")

    def _headers(self, query_id: str) -> dict[str, str]:
        return {
            "X-ClickHouse-Query-Id": query_id,
            "X-ClickHouse-Server-Display-Name": "approvaltrail",
            "X-ClickHouse-Timezone": self._timezone,
        }


def _accepted(request: Request) -> str:
    # As on a server, Accept-Encoding alone does not switch compression on.
    if request.query_params.get("enable_http_compression") != "1":
        return ""
    return request.headers.get("accept-encoding", "")


def _summary(answer: Answer) -> dict[str, str]:
    values = {
        "read_rows": answer.read_rows,
        "read_bytes": answer.read_bytes,
        "written_rows": answer.written_rows,
        "written_bytes": answer.written_bytes,
        "total_rows_to_read": 0,
        "result_rows": answer.written_rows,
        "result_bytes": len(answer.body),
        "elapsed_ns": int(answer.elapsed_seconds * 1e9),
    }
    return {name: str(value) for name, value in values.items()}


async def _pieces(body: bytes) -> AsyncIterator[bytes]:
    for start in range(0, len(body), _PIECE_BYTES):
        yield body[start : start + _PIECE_BYTES]
