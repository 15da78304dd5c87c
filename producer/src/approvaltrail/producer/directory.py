"""The directory for journals: private, durable, and one file a journal.

A journal is `SERVICE.PRODUCER_ID.journal`; beside it stand its lock (`.lock`) and SQLite's own
files (`-wal`, `-shm`). A damaged journal is renamed to `….damaged-TIME`.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import re
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from approvaltrail.producer.errors import JournalDirectoryError
from approvaltrail.schemas.identity import UUID_PATTERN

if TYPE_CHECKING:
    from collections.abc import Iterable

SUFFIX: Final = ".journal"
SALVAGED: Final = ".salvaged"
_PRIVATE_DIRECTORY: Final = 0o700
_PRIVATE_FILE: Final = 0o600
_SLUG_LONGEST: Final = 60
_NAME: Final = re.compile(rf"^(?P<slug>.+)\.(?P<id>{UUID_PATTERN.strip('^$')}){re.escape(SUFFIX)}$")
_NOT_DURABLE: Final = frozenset(
    {"tmpfs", "ramfs", "devtmpfs"}
    | {"nfs", "nfs4", "cifs", "smb3", "smbfs", "ncpfs", "9p", "afs", "lustre", "beegfs"}
    | {"ceph", "glusterfs", "ocfs2", "gfs2", "fuse.glusterfs", "fuse.sshfs", "fuse.s3fs"}
)
"""Memory loses events with the machine; network file systems may lie about locks and fsync."""
_OCTAL: Final = re.compile(r"\\([0-7]{3})")


def service_slug(service: str) -> str:
    """Return the service's name as part of a file name; unequal names stay unequal."""
    slug = re.sub(r"[^A-Za-z0-9_-]", "_", service)[:_SLUG_LONGEST]
    if slug == service:
        return slug
    return f"{slug}-{hashlib.sha256(service.encode()).hexdigest()[:8]}"


@dataclass(frozen=True, slots=True, kw_only=True)
class JournalPath:
    """Where a journal and what belongs to it stand."""

    file: Path
    producer_id: str

    @property
    def lock(self) -> Path:
        """The file whose lock says that a process holds the journal."""
        return self.file.with_name(f"{self.file.name}.lock")

    @property
    def wal(self) -> Path:
        """SQLite's write-ahead log: it holds events that are not in the file yet."""
        return self.file.with_name(f"{self.file.name}-wal")

    @property
    def shm(self) -> Path:
        """SQLite's shared index of the write-ahead log."""
        return self.file.with_name(f"{self.file.name}-shm")

    @property
    def salvaged(self) -> Path:
        """What was saved of a damaged journal, before it takes the journal's place."""
        return self.file.with_name(f"{self.file.name}{SALVAGED}")

    def set_aside(self) -> Path:
        """Rename the journal and its log out of the way; return the file's new name."""
        stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
        aside = self.file.with_name(f"{self.file.name}.damaged-{stamp}-{os.getpid()}")
        self.file.rename(aside)
        if self.wal.exists():
            self.wal.rename(aside.with_name(f"{aside.name}-wal"))
        self.shm.unlink(missing_ok=True)  # an index, made anew from the log
        sync_directory(self.file.parent)
        return aside

    def remove(self) -> None:
        """Remove a finished journal and what belongs to it, the lock last."""
        for file in (self.file, self.wal, self.shm, self.lock):
            file.unlink(missing_ok=True)


class JournalDirectory:
    """Finds, names and creates journals in one directory."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._made: list[Path] = []

    def prepare(self, allowed_file_systems: frozenset[str]) -> None:
        """Create the directory, private to this user, and refuse one that may lose events.

        Raises:
            JournalDirectoryError: it cannot be created or written, or its file system is memory
                or a network and not allowed by name.
        """
        # before anything is made: a refusal leaves no trace
        refuse_undurable(self.path, file_system_of(self.path), allowed_file_systems)
        try:
            self._make()
        except OSError as error:
            self.unmake()
            raise JournalDirectoryError(
                f"the journal directory {self.path} cannot be used ({error.strerror}): create it, "
                "writable for this user, or set APPROVALTRAIL_JOURNAL_DIR"
            ) from error
        if not os.access(self.path, os.R_OK | os.W_OK | os.X_OK):
            self.unmake()
            raise JournalDirectoryError(
                f"the journal directory {self.path} is not writable for this user: mend its "
                "permissions or set APPROVALTRAIL_JOURNAL_DIR"
            )

    def _make(self) -> None:
        missing = [path for path in (self.path, *self.path.parents) if not path.exists()]
        for path in reversed(missing):
            # an existing directory keeps its mode: it may be shared; the files in it are private
            path.mkdir(mode=_PRIVATE_DIRECTORY, exist_ok=True)
            self._made.append(path)
            sync_directory(path.parent)
        if not self.path.is_dir():
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))

    def unmake(self) -> None:
        """Remove the directories that `prepare` has made, where nothing is in them."""
        while self._made:
            with contextlib.suppress(OSError):
                self._made.pop().rmdir()

    def journals(self, service: str) -> list[JournalPath]:
        """Return the service's journals, oldest first."""
        slug = service_slug(service)
        return [found for found_slug, found in self._all() if found_slug == slug]

    def every_journal(self) -> list[JournalPath]:
        """Return the journals of all services, oldest first within each."""
        return [found for _, found in self._all()]

    def new_path(self, service: str, producer_id: str) -> JournalPath:
        """Name a journal that does not exist yet."""
        name = f"{service_slug(service)}.{producer_id}{SUFFIX}"
        return JournalPath(file=self.path / name, producer_id=producer_id)

    def finish_salvages(self) -> None:
        """Move salvaged journals into place where a crash came between the two renames."""
        for salvaged in self.path.glob(f"*{SUFFIX}{SALVAGED}"):
            place = salvaged.with_name(salvaged.name.removesuffix(SALVAGED))
            if place.exists():
                salvaged.unlink()  # made from that file, and perhaps not whole: it is made again
            else:
                salvaged.rename(place)

    def _all(self) -> Iterable[tuple[str, JournalPath]]:
        for file in sorted(self.path.iterdir()):
            if match := _NAME.match(file.name):
                yield match["slug"], JournalPath(file=file, producer_id=match["id"])


def create_private(file: Path) -> None:
    """Create an empty file that only this user may read and write, if it does not exist."""
    os.close(os.open(file, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, _PRIVATE_FILE))


def sync_directory(path: Path) -> None:
    """Make created and renamed files outlive a power cut."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def refuse_undurable(path: Path, file_system: str | None, allowed: frozenset[str]) -> None:
    """Raise JournalDirectoryError for a file system that may lose events, unless it is allowed."""
    if file_system in _NOT_DURABLE and file_system not in allowed:
        raise JournalDirectoryError(
            f"the journal directory {path} is on {file_system}, which may lose recorded events: "
            "set APPROVALTRAIL_JOURNAL_DIR to a local disk, or accept the risk with "
            f"APPROVALTRAIL_JOURNAL_ALLOWED_FILE_SYSTEMS={file_system}"
        )


def file_system_of(path: Path, mounts: Path = Path("/proc/self/mountinfo")) -> str | None:
    """Return the type of the file system that holds a path, or None where it cannot be told.

    Reads mountinfo, see proc(5); the longest mount point wins, the later of two equal ones.
    """
    try:
        lines = mounts.read_text("utf-8", "surrogateescape").splitlines()
    except OSError:
        return None
    target = path.resolve()
    best: tuple[int, str | None] = (-1, None)
    for line in lines:
        fields = line.split(" ")
        point = Path(_OCTAL.sub(lambda match: chr(int(match[1], 8)), fields[4]))
        depth = len(point.parts)
        if target.is_relative_to(point) and depth >= best[0]:
            best = (depth, fields[fields.index("-") + 1])
    return best[1]
