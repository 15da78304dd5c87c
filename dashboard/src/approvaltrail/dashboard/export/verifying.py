"""Checks an export against its manifest, from the values up. Never says "verified" of nothing.

What it proves: that events and manifest belong together and nothing in the events was changed
since. What the manifest says beside that (who, when, how complete) it only repeats. Who could
rewrite both could forge both; against that only what is kept elsewhere helps: the manifest's
SHA-256, which was shown when the export was made, or the store itself (`against`).
"""

from __future__ import annotations

import hashlib
import lzma
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Final

from pydantic import TypeAdapter, ValidationError

from approvaltrail.dashboard.errors import ExportError
from approvaltrail.dashboard.export.encodings import decoded
from approvaltrail.dashboard.export.labelled import LabelledReuses
from approvaltrail.dashboard.export.manifest import MANIFEST, Manifest, Query
from approvaltrail.dashboard.export.reading import Source
from approvaltrail.dashboard.export.rows import COLUMNS, HASH, digest, instant, row_of
from approvaltrail.store.answers import EventFilter, ReuseFilter, TenantScope, TimeRange
from approvaltrail.store.errors import StoreError
from approvaltrail.store.queries import Queries

_MANIFEST_BYTES: Final = 1_000_000
_LINE_BYTES: Final = 1_000_000
"""No event is that long: a longer line is not read to its end."""

_UNREADABLE: Final = (
    OSError,
    EOFError,
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
    NotImplementedError,
    RuntimeError,
)
"""What reading a damaged archive raises."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verification:
    """What came of checking an export."""

    verified: bool
    events: int
    """How many events were read."""
    reason: str | None = None
    manifest: Manifest | None = field(default=None, repr=False)
    manifest_sha256: str | None = None
    """Of the manifest's bytes; None where there is none to read."""

    def __str__(self) -> str:
        """Say it in a line: `verified: 12 events`, or `not verified: …`."""
        events = f"{self.events:,} event{'' if self.events == 1 else 's'}"
        if self.verified:
            return f"verified: {events}"
        return f"not verified: {self.reason} ({events} read)"


class _NotVerifiedError(Exception):
    """Ends a check with its reason."""


def verify_export(
    path: Path, against: Queries | None = None, manifest_sha256: str | None = None
) -> Verification:
    """Check an export: a ZIP file, or the folder into which one was unpacked.

    `against` asks the store for the same events and compares each; `manifest_sha256` is what the
    manifest's hash has to be. Never raises for what a file holds; everything that cannot be checked
    is "not verified" with the reason.
    """
    check = _Check(path, manifest_sha256)
    reason: str | None = None
    try:
        check.run(against)
    except _NotVerifiedError as found:
        reason = str(found)
    except _UNREADABLE as error:
        reason = f"the export cannot be read ({type(error).__name__})"
    except (StoreError, ExportError) as error:
        reason = f"the store cannot be compared: {error}"
    return Verification(
        verified=reason is None,
        events=check.events,
        reason=reason,
        manifest=check.manifest,
        manifest_sha256=check.manifest_sha256,
    )


class _Check:
    def __init__(self, path: Path, expected: str | None) -> None:
        self._path = path
        self._expected = expected
        self.manifest_sha256: str | None = None
        self.events = 0
        self.manifest: Manifest | None = None
        self._hashes: dict[str, str] = {}
        """Of each event read, its row's hash."""

    def run(self, against: Queries | None) -> None:
        if self._path.exists() and not (self._path.is_dir() or self._path.is_file()):
            raise _NotVerifiedError("it is neither a file nor a folder")
        self.manifest = manifest = self._read_manifest()
        self._check_members({MANIFEST, manifest.data.file})
        if manifest.data.columns != COLUMNS:
            raise _NotVerifiedError("its columns are not those of an export")
        with self._open(manifest.data.file) as file:
            bytes_read = _Hashed(file, manifest.data.bytes)
            self._read_rows(bytes_read, manifest)
        if bytes_read.size != manifest.data.bytes:
            raise _NotVerifiedError(
                f"the data has another length than the manifest's {manifest.data.bytes:,} bytes"
            )
        if bytes_read.hexdigest() != manifest.data.sha256:
            raise _NotVerifiedError("the data's SHA-256 is not the manifest's")
        if self.events != manifest.data.rows:
            raise _NotVerifiedError(f"the manifest speaks of {manifest.data.rows:,} events")
        if not self.events:
            raise _NotVerifiedError("it holds no events, so nothing could be checked")
        if against is not None:
            self._compare(against, manifest)

    def _read_manifest(self) -> Manifest:
        try:
            with self._open(MANIFEST) as file:
                content = file.read(_MANIFEST_BYTES)
        except (KeyError, FileNotFoundError):
            if not self._path.exists():
                raise _NotVerifiedError("there is no such file") from None
            raise _NotVerifiedError(f"it has no {MANIFEST}") from None
        self.manifest_sha256 = hashlib.sha256(content).hexdigest()
        if self._expected is not None and self._expected.lower() != self.manifest_sha256:
            raise _NotVerifiedError(
                f"the manifest is another: its SHA-256 is {self.manifest_sha256}"
            )
        try:
            return Manifest.model_validate_json(content)
        except ValidationError as error:
            where = ".".join(map(str, error.errors(include_input=False)[0]["loc"])) or "its JSON"
            raise _NotVerifiedError(f"the manifest cannot be read at {where}") from None

    def _open(self, name: str) -> IO[bytes]:
        if self._path.is_dir():
            return (self._path / name).open("rb")
        try:
            return zipfile.Path(self._path, name).open("rb")
        except zipfile.BadZipFile:
            raise _NotVerifiedError("it is no ZIP file, or a broken one") from None

    def _check_members(self, known: set[str]) -> None:
        """Refuse a second member of one name, or a file beside the two: nobody has checked it."""
        if self._path.is_dir():
            return
        with zipfile.ZipFile(self._path) as archive:
            names = archive.namelist()
        if len(names) != len(set(names)):
            raise _NotVerifiedError("it holds two files of one name")
        if not known.issuperset(names):
            raise _NotVerifiedError("it holds more files than the events and the manifest")

    def _read_rows(self, lines: Iterator[bytes], manifest: Manifest) -> None:
        rows = decoded(lines, manifest.data.encoding)
        while True:
            try:
                row = next(rows, None)
            except (ValueError, RecursionError):
                raise _NotVerifiedError(
                    f"event {self.events + 1} of the file cannot be read"
                ) from None
            if row is None:
                return
            self.events += 1
            self._check_row(row, manifest)

    def _check_row(self, row: dict[str, object], manifest: Manifest) -> None:
        name = f"event {row.get('event_id')} (number {self.events} of the file)"
        if set(row) != set(manifest.data.columns):
            raise _NotVerifiedError(f"{name} has other fields than the manifest lists")
        if digest(row) != row[HASH]:
            raise _NotVerifiedError(f"{name} was changed: its values do not have its hash")
        if not instant(manifest.start) <= str(row["occurred_at"]) < instant(manifest.end):
            raise _NotVerifiedError(f"{name} lies outside of the range")
        if manifest.query.tenant not in {None, row["tenant"]}:
            raise _NotVerifiedError(f"{name} is of another tenant than the export")
        event_id = str(row["event_id"])
        if event_id in self._hashes:
            raise _NotVerifiedError(f"{name} stands in it twice")
        self._hashes[event_id] = str(row[HASH])

    def _compare(self, queries: Queries, manifest: Manifest) -> None:
        for stored in _source_of(queries, manifest):
            row = row_of(stored)
            before = self._hashes.pop(row["event_id"], None)
            later = stored.stored_at > manifest.made_at
            if before is None and not later:
                raise _NotVerifiedError(f"the store holds event {row['event_id']}, the export not")
            if before not in {None, row[HASH]}:
                raise _NotVerifiedError(f"event {row['event_id']} is another in the store")
        if self._hashes:
            gone = next(iter(self._hashes))
            raise _NotVerifiedError(f"event {gone} is no longer in the store")


class _Hashed(Iterator[bytes]):
    """The lines of a file, hashed as they pass; stops beyond the length that it should have."""

    def __init__(self, file: IO[bytes], expected: int) -> None:
        self._file = file
        self._expected = expected
        self._digest = hashlib.sha256()
        self.size = 0

    def __next__(self) -> bytes:
        line = self._file.readline(_LINE_BYTES)
        self.size += len(line)
        if not line:
            raise StopIteration
        if self.size > self._expected:
            raise _NotVerifiedError(
                f"the data is longer than the manifest's {self._expected:,} bytes"
            )
        self._digest.update(line)
        return line

    def hexdigest(self) -> str:
        return self._digest.hexdigest()


def _source_of(queries: Queries, manifest: Manifest) -> Source:
    asked = manifest.query
    try:
        wanted = _wanted(asked)
    except ValueError:  # pydantic's ValidationError is one
        raise _NotVerifiedError("the manifest's filter cannot be read") from None
    return Source(
        queries=queries,
        time_range=TimeRange(manifest.start, manifest.end),
        scope=TenantScope(asked.tenant),
        wanted=wanted,
        maximum_rows=10 * max(manifest.data.rows, 1_000),
    )


def _wanted(asked: Query) -> EventFilter | ReuseFilter | LabelledReuses:
    if asked.kind == "trail":
        return EventFilter(nonce=asked.nonce)
    if asked.kind == "events":
        return TypeAdapter(EventFilter).validate_python(asked.filter)
    if "label" in asked.filter:
        return LabelledReuses.of(asked.filter)
    return TypeAdapter(ReuseFilter).validate_python(asked.filter)
