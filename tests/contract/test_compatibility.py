"""The contract may only change so that every version reads every other: FULL_TRANSITIVE."""

from __future__ import annotations

import copy
import json
from importlib import resources
from typing import Any

import pytest
from avro.compatibility import ReaderWriterCompatibilityChecker, SchemaCompatibilityType
from avro.schema import parse

from approvaltrail.schemas.contract import EVENT_VERSIONS, contract, contract_of, event_contract
from approvaltrail.schemas.events import STAMPED_FIELDS

PUBLISHED = {"approval_event.v1": "da98f317481b9f36"}
"""Fingerprints of versions that producers may have written: a published file never changes."""


def incompatibilities(one: dict[str, Any], other: dict[str, Any]) -> list[str]:
    """Return where two versions do not read each other, in either direction."""
    found: list[str] = []
    for reader, writer in ((one, other), (other, one)):
        checker = ReaderWriterCompatibilityChecker()
        answer = checker.get_compatibility(parse(json.dumps(reader)), parse(json.dumps(writer)))
        if answer.compatibility is not SchemaCompatibilityType.compatible:
            found += sorted(answer.locations)
    return found


def newer(change: str) -> dict[str, Any]:
    """Return a next version of the event contract that makes one change."""
    schema = copy.deepcopy(event_contract().schema)
    fields = {field["name"]: field for field in schema["fields"]}
    match change:
        case "field with default":
            schema["fields"].append({"name": "region", "type": ["null", "string"], "default": None})
        case "field without default":
            schema["fields"].append({"name": "region", "type": "string"})
        case "field removed":
            schema["fields"].remove(fields["tool"])
        case "type changed":
            fields["sequence"]["type"] = "string"
        case "nullable made required":
            fields["tenant"].update(type="string")
            fields["tenant"].pop("default")
        case "reason added":
            fields["reason"]["type"][1]["symbols"].append("frozen")
        case "event type added":
            fields["event_type"]["type"]["symbols"].append("expired")
        case "renamed":
            fields["tool"]["name"] = "tool_name"
    return schema


def test_every_version_reads_every_other() -> None:
    """Each pair of published versions is compatible in both directions."""
    versions = [contract(name).schema for name in EVENT_VERSIONS]
    for one in versions:
        for other in versions:
            assert incompatibilities(one, other) == []


def test_a_published_version_never_changes() -> None:
    """A version's fingerprint is fixed once producers may have written it."""
    assert {name: contract(name).fingerprint for name in EVENT_VERSIONS} == PUBLISHED


@pytest.mark.parametrize("change", ["field with default", "reason added"])
def test_a_compatible_change_is_let_through(change: str) -> None:
    """A field with a default and a new reason are read by old consumers and new ones."""
    assert incompatibilities(newer(change), event_contract().schema) == []


@pytest.mark.parametrize(
    "change",
    [
        "field without default",
        "field removed",
        "type changed",
        "nullable made required",
        "event type added",
        "renamed",
    ],
)
def test_an_incompatible_change_is_refused(change: str) -> None:
    """Whatever an older or newer consumer could not read is found before it is released."""
    assert incompatibilities(newer(change), event_contract().schema) != []


def test_stamped_fields_come_first_in_every_version() -> None:
    """A journal can stamp events of any version without decoding them."""
    for name in EVENT_VERSIONS:
        names = [field["name"] for field in contract(name).schema["fields"]]
        assert tuple(names[: len(STAMPED_FIELDS)]) == STAMPED_FIELDS


def test_every_schema_file_is_a_contract_with_documentation() -> None:
    """Each packaged schema parses and says what it is for."""
    folder = resources.files("approvaltrail.schemas").joinpath("avro")
    files = sorted(file.name for file in folder.iterdir())
    assert files
    for file in files:
        assert contract(file.removesuffix(".avsc")).schema["doc"]


def test_a_change_of_default_alone_keeps_the_fingerprint() -> None:
    """The fingerprint is of the canonical form: documentation does not change it."""
    schema = copy.deepcopy(event_contract().schema)
    schema["doc"] = "other words"
    assert contract_of("copy", schema).fingerprint == event_contract().fingerprint
