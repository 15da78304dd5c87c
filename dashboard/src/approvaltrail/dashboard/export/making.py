"""Makes an export: one ZIP file with the events and the manifest. Rows are streamed.

The same functions serve the pages and the command line. They take the viewer's scope as every query
does; whether the viewer may export at all is decided where the viewer is known.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import BinaryIO, Final, Literal

from approvaltrail.dashboard.export.encodings import Encoding, encoded
from approvaltrail.dashboard.export.labelled import LabelledReuses
from approvaltrail.dashboard.export.manifest import (
    MANIFEST,
    Data,
    Exporter,
    Manifest,
    Query,
    filter_of,
    product_version,
    statement_of,
)
from approvaltrail.dashboard.export.reading import DEFAULT_ROWS, Source
from approvaltrail.dashboard.export.rows import Row, row_of
from approvaltrail.schemas.token_shape import without_tokens
from approvaltrail.store.answers import EventFilter, ReuseFilter, TenantScope, TimeRange
from approvaltrail.store.queries import Queries

_BEGINNING: Final = datetime(1970, 1, 1, tzinfo=UTC)
_AHEAD: Final = timedelta(days=1)
"""Servers' clocks may be ahead; a trail reaches as far as that."""

Target = Path | BinaryIO
"""A file to make, which appears whole or not at all, or an open one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """Who exports, how, and how much at most."""

    exporter: Exporter
    encoding: Encoding = Encoding.NDJSON
    expected_producers: int | None = None
    """Completeness is judged against it."""
    maximum_rows: int = DEFAULT_ROWS
    now: datetime = field(default_factory=lambda: datetime.now(UTC))


def export_trail(
    queries: Queries, nonce: str, scope: TenantScope, target: Target, terms: Terms
) -> Manifest:
    """Export every event of a nonce that the scope may see, whenever it happened.

    Raises:
        TooManyRowsError: more events than the cap; the message names it.
        StoreMovedError: rows went away meanwhile; try again.
        StoreError: the store did not answer.
        ValueError: a nonce that cannot be one.
    """
    withheld = queries.trail(nonce, scope).withheld
    source = Source(
        queries=queries,
        time_range=TimeRange(_BEGINNING, terms.now + _AHEAD),
        scope=scope,
        wanted=EventFilter(nonce=nonce),
        maximum_rows=terms.maximum_rows,
    )
    query = Query(kind="trail", nonce=without_tokens(nonce), tenant=scope.tenant)
    return _export(source, query, target, terms, withheld)


def export_events(
    queries: Queries,
    time_range: TimeRange,
    scope: TenantScope,
    wanted: EventFilter | ReuseFilter | LabelledReuses | None,
    target: Target,
    terms: Terms,
) -> Manifest:
    """Export the events of a range that a filter lets through; of a filter of reuses, the reuses.

    With a label too: every reuse of the range is labelled, as the pages label it.

    Raises as `export_trail` does.
    """
    source = Source(
        queries=queries,
        time_range=time_range,
        scope=scope,
        wanted=wanted or EventFilter(),
        maximum_rows=terms.maximum_rows,
    )
    kind: Literal["events", "reuses"] = (
        "events" if isinstance(source.wanted, EventFilter) else "reuses"
    )
    query = Query(kind=kind, filter=filter_of(source.wanted), tenant=scope.tenant)
    return _export(source, query, target, terms, withheld=0)


def file_name(manifest: Manifest) -> str:
    """Return a name for the file: what it is and when it was made."""
    made = manifest.made_at.astimezone(UTC).strftime("%Y%m%dT%H%M%SZ")
    shown = (manifest.query.nonce or "")[:12]
    safe = "".join(one if one.isascii() and one.isalnum() else "-" for one in shown)
    return "-".join(filter(None, ("approvaltrail", manifest.query.kind, safe, made))) + ".zip"


def _export(source: Source, query: Query, target: Target, terms: Terms, withheld: int) -> Manifest:
    statement = statement_of(
        source.queries.completeness(source.scope, terms.now, terms.expected_producers)
    )
    with _opened(target) as file, zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        data = _write_data(archive, source, terms)
        manifest = Manifest(
            version=product_version(),
            made_at=terms.now,
            exporter=terms.exporter,
            query=query,
            start=source.time_range.start,
            end=source.time_range.end,
            data=data,
            completeness=statement,
            withheld=withheld,
        )
        archive.writestr(_entry(MANIFEST, terms.now), manifest.encoded())
    return manifest


def _write_data(archive: zipfile.ZipFile, source: Source, terms: Terms) -> Data:
    digest = hashlib.sha256()
    counted = _Counted(source)
    size = 0
    name = terms.encoding.file_name
    with archive.open(_entry(name, terms.now), "w", force_zip64=True) as file:
        for piece in encoded(counted, terms.encoding):
            digest.update(piece)
            size += len(piece)
            file.write(piece)
    return Data(
        file=name,
        encoding=terms.encoding,
        rows=counted.rows,
        bytes=size,
        sha256=digest.hexdigest(),
    )


class _Counted:
    """Rows that are counted as they pass."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self.rows = 0

    def __iter__(self) -> Iterator[Row]:
        for stored in self._source:
            self.rows += 1
            yield row_of(stored)


def _entry(name: str, now: datetime) -> zipfile.ZipInfo:
    entry = zipfile.ZipInfo(name, now.astimezone(UTC).timetuple()[:6])
    entry.compress_type = zipfile.ZIP_DEFLATED
    entry.external_attr = 0o600 << 16
    return entry


@contextmanager
def _opened(target: Target) -> Iterator[BinaryIO]:
    if not isinstance(target, Path):
        yield target
        return
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=".export-")  # readable by the owner
    half = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        half.replace(target)
    finally:
        half.unlink(missing_ok=True)
