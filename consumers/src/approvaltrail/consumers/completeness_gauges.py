"""Show what completeness says as metrics, in the sink that looks on behalf of its group."""

from __future__ import annotations

import math

from approvaltrail.consumers.metrics import SinkMetrics
from approvaltrail.schemas.messages import GateState
from approvaltrail.store.answers import Completeness, ProducerCondition


def show(metrics: SinkMetrics, found: Completeness) -> None:
    """Set the gauges to what was found."""
    counting = [one for one in found.producers if one.condition is not ProducerCondition.RETIRED]
    metrics.completeness_asked.set(found.asked_at.timestamp())
    metrics.complete_until.set(_instant(found))
    metrics.missing_numbers.set(sum(one.missing for one in counting))
    metrics.cloned_numbers.set(sum(one.cloned_numbers for one in found.producers))
    metrics.open_dead_letters.set(found.dead_letters)
    metrics.silent_producers.set(
        sum(one.condition is ProducerCondition.SILENT for one in found.producers)
    )
    metrics.gate_closed.clear()
    for one in counting:
        if one.condition is not ProducerCondition.CLOSED:
            closed = one.gate_state is GateState.CLOSED
            metrics.gate_closed.labels(one.producer_id, one.service).set(closed)


def _instant(found: Completeness) -> float:
    """Return 0 when of no instant completeness is known; no number while there is no producer."""
    if found.complete_until is not None:
        return found.complete_until.timestamp()
    return 0.0 if found.producers else math.nan


def forget(metrics: SinkMetrics) -> None:
    """Let another sink of the group say it; values of long ago must not stand beside its own."""
    metrics.completeness_asked.set(0)
    for gauge in (
        metrics.complete_until,
        metrics.missing_numbers,
        metrics.cloned_numbers,
        metrics.open_dead_letters,
        metrics.silent_producers,
    ):
        gauge.set(math.nan)
    metrics.gate_closed.clear()
