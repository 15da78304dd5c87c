"""Small Avro container blocks with a fence at the end of each record, as the sink builds them."""

from __future__ import annotations

import io

import fastavro

_SCHEMA = fastavro.parse_schema(
    {
        "type": "record",
        "name": "fenced",
        "fields": [
            {"name": "partition", "type": "int"},
            {"name": "position", "type": "long"},
            {"name": "text", "type": "string"},
            {"name": "fence", "type": "long"},
        ],
    }
)
TABLE = (
    "CREATE TABLE guarded (partition Int32, position Int64, text String) "
    "ENGINE = MergeTree ORDER BY position"
)
STRUCTURE = "partition Int32, position Int64, text String, fence Int64"
FENCE = 123


def block(rows: int, *, broken_at: int | None = None, start: int = 0) -> bytes:
    """Return a container of `rows` records; the one at `broken_at` has another fence."""
    file = io.BytesIO()
    records = (
        {
            "partition": 0,
            "position": start + index,
            "text": f"row-{start + index}",
            "fence": 7 if index == broken_at else FENCE,
        }
        for index in range(rows)
    )
    fastavro.writer(file, _SCHEMA, records, codec="null")
    return file.getvalue()


def guarded_insert(table: str = "guarded") -> str:
    """Return the insert that refuses a block with a foreign fence in it."""
    return (
        f"INSERT INTO {table} (partition, position, text) SELECT partition, position, text "
        f"FROM input('{STRUCTURE}') WHERE NOT throwIf(fence != {FENCE}, 'framing') FORMAT Avro"
    )
