"""Producers, what lacks of each, and dead letters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from rich.text import Text

from approvaltrail.local.cli.output import say, table
from approvaltrail.local.cli.text import cell
from approvaltrail.local.cli.times import iso
from approvaltrail.store.answers import Completeness, DeadLetter, ProducerStatus

_PRODUCER_COLUMNS: Final = (
    "service",
    "instance",
    "condition",
    "emitted",
    "stored",
    "dead",
    "in flight",
    "lacking",
    "last heartbeat",
    "producer",
)
_LETTER_COLUMNS: Final = (
    "dead-lettered (UTC)",
    "cause",
    "position",
    "owner",
    "redriven",
    "detail",
)


def show(completeness: Completeness, letters: Sequence[DeadLetter]) -> None:
    """Print one row a producer and one a dead letter, with how to try the latter again."""
    if completeness.producers:
        table(_PRODUCER_COLUMNS, map(_producer, completeness.producers))
    if letters:
        table(_LETTER_COLUMNS, map(_letter, letters))
        say("once the cause is mended, try them again with: approvaltrail redrive")


def _producer(one: ProducerStatus) -> list[Text]:
    condition = one.condition.value
    if one.condition_reason:
        condition += f" ({one.condition_reason})"
    return [
        cell(one.service),
        cell(one.instance),
        cell(condition),
        cell(one.emitted),
        cell(one.stored),
        cell(one.dead_lettered),
        cell(one.in_flight),
        cell(one.missing, "bold red" if one.missing else ""),
        cell(iso(one.last_heartbeat_at) if one.last_heartbeat_at else "never"),
        cell(one.producer_id),
    ]


def _letter(one: DeadLetter) -> list[Text]:
    owner = f"{one.producer_id} #{one.sequence}" if one.producer_id else "unknown"
    return [
        cell(iso(one.dead_lettered_at)),
        cell(one.cause.value),
        cell(f"{one.topic}/{one.partition}@{one.offset}"),
        cell(owner),
        cell(iso(one.redriven_at) if one.redriven_at else "no"),
        cell(one.detail),
    ]
