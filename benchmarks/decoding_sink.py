"""The sink that one would write first: aiokafka, fastavro, insert, commit.

It stores the same events in the same tables with the same views, so that `benchmarks.sink` compares
two ways to the same end. Settings come from the variables that the product's sink reads.
"""

from __future__ import annotations

import asyncio
import io
import os
from typing import Any

import clickhouse_connect
import fastavro
from aiokafka import AIOKafkaConsumer

from approvaltrail.schemas.contract import HEADER_BYTES, event_contract
from approvaltrail.schemas.topics import EVENTS, prefixed
from approvaltrail.store.columns import EVENT_COLUMNS

_BATCH_EVENTS = 40_000
_COLUMNS = [name for name, _ in EVENT_COLUMNS]


def _row(message: Any, schema: Any) -> list[Any]:
    stream = io.BytesIO(message.value)
    stream.seek(HEADER_BYTES)
    values: Any = fastavro.schemaless_reader(stream, schema, None)
    values["attributes"] = [(pair["name"], pair["value"]) for pair in values["attributes"]]
    row: list[Any] = [values[name] for name in _COLUMNS]
    row += [message.partition, message.offset, event_contract().fingerprint]
    return row


async def run() -> None:
    """Read, decode, insert and commit until the process is ended."""
    settings = {name.removeprefix("APPROVALTRAIL_"): value for name, value in os.environ.items()}
    schema = event_contract().parsed
    client = clickhouse_connect.get_client(
        dsn=settings["CLICKHOUSE_DSN"], autogenerate_session_id=False
    )
    columns = [*_COLUMNS, "kafka_partition", "kafka_offset", "schema_fingerprint"]
    consumer = AIOKafkaConsumer(
        prefixed(EVENTS, settings["TOPIC_PREFIX"]),
        bootstrap_servers=settings["KAFKA_BOOTSTRAP_SERVERS"],
        group_id=settings["SINK_GROUP_ID"],
        enable_auto_commit=False,
        auto_offset_reset="earliest",
        max_partition_fetch_bytes=4 * 1024 * 1024,
        session_timeout_ms=60_000,  # decoding keeps the event loop, and with it the heartbeats
    )
    await consumer.start()
    rows: list[list[Any]] = []
    while True:
        found = await consumer.getmany(timeout_ms=100, max_records=_BATCH_EVENTS - len(rows))
        for messages in found.values():
            rows += [_row(message, schema) for message in messages]
        if rows and (not found or len(rows) >= _BATCH_EVENTS):
            await asyncio.to_thread(client.insert, "events", rows, column_names=columns)
            await consumer.commit()
            rows = []


if __name__ == "__main__":
    asyncio.run(run())
