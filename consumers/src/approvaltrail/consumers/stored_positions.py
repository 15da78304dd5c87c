"""How far each partition is stored, as the store itself knows: to count what is met again.

Only a measure rests on this, never delivery: it is asked for briefly, and of the last day alone.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

import structlog

from approvaltrail.store.connection import Store
from approvaltrail.store.errors import StoreError

_TIMEOUT_SECONDS = 1.0
"""The group's heartbeats wait for this."""
_STORED = """
SELECT kafka_partition, max(kafka_offset) + 1 FROM events
WHERE occurred_at >= now() - INTERVAL 1 DAY GROUP BY kafka_partition
"""
_log = structlog.stdlib.get_logger(__name__)


class StoredPositions:
    """Asks the store after each assignment."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def ask(self) -> Mapping[int, int]:
        """Return the offset after the last stored event of each partition; nothing if unknown."""
        try:
            async with asyncio.timeout(_TIMEOUT_SECONDS):
                answer = await asyncio.to_thread(self._store.query, _STORED)
        except (StoreError, TimeoutError) as error:
            _log.info("stored_positions_unknown", error=type(error).__name__)
            return {}
        return {int(partition): int(offset) for partition, offset in answer.rows}
