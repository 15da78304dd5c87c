"""SIGKILL under load: what was acknowledged is there, and the numbering has no gap."""

from __future__ import annotations

import os
import random
import signal
import struct
import subprocess
import sys
from typing import TYPE_CHECKING

from tests.producer.support import events_in, journal_in

if TYPE_CHECKING:
    from pathlib import Path

SEED = 20_261_130
KILLS = 4
ROUND = struct.Struct("<q36s")

CHILD = """
import asyncio, logging, os, struct, sys
from pathlib import Path
import structlog
from approvaltrail.producer import Producer
from tests.producer.support import issued, settings_for

structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))

async def caller(producer):
    while True:
        event = issued()
        recorded = await producer.record(event)
        os.write(1, struct.pack("<q36s", recorded.sequence, event.event_id.encode()))

async def main():
    producer = Producer(settings_for(Path(sys.argv[1])))
    producer.start()
    await asyncio.gather(*[caller(producer) for _ in range(32)])

asyncio.run(main())
"""


def test_acknowledged_events_survive_sigkill(tmp_path: Path) -> None:
    """Whatever record acknowledged before a SIGKILL is in the journal, gapless, every time."""
    chance = random.Random(SEED)
    acknowledged: dict[int, str] = {}
    for _ in range(KILLS):
        child = subprocess.Popen(
            [sys.executable, "-c", CHILD, str(tmp_path)], stdout=subprocess.PIPE
        )
        assert child.stdout is not None
        wanted = chance.randrange(1, 40_000)
        said = b""
        while chunk := os.read(child.stdout.fileno(), 65_536):
            said += chunk
            if len(said) >= wanted and child.poll() is None:
                os.kill(child.pid, signal.SIGKILL)
        child.stdout.close()
        child.wait()
        for place in range(0, len(said) - len(said) % ROUND.size, ROUND.size):
            sequence, event_id = ROUND.unpack_from(said, place)
            assert sequence not in acknowledged, f"seed {SEED}: a number was given twice"
            acknowledged[sequence] = event_id.decode()
    stored = events_in(journal_in(tmp_path))
    assert [event.sequence for event in stored] == list(range(1, len(stored) + 1)), f"seed {SEED}"
    by_number = {event.sequence: event.event_id for event in stored}
    lost = [
        number for number, identity in acknowledged.items() if by_number.get(number) != identity
    ]
    assert len(acknowledged) > KILLS
    assert lost == [], f"seed {SEED}: {len(lost)} of {len(acknowledged)} acknowledged are lost"
