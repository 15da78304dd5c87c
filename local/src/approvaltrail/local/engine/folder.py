"""The engine's folder: one process at a time, private, with the address and passwords in it.

engine.json   URL, users and passwords (mode 0600), written in one step
engine.lock   held while an engine runs
store/        chDB's own files
incoming/     rows of inserts that run now (mode 0700), swept at each start
"""

from __future__ import annotations

import fcntl
import json
import os
import secrets
import shutil
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING

from approvaltrail.local.engine.errors import EngineError, EngineFolderInUseError

if TYPE_CHECKING:
    from pathlib import Path

OWNER = "approvaltrail"
READER = "reader"
_PASSWORD_BYTES = 24


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineAddress:
    """Where the engine is reached, by the user who may write and by the one who may only read."""

    url: str
    user: str
    password: str = field(repr=False)
    reader_user: str
    reader_password: str = field(repr=False)
    pid: int

    @property
    def port(self) -> int:
        """The port on the loopback address."""
        return int(self.url.rpartition(":")[2])


def read_address(data: Path) -> EngineAddress | None:
    """Return what the last engine on this folder has written, None if there was none."""
    try:
        return EngineAddress(**json.loads((data / "engine.json").read_text()))
    except FileNotFoundError:
        return None
    except (ValueError, TypeError) as error:
        raise EngineError(
            f"{data / 'engine.json'} is not what an engine writes: "
            "delete it, and the next start makes a new one with new passwords"
        ) from error


class EngineFolder:
    """The folder, held by this process until it ends."""

    def __init__(self, data: Path) -> None:
        data.mkdir(parents=True, exist_ok=True)
        data.chmod(0o700)
        self._lock = (data / "engine.lock").open("w")
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            self._lock.close()
            raise EngineFolderInUseError(
                f"another engine runs on {data}: stop it, or start this one on another folder"
            ) from error
        self.data = data.resolve()
        self.store = self.data / "store"
        self.incoming = self.data / "incoming"
        shutil.rmtree(self.incoming, ignore_errors=True)
        self.incoming.mkdir(mode=0o700)

    def write_address(self, url: str) -> EngineAddress:
        """Write `engine.json`; passwords stay what they were, so that clients outlive a restart."""
        known = read_address(self.data)
        address = EngineAddress(
            url=url,
            user=OWNER,
            password=known.password if known else secrets.token_urlsafe(_PASSWORD_BYTES),
            reader_user=READER,
            reader_password=known.reader_password
            if known
            else secrets.token_urlsafe(_PASSWORD_BYTES),
            pid=os.getpid(),
        )
        temporary = self.data / f".engine-{address.pid}.tmp"
        temporary.unlink(missing_ok=True)
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w") as file:
            json.dump(asdict(address), file)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(self.data / "engine.json")
        return address
