"""The tables, one numbered SQL file a step, applied in order and recorded with a checksum.

Every statement may run twice (`IF NOT EXISTS`), since a run that ended halfway is repeated from
that file's start. No file names a database: the tables live in the DSN's.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from importlib import resources
from typing import TYPE_CHECKING, Final

from approvaltrail.store.errors import MigrationError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from approvaltrail.store.connection import Store

_FILE_NAME: Final = re.compile(r"^\d{4}_[a-z0-9_]+\.sql$")
_RECORD: Final = """
CREATE TABLE IF NOT EXISTS migrations (
  name String,
  checksum String,
  applied_at DateTime64(3, 'UTC') DEFAULT now64(3)
) ENGINE = ReplacingMergeTree(applied_at) ORDER BY name
"""


@dataclass(frozen=True, slots=True)
class Migration:
    """One step: its file's name and text."""

    name: str
    text: str

    @property
    def checksum(self) -> str:
        """SHA-256 of the text, in hex."""
        return hashlib.sha256(self.text.encode()).hexdigest()

    @property
    def statements(self) -> list[str]:
        """The statements, in order."""
        code = "\n".join(line for line in self.text.split("\n") if not line.startswith("--"))
        return [part.strip() for part in code.split(";\n") if part.strip()]


def migrations() -> list[Migration]:
    """Return all steps that this version knows, in order."""
    files = [file for file in resources.files(__package__).iterdir() if _FILE_NAME.match(file.name)]
    return [
        Migration(file.name, file.read_text("utf-8"))
        for file in sorted(files, key=lambda file: file.name)
    ]


def pending(store: Store, known: Sequence[Migration] | None = None) -> list[str]:
    """Return the names of the steps that are not applied yet.

    Raises:
        MigrationError: an applied file has changed since, or the store is ahead of this version.
    """
    return [step.name for step in _outstanding(store, known)]


def migrate(store: Store, known: Sequence[Migration] | None = None) -> list[str]:
    """Apply what is pending, in order, and return the names of what was applied now.

    Raises:
        MigrationError: see `pending`; nothing was applied.
    """
    steps = _outstanding(store, known)
    store.command(_RECORD)
    for step in steps:
        for statement in step.statements:
            store.command(statement)
        store.command(
            "INSERT INTO migrations (name, checksum) SELECT {name:String}, {checksum:String}",
            parameters={"name": step.name, "checksum": step.checksum},
        )
    return [step.name for step in steps]


def check_migrated(store: Store) -> None:
    """Raise MigrationError unless every step is applied and unchanged."""
    names = pending(store)
    if names:
        raise MigrationError(
            f"the store lacks {', '.join(names)}: run `approvaltrail migrate` with a user who may "
            "create tables"
        )


def _outstanding(store: Store, known: Sequence[Migration] | None) -> list[Migration]:
    steps = list(known if known is not None else migrations())
    applied = _applied(store)
    for step in steps:
        if applied.get(step.name, step.checksum) != step.checksum:
            raise MigrationError(
                f"{step.name} was applied and has changed since: put the applied text back and "
                "write the change as a new file"
            )
    unknown = sorted(set(applied) - {step.name for step in steps})
    if unknown:
        raise MigrationError(
            f"the store has {', '.join(unknown)}, which this version does not know: "
            "run the version that made it, or a newer one"
        )
    return [step for step in steps if step.name not in applied]


def _applied(store: Store) -> dict[str, str]:
    # `EXISTS TABLE` reads the catalogue that every user may see
    if not store.query("EXISTS TABLE migrations").scalar():
        return {}
    rows = store.query("SELECT name, argMin(checksum, applied_at) FROM migrations GROUP BY name")
    return dict(rows.rows)
