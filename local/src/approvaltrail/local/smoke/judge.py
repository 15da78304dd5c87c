"""The verdict on a smoke run: what every hop holds, held against the gate's own answers."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from typing import Final

from approvaltrail.local.smoke import checks, evidence
from approvaltrail.local.smoke.canaries import Hunt
from approvaltrail.local.smoke.checks import Condition
from approvaltrail.local.smoke.evidence import Number, Stored
from approvaltrail.local.smoke.play import Play
from approvaltrail.local.smoke.report import SmokeReport
from approvaltrail.local.smoke.topic import read_all
from approvaltrail.schemas.events import EventType
from approvaltrail.schemas.topics import DEAD, NAMES
from approvaltrail.store.connection import Store, open_store

_PAGES_SECONDS: Final = 180.0


def judge(play: Play) -> SmokeReport:
    """Hold what every hop has against the tally; everything still runs."""
    play.say("checking the store against the gate's answers")
    recorded = evidence.recorded_numbers(play.running.folder.journals)
    with open_store(play.running.servers.writer_dsn) as store:
        stored = evidence.ask(store, play.started_at)
        play.say(f"searching every hop for {len(play.tally.tokens)} tokens")
        hunt = Hunt(tokens=play.tally.tokens, canaries=play.canaries)
        page_problems = _hunt(play, hunt, store)
    lacking, no_gaps = checks.gaps(stored)
    conditions = (
        *checks.sets(recorded, stored, frozenset({play.poison})),
        no_gaps,
        *checks.counts(play.tally, stored),
        *checks.reuses(play.tally, stored),
        *checks.secrecy(hunt),
        Condition(name="every page renders", holds=not page_problems, found=page_problems),
    )
    figures = _figures(play, recorded, stored, hunt) | {"gaps": lacking}
    return SmokeReport(figures=figures, conditions=conditions)


def _hunt(play: Play, hunt: Hunt, store: Store) -> str:
    """Search every hop; return what went wrong with the pages."""
    folder = play.running.folder
    hunt.through("journal", evidence.journal_bodies(folder.journals))
    hunt.files("journal files", folder.journals)
    for topic in NAMES:
        messages = asyncio.run(read_all(play.kafka, topic))
        hop = "dead letters" if topic == DEAD else "topics"
        hunt.through(hop, (message.contents() for message in messages))
    hunt.files("topic files", folder.broker / "data")
    hunt.through("store", evidence.texts_of(store))
    hunt.files("store files", folder.engine / "store")
    problems = _pages(play, hunt)
    hunt.files("logs", folder.logs)
    for part in (folder.broker, folder.engine):
        hunt.through("logs", (path.read_bytes() for path in part.glob("*.log*")))
    return problems


def _pages(play: Play, hunt: Hunt) -> str:
    out = play.running.folder.root / "pages.txt"
    log = play.running.folder.log("pages")
    module = "approvaltrail.local.smoke.pages"
    reader = play.running.servers.reader_dsn
    with log.open("wb") as output:
        done = subprocess.run(  # noqa: S603 - our own program
            [sys.executable, "-m", module, str(out), play.canaries["pages"]],
            env={**os.environ, "APPROVALTRAIL_CLICKHOUSE_DSN": reader},
            stdout=output,
            stderr=output,
            timeout=_PAGES_SECONDS,
            check=False,
        )
    hunt.through("pages", [out.read_bytes()] if out.exists() else [])
    if done.returncode == 0:
        return ""
    return "; ".join(log.read_text(errors="replace").splitlines()[-3:]) or f"see {log}"


def _figures(
    play: Play, recorded: frozenset[Number], stored: Stored, hunt: Hunt
) -> dict[str, int | float]:
    events = play.tally.events
    return {
        "issued": events[EventType.ISSUED],
        "accepted": events[EventType.ACCEPTED],
        "completed": events[EventType.COMPLETED],
        "refused": events[EventType.REFUSED],
        "replayed": events[EventType.REPLAYED],
        "recorded": len(recorded),
        "stored": len(stored.numbers),
        "dead_lettered": stored.dead_letters,
        "reuses_total": stored.reuses_total,
        "reuses_linked": sum(map(checks.linked, stored.reuses)),
        "gaps": 0,
        "duplicates_sent": play.duplicates_sent,
        "canaries_planted": len(play.canaries),
        "canaries_found": len(hunt.canaries_found),
        "tokens_issued": len(play.tally.tokens),
        "tokens_found": len(hunt.leaks),
        "seconds": 0.0,
    }
