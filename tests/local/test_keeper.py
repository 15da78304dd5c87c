"""How a part that ends is started again."""

from __future__ import annotations

import time

from structlog.testing import capture_logs

from approvaltrail.local.keeper import Keeper, PartStatus

PATIENCE_SECONDS = 30.0


class ShortLived:
    """A part that ends as soon as it was ready, and stays up from its fourth start on."""

    name, pid, address = "short-lived", None, None

    def __init__(self) -> None:
        self.starts = 0

    @property
    def running(self) -> bool:
        return self.starts == 0 or self.starts >= 4

    def start(self) -> None:
        self.starts += 1

    def stop(self) -> None:
        pass


def test_a_part_that_ended_is_started_at_once_and_then_with_growing_pauses() -> None:
    """A healthy part that was killed must not wait; one that cannot stay up must not spin."""
    part, seen = ShortLived(), list[PartStatus]()
    with capture_logs() as logs:
        keeper = Keeper(part, seen.append)
        keeper.start()
        deadline = time.monotonic() + PATIENCE_SECONDS
        while part.starts < 4:
            assert time.monotonic() < deadline
            time.sleep(0.02)
        keeper.stop()
    pauses = [line["again_after_seconds"] for line in logs if line["event"] == "part_ended"]
    assert pauses == [0.0, 0.25, 0.5]
    assert keeper.status.restarts == 3
