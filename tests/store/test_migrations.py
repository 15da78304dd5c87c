"""Tables are made step by step, once, and never changed behind anybody's back."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from approvaltrail.schemas.contract import event_contract
from approvaltrail.store.columns import STORED_COLUMNS, check_type_map
from approvaltrail.store.connection import open_store
from approvaltrail.store.errors import MigrationError
from approvaltrail.store.migrations import (
    Migration,
    check_migrated,
    migrate,
    migrations,
    pending,
)

if TYPE_CHECKING:
    from approvaltrail.store.connection import Store


def names() -> list[str]:
    return [step.name for step in migrations()]


def test_migrating_applies_every_step_once(empty_dsn: str) -> None:
    """A fresh database gets every step in order; a second run has nothing to do."""
    with open_store(empty_dsn) as store:
        assert pending(store) == names()
        with pytest.raises(MigrationError, match="approvaltrail migrate"):
            check_migrated(store)
        assert migrate(store) == names()
        assert (pending(store), migrate(store)) == ([], [])
        check_migrated(store)


def test_a_run_that_broke_off_is_finished_by_the_next(empty_dsn: str) -> None:
    """Statements that ran without their step being recorded run again without harm."""
    with open_store(empty_dsn) as store:
        for statement in migrations()[0].statements[:5]:
            store.command(statement)
        assert migrate(store) == names()


def test_a_changed_step_is_refused(store: Store) -> None:
    """A step whose text has changed since it was applied is an error, and nothing is applied."""
    first, *rest = migrations()
    changed = [Migration(first.name, first.text + "-- more\n"), *rest]
    with pytest.raises(MigrationError, match=f"{first.name} was applied and has changed"):
        migrate(store, [*changed, Migration("0099_new.sql", "SELECT 1;\n")])
    assert pending(store) == []


def test_a_store_ahead_of_this_version_is_refused(store: Store) -> None:
    """A version that does not know an applied step does not touch the store."""
    with pytest.raises(MigrationError, match="does not know"):
        pending(store, migrations()[:1])


def test_the_tables_are_those_of_the_database_in_the_dsn(
    engine_folder: object, store: Store
) -> None:
    """No step names a database: another database of the same engine stays as it was."""
    with open_store(f"chdb://{engine_folder}") as default:
        assert default.query("EXISTS TABLE events").scalar() == 0
    assert store.query("EXISTS TABLE events").scalar() == 1


def test_the_table_is_what_the_columns_say(store: Store) -> None:
    """The table of events has exactly the listed columns, in name, type and order."""
    described = [
        (name, " ".join(kind.split()).replace("( ", "("))
        for name, kind, *_ in store.query("DESCRIBE TABLE events").rows
    ]
    assert described == [(name, kind) for name, kind in STORED_COLUMNS]


def test_the_contract_fits_the_table() -> None:
    """Every field of every version of the contract has a column that keeps its values."""
    check_type_map()


@pytest.mark.parametrize(
    ("name", "avro_type"),
    [
        ("occurred_at", {"type": "long", "logicalType": "timestamp-millis"}),
        ("reason", {"type": "enum", "name": "R", "symbols": ["a"]}),
        ("tool", ["null", "string"]),
        ("target", ["null", "string", "long"]),
        ("event_id", {"type": "fixed", "size": 16, "name": "F"}),
        ("sequence", "int"),
        ("brand_new", "string"),
    ],
)
def test_a_type_that_would_bend_values_is_refused(name: str, avro_type: object) -> None:
    """A field whose type the column would bend, silently or loudly, is refused by name."""
    schema = dict(event_contract().schema)
    fields = [field for field in schema["fields"] if field["name"] != name]
    schema["fields"] = [*fields, {"name": name, "type": avro_type}]
    with pytest.raises(ValueError, match=name):
        check_type_map(schema)
