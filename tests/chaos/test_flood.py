"""A flood of tokens that nobody issued, while the broker is away."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.producer.support import NOWHERE
from tests.support.processes import wait_until

if TYPE_CHECKING:
    from tests.chaos.world import World

    from approvaltrail.store.connection import Store

GARBAGE = 50_000
GROWTH_KIB = 24 * 1024
"""Room for allocators and caches; the flood itself, kept in memory, would be three times that."""
_STORED = """
SELECT event_type, count(DISTINCT event_id),
  sum(toUInt64OrZero(arrayFirst(pair -> pair.1 = 'count', attributes).2))
FROM events GROUP BY event_type
"""


def stored(store: Store) -> dict[str, tuple[int, int]]:
    """Return by type how many events are stored, and how many more their sums stand for."""
    return {row[0]: (int(row[1]), int(row[2])) for row in store.query(_STORED).rows}


@pytest.mark.timeout(240)
def test_s03_a_flood_with_the_broker_away_holds_up_nobody_and_every_event_is_accounted_for(
    world: World,
) -> None:
    """S-03: genuine calls are served, memory stays flat, and the store adds up to the flood."""
    done = subprocess.run(
        [
            *(sys.executable, "-m", "tests.chaos.flooded", str(world.journals)),
            *(NOWHERE, world.prefix, str(GARBAGE)),
        ],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2_000:]
    report = json.loads(done.stdout)
    assert sum(report["refused"].values()) == GARBAGE
    assert report["genuine_confirmed"] == report["genuine"] == GARBAGE // 5_000
    assert report["only_counted"] > 0, "the flood reached the bound of what it may fill"
    assert report["peak_kib"] - report["peak_kib_settled"] < GROWTH_KIB
    world.start_sink("one", flush_events="20000")
    world.drain()
    with world.store() as store:
        genuine = (report["genuine"], 0)
        wait_until(
            lambda: sum(stored(store).get("refused", (0, 0))) >= GARBAGE, "all is stored", 60
        )
        found = stored(store)
        sums = store.query(
            "SELECT count(DISTINCT event_id) FROM events "
            "WHERE arrayExists(pair -> pair.1 = 'unrecorded_sum', attributes)"
        ).scalar()
        recorded, counted = found.pop("refused")
        assert recorded - sums + counted == GARBAGE
        assert counted == report["only_counted"]
        assert found == {"issued": genuine, "accepted": genuine, "completed": genuine}
