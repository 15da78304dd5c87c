"""The data folder: what lies where, who holds it, and where a running `up` is reached."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import stat
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Final

from pydantic import BaseModel, ConfigDict, ValidationError

from approvaltrail.local.errors import AlreadyRunningError, DataFolderError
from approvaltrail.store.connection import CHDB_PATTERNS

_TRIES: Final = 5
_BETWEEN_TRIES_SECONDS: Final = 0.05
_STARTING_SECONDS: Final = 60.0
"""A lock file this young may be one that somebody is just taking."""


class RunFile(BaseModel):
    """Where the parts of a running `up` are reached; with passwords, so for its owner only."""

    model_config = ConfigDict(frozen=True, extra="ignore", hide_input_in_errors=True)

    pid: int
    started_at: datetime
    command: str = "up"
    kafka_bootstrap_servers: str | None = None
    clickhouse_dsn: str | None = None
    clickhouse_reader_dsn: str | None = None
    topic_prefix: str = ""
    dashboard_url: str | None = None
    supervisor_url: str | None = None
    sink_health_url: str | None = None


def _locked(descriptor: int) -> bool:
    """Take the lock; try a little longer, as someone may just be looking whether it is held."""
    for _ in range(_TRIES):
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(_BETWEEN_TRIES_SECONDS)
        else:
            return True
    return False


@contextlib.contextmanager
def temporary_folder(prefix: str) -> Iterator[Path]:
    """Give a folder that goes when the block ends, and clear away those that killed runs left."""
    for left in Path(tempfile.gettempdir()).glob(f"{prefix}*"):
        if _is_left(left):
            shutil.rmtree(left, ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix=prefix, ignore_cleanup_errors=True) as name:
        yield Path(name)


def _is_left(folder: Path) -> bool:
    """Whether an `up` of ours once ran on the folder, and none holds it or is about to."""
    try:
        status, lock = folder.lstat(), DataFolder(folder).lock_file.lstat()
    except OSError:
        return False
    ours = stat.S_ISDIR(status.st_mode) and status.st_uid == os.getuid()
    old = time.time() - lock.st_mtime > _STARTING_SECONDS
    return ours and old and not DataFolder(folder).is_held()


@dataclass(frozen=True, slots=True)
class DataFolder:
    """One folder for all state of one `up`."""

    root: Path

    @property
    def logs(self) -> Path:
        """One `<part>.log` for every part."""
        return self.root / "logs"

    @property
    def broker(self) -> Path:
        """Kafka's files."""
        return self.root / "broker"

    @property
    def engine(self) -> Path:
        """The ClickHouse engine's files."""
        return self.root / "engine"

    @property
    def journals(self) -> Path:
        """Journals of producers that run beside (the demo's, the smoke run's)."""
        return self.root / "journals"

    @property
    def run_file(self) -> Path:
        """Addresses of the running `up`."""
        return self.root / "up.json"

    @property
    def lock_file(self) -> Path:
        """Held by the running `up`."""
        return self.root / "up.lock"

    def log(self, part: str) -> Path:
        """Return the log of one part."""
        return self.logs / f"{part}.log"

    def create(self) -> None:
        """Make the folder, readable by its owner only.

        Raises:
            DataFolderError: it cannot be made, or the engine could not find its files in it.
        """
        if CHDB_PATTERNS & set(str(self.root.resolve())):
            raise DataFolderError(
                f"the data folder {self.root.resolve()} has one of * ? {{ }} in its path, which "
                "the engine takes for a pattern: give another with --data or APPROVALTRAIL_DATA"
            )
        try:
            self.root.mkdir(parents=True, exist_ok=True, mode=0o700)
            self.logs.mkdir(exist_ok=True, mode=0o700)
        except OSError as error:
            raise DataFolderError(
                f"cannot make the data folder {self.root} ({error.strerror}): "
                "give another with --data or APPROVALTRAIL_DATA"
            ) from error

    @contextlib.contextmanager
    def hold(self) -> Iterator[None]:
        """Hold the folder alone; the kernel lets go of it however the process ends.

        Raises:
            AlreadyRunningError: another `up` runs on it.
            DataFolderError: the lock file cannot be opened.
        """
        self.create()
        try:
            descriptor = os.open(self.lock_file, os.O_RDWR | os.O_CREAT, 0o600)
        except OSError as error:
            raise DataFolderError(
                f"cannot open {self.lock_file} ({error.strerror}): "
                "make the data folder yours or give another with --data"
            ) from error
        try:
            if not _locked(descriptor):
                raise self._already_running()
            self.run_file.unlink(missing_ok=True)
            yield
            self.run_file.unlink(missing_ok=True)
        finally:
            os.close(descriptor)

    def publish(self, run: RunFile) -> None:
        """Write the run file in one step, readable by its owner only."""
        descriptor, name = tempfile.mkstemp(dir=self.root, prefix=".up-")
        try:
            with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                file.write(run.model_dump_json(indent=2))
            Path(name).replace(self.run_file)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise

    def running(self) -> RunFile | None:
        """Return where the running `up` is reached, or None when none runs here."""
        if not self.is_held():
            return None
        with contextlib.suppress(OSError, ValidationError):
            return RunFile.model_validate_json(self.run_file.read_text("utf-8"))
        return None

    def is_held(self) -> bool:
        """Whether an `up` runs on the folder."""
        try:
            with self.lock_file.open("r+") as file:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        except OSError:
            return False
        return False

    def _already_running(self) -> AlreadyRunningError:
        run = self.running()
        if run is None:
            return AlreadyRunningError(
                f"another `up` is just starting on {self.root}: wait for it, "
                "or give another folder with --data"
            )
        return AlreadyRunningError(
            f"`{run.command}` already runs on {self.root} as process {run.pid}; its dashboard is "
            f"{run.dashboard_url or 'not started yet'}: use it, stop it with Ctrl-C there, "
            "or give another folder with --data"
        )
