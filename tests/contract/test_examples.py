"""The packaged examples are real events: each validates, encodes and reads back."""

from __future__ import annotations

from importlib import resources

import pytest

from approvaltrail.schemas.encoding import decode_event, encode_recorded
from approvaltrail.schemas.events import EventType, RecordedEvent

FOLDER = resources.files("approvaltrail.schemas").joinpath("examples")
FILES = sorted(file.name for file in FOLDER.iterdir() if file.name.endswith(".json"))


@pytest.mark.parametrize("file", FILES)
def test_an_example_is_an_event(file: str) -> None:
    """Each example holds to the contract and survives encoding."""
    event = RecordedEvent.model_validate_json(FOLDER.joinpath(file).read_text("utf-8"))
    assert decode_event(encode_recorded(event)) == event


def test_there_is_an_example_of_every_type() -> None:
    """Every type of event has an example."""
    texts = [FOLDER.joinpath(file).read_text("utf-8") for file in FILES]
    assert {RecordedEvent.model_validate_json(text).event_type for text in texts} == set(EventType)
