"""What every command that answers has in common: the store, whose eyes it looks with, the range."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import typer

from approvaltrail.local.cli.times import range_of
from approvaltrail.local.cli.where import find
from approvaltrail.store.answers import Completeness, TenantScope, TimeRange
from approvaltrail.store.queries import Queries


@dataclass(frozen=True, slots=True)
class Asking:
    """An open store, asked for one viewer at one moment."""

    queries: Queries
    scope: TenantScope
    now: datetime

    def completeness(self) -> Completeness:
        """Return whether what is stored is all there is."""
        return self.queries.completeness(self.scope, self.now)


@contextlib.contextmanager
def asking(data: Path | None, clickhouse: str | None, tenant: str | None) -> Iterator[Asking]:
    """Open the store to ask; closes it again."""
    store = find(data=data, clickhouse=clickhouse).open_reader()
    try:
        scope = TenantScope.only(tenant) if tenant else TenantScope.everything()
        yield Asking(Queries(store), scope, datetime.now(UTC))
    finally:
        store.close()


def span(last: str | None, since: str | None, until: str | None) -> TimeRange:
    """Return the range that the options name.

    Raises:
        typer.BadParameter: they name none.
    """
    try:
        return range_of(last=last, since=since, until=until, now=datetime.now(UTC))
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None


def fields_of(answer: object) -> dict[str, Any]:
    """Return an answer's fields by name, to be put beside others in one JSON object."""
    return {one.name: getattr(answer, one.name) for one in fields(answer)}  # type: ignore[arg-type]


def given_folder(data: Path | None) -> str:
    """Return the option that a hint has to repeat so that it finds the same store."""
    return "" if data is None else f" --data {os.fspath(data)}"
