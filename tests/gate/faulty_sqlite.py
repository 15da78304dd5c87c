"""SQLite connections that fail, or die, where a test says so."""

from __future__ import annotations

import sqlite3
from enum import Enum
from typing import Any


class Crash(BaseException):
    """The process ends here: nothing after it runs."""


class AtClaim(Enum):
    """What happens to the commit of a claim."""

    PASSES = "passes"
    CRASH_BEFORE = "the process dies before it"
    CRASH_AFTER = "the process dies after it"
    LOST_BEFORE = "an error before it, and it is asked again"
    LOST_AFTER = "an error after it, and it is asked again"
    DOWN_AFTER = "an error after it, and the store is gone"


class Faults:
    """What the connections of one store do next."""

    def __init__(self) -> None:
        self.at_claim = AtClaim.PASSES
        self.down = False

    def connection_class(self) -> type[sqlite3.Connection]:
        """Return the class of connections that these faults rule."""
        return type("Ruled", (_Ruled,), {"faults": self})

    def before_commit(self) -> None:
        """Fail before the commit of a claim, if so told."""
        if self.at_claim is AtClaim.CRASH_BEFORE:
            raise Crash
        if self.at_claim is AtClaim.LOST_BEFORE:
            self._lose()

    def after_commit(self) -> None:
        """Fail after it."""
        if self.at_claim is AtClaim.CRASH_AFTER:
            raise Crash
        if self.at_claim is AtClaim.DOWN_AFTER:
            self.down = True
        if self.at_claim in {AtClaim.LOST_AFTER, AtClaim.DOWN_AFTER}:
            self._lose()

    def _lose(self) -> None:
        self.at_claim = AtClaim.PASSES
        raise failure(sqlite3.SQLITE_IOERR)


def failure(code: int) -> sqlite3.OperationalError:
    """Make an error with this code."""
    error = sqlite3.OperationalError("made up")
    error.sqlite_errorcode = code
    return error


def always_failing(code: int) -> type[sqlite3.Connection]:
    """Return a class of connections on which every claim fails with this code."""

    class Failing(sqlite3.Connection):
        def execute(self, sql: str, *arguments: Any) -> sqlite3.Cursor:  # type: ignore[override]
            """Fail at a claim's INSERT."""
            if sql.startswith("INSERT INTO spent_nonces"):
                raise failure(code)
            return super().execute(sql, *arguments)

    return Failing


class _Ruled(sqlite3.Connection):
    faults: Faults

    def __init__(self, *arguments: Any, **named: Any) -> None:
        if self.faults.down:
            raise failure(sqlite3.SQLITE_CANTOPEN)
        super().__init__(*arguments, **named)
        self._claiming = False

    def execute(self, sql: str, *arguments: Any) -> sqlite3.Cursor:  # type: ignore[override]
        """Execute, with the faults of a claim's commit; nothing works on a store that is gone."""
        if self.faults.down:
            raise failure(sqlite3.SQLITE_CANTOPEN)
        if sql != "COMMIT" or not self._claiming:
            self._claiming = self._claiming or sql.startswith("INSERT INTO spent_nonces")
            return super().execute(sql, *arguments)
        self._claiming = False
        self.faults.before_commit()
        cursor = super().execute(sql, *arguments)
        self.faults.after_commit()
        return cursor
