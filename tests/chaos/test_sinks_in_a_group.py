"""Two, then three sinks share a group while events arrive; members come, stall, wake and die."""

from __future__ import annotations

import os
import random
import signal
import time
from typing import TYPE_CHECKING

import pytest
from tests.chaos.oracle import assert_exact
from tests.consumers.parts import stored_ids
from tests.support.processes import wait_until

if TYPE_CHECKING:
    from tests.chaos.world import GroupSink, World

SECONDS = float(os.environ.get("APPROVALTRAIL_CHAOS_SECONDS", "0"))
"""How long stalls and kills go on; there is one round at least."""
SEED = int(os.environ.get("APPROVALTRAIL_CHAOS_SEED", "7"))


def partitions(*sinks: GroupSink) -> list[int]:
    """Return how many partitions each member says it has."""
    return [sink.partitions for sink in sinks]


@pytest.mark.timeout(SECONDS + 240)
def test_two_then_three_sinks_with_a_stalled_one_that_wakes_up_store_each_event_once(
    world: World,
) -> None:
    """P-11 under load: rebalances, a frozen member's late insert and a kill change no count."""
    chance = random.Random(SEED)
    first, second = world.start_sink("first"), world.start_sink("second", static=True)
    world.start_recorder()
    with world.store() as store:

        def goes_on(what: str) -> None:
            seen = len(stored_ids(store))
            wait_until(lambda: len(stored_ids(store)) > seen + 100, what, 60)

        def stall_and_kill() -> None:
            nonlocal second
            time.sleep(chance.uniform(0, 0.2))
            os.kill(third.pid, signal.SIGSTOP)
            wait_until(lambda: sum(partitions(first, second)) == 9, "two have all again", 60)
            goes_on("two sinks store what the third one held")
            os.kill(third.pid, signal.SIGCONT)
            wait_until(lambda: min(partitions(first, second, third)) > 0, "it is back", 60)
            second.kill()
            second = world.start_sink("second", static=True)
            goes_on("they store after one was killed")

        wait_until(lambda: min(partitions(first, second)) > 0, "two share the partitions", 60)
        goes_on("two sinks store")
        third = world.start_sink("third")
        wait_until(lambda: min(partitions(first, second, third)) > 0, "three share them", 60)
        goes_on("three sinks store")
        deadline = time.monotonic() + SECONDS
        stall_and_kill()
        while time.monotonic() < deadline:
            stall_and_kill()
        wait_until(lambda: sum(partitions(first, second, third)) == 9, "all have a reader", 60)
        world.stop_recorder()
        world.drain()
        noted = world.notes.read()
        wait_until(lambda: noted.acknowledged <= stored_ids(store), "all is stored", 60)
        assert_exact(store, noted)
    assert [sink.stop() for sink in (first, second, third)] == [0, 0, 0]
