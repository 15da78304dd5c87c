"""From a token that came back to exported, verified evidence, by the command line alone."""

from __future__ import annotations

import io
import json
import subprocess
import sys
import zipfile
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from tests.support.stored import store_story
from tests.support.story import Story

from approvaltrail.dashboard.views.ledger import _FATES
from approvaltrail.gate.keys import ring_of
from approvaltrail.gate.tokens import Claims, mint
from approvaltrail.local.cli import output, show_ledger
from approvaltrail.local.cli.exit_codes import ExitCode
from approvaltrail.schemas.events import Reason
from approvaltrail.store.connection import open_store
from approvaltrail.store.migrations import migrate

from .conftest import Ran

Command = Callable[..., Ran]
EVIL = "prod-7\x1b]0;x\x07\u202e"


@pytest.fixture(scope="module")
def told(module_database: tuple[str, str]) -> tuple[Story, str, str]:
    """Store two tokens of one caller that came back soon after each other, and refusals."""
    writer, reader = module_database
    now = datetime.now(UTC)
    story = Story(now - timedelta(minutes=10))
    call = story.call(target=EVIL)
    for _ in range(2):
        nonce = story.issue(call)
        story.after(seconds=2).accept(call, nonce)
        story.after(seconds=3).replay(call, nonce)
    story.refuse(call, Reason.MISSING_TOKEN)
    story.refuse(call, Reason.MISSING_TOKEN)
    with open_store(writer) as store:
        migrate(store)
        store_story(store, story.events, now)
    return story, writer, reader


@pytest.fixture
def story(told: tuple[Story, str, str], monkeypatch: pytest.MonkeyPatch) -> Story:
    """Point the commands to the story's store."""
    monkeypatch.setenv("CLICKHOUSE_DSN", told[1])
    monkeypatch.setenv("CLICKHOUSE_READER_DSN", told[2])
    return told[0]


def answer(ran: Ran, code: ExitCode = ExitCode.OK) -> dict:
    assert ran.code == code, ran
    return json.loads(ran.out)


def problem(ran: Ran, code: ExitCode) -> dict:
    """Return the error object; nothing stands on stdout."""
    assert (ran.code, ran.out) == (code, ""), ran
    found = json.loads(ran.err)["error"]
    assert (found["code"], found["name"]) == (code, code.name.lower())
    return found


def token_for(nonce: str) -> str:
    ring = ring_of("k" * 48)
    now = datetime.now(UTC)
    claims = Claims(
        nonce=nonce,
        key_id=ring.signing.key_id,
        tool="tidb_delete_cluster",
        target="prod-7",
        tenant="acme",
        plan_hash="0" * 64,
        issued_at=now,
        expires_at=now + timedelta(minutes=10),
    )
    return mint(claims, ring)


def test_from_a_token_to_verified_evidence(command: Command, story: Story, tmp_path: Path) -> None:
    """Each answer names the next command, down to an export that verifies, also by the store."""
    nonce = story.events[0].nonce
    assert "next: approvaltrail trail " in command("replays").out
    shown = command("trail", token_for(nonce)).out
    assert f"next: approvaltrail export trail {nonce}" in shown
    file = tmp_path / "evidence.zip"
    wrote = command("export", "trail", nonce, "--output", str(file))
    assert f"next: approvaltrail export verify {file} --against-store" in wrote.out
    checked = command("export", "verify", str(file), "--against-store")
    assert (checked.code, checked.out.splitlines()[0]) == (0, "verified: 4 events")
    assert "unauthenticated local user" in checked.out


@pytest.mark.parametrize("place", ["trail", "export trail", "events --nonce", "extra", "retire"])
def test_a_pasted_token_is_never_echoed(
    command: Command, story: Story, place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A token in the place of a nonce is read, in a wrong place refused, and repeated nowhere."""
    monkeypatch.chdir(tmp_path)
    token = token_for(story.events[0].nonce)
    line = ["trail", "abc", token] if place == "extra" else [*place.split(), token]
    ran = command(*line, *(["--reason", "x"] if place == "retire" else []))
    assert ran.code == (ExitCode.USAGE if place in {"extra", "retire"} else ExitCode.OK), ran
    for part in token.split(".")[1:]:
        assert part[:20] not in ran.out + ran.err


def test_a_token_is_read_from_stdin(
    command: Command, story: Story, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`trail -` keeps a token out of the shell's history and the list of processes."""
    monkeypatch.setattr("sys.stdin", io.StringIO(token_for(story.events[0].nonce) + "\n"))
    assert f"Nonce {story.events[0].nonce}" in command("trail", "-").out


def test_bytes_on_stdin_that_are_no_text_are_a_usage_error(
    command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As the same bytes in an argument are."""
    stdin = io.TextIOWrapper(io.BytesIO(b"\xff\xfe\x00"), "utf-8", errors="surrogateescape")
    monkeypatch.setattr("sys.stdin", stdin)
    ran = command("trail", "-")
    assert ran.code == ExitCode.USAGE
    assert "stdin is not text in UTF-8" in ran.err


def test_a_token_without_a_readable_nonce_says_what_to_give(command: Command) -> None:
    """A token that was cut is refused with the way out, and not repeated."""
    ran = command("trail", "at1." + "A" * 40)
    assert ran.code == ExitCode.USAGE
    assert "cut short" in ran.err
    assert "AAAA" not in ran.err


def test_an_export_replaces_nothing_unasked(command: Command, story: Story, tmp_path: Path) -> None:
    """A file that is there stays as it is without --force, and no half file is left."""
    file = tmp_path / "evidence.zip"
    file.write_text("mine")
    found = problem(command("export", "events", "--output", str(file), "--json"), ExitCode.USAGE)
    assert "--force" in found["message"]
    assert file.read_text() == "mine"
    wrote = answer(command("export", "events", "--output", str(file), "--force", "--json"))
    assert wrote["manifest"]["data"]["rows"] == len(story.events)
    assert [one.name for one in tmp_path.iterdir()] == ["evidence.zip"]


@pytest.mark.parametrize("encoding", ["ndjson", "csv"])
def test_an_export_says_what_it_is(
    command: Command, story: Story, tmp_path: Path, encoding: str
) -> None:
    """The manifest holds query, bounds, rows, hash, completeness, exporter and version."""
    line = ("export", "replays", "--label", "needs_review", "--format", encoding)
    wrote = answer(command(*line, "--output", str(tmp_path), "--exporter", "ana", "--json"))
    manifest = wrote["manifest"]
    assert manifest["exporter"]["principal"] == "ana"
    assert manifest["query"]["kind"] == "reuses"
    assert manifest["query"]["filter"]["label"] == "needs_review"
    assert manifest["data"]["rows"] == 2
    assert {"start", "end", "version", "completeness"} <= set(manifest)
    kept = ("--manifest-sha256", wrote["manifest_sha256"])
    assert command("export", "verify", wrote["file"], "--against-store", *kept).code == ExitCode.OK
    kept = ("--manifest-sha256", "0" * 64)
    assert command("export", "verify", wrote["file"], *kept).code == ExitCode.FAILED_CHECK
    assert command("export", "verify", wrote["file"], *kept[:1], "0").code == ExitCode.USAGE


def test_a_changed_export_is_not_verified(command: Command, story: Story, tmp_path: Path) -> None:
    """`export verify` ends with 1 and names the event that was changed."""
    answer(command("export", "events", "--output", str(tmp_path / "a.zip"), "--json"))
    with zipfile.ZipFile(tmp_path / "a.zip") as archive:
        archive.extractall(tmp_path / "a")
    data = tmp_path / "a" / "events.ndjson"
    data.write_text(data.read_text().replace('"tenant": "acme"', '"tenant": "bcme"', 1))
    ran = command("export", "verify", str(tmp_path / "a"))
    assert ran.code == ExitCode.FAILED_CHECK
    assert "was changed" in ran.out
    found = answer(
        command("export", "verify", str(tmp_path / "none"), "--json"), ExitCode.FAILED_CHECK
    )
    assert found["verified"] is False
    assert found["reason"] == "there is no such file"


def test_nothing_known_is_nothing_exported(command: Command, story: Story, tmp_path: Path) -> None:
    """An export of an unknown nonce ends with 6 and leaves no file."""
    line = ("export", "trail", "A" * 22, "--output", str(tmp_path / "a.zip"), "--json")
    assert "nothing was exported" in problem(command(*line), ExitCode.NOTHING_FOUND)["message"]
    assert not list(tmp_path.iterdir())


def test_a_reuse_has_one_label_wherever_it_is_shown(command: Command, story: Story) -> None:
    """`trail` and `replays` label alike, as what else the caller reused counts in both."""
    listed = answer(command("replays", "--json"))["reuses"]
    assert [one["label"]["kind"] for one in listed] == ["needs_review"] * 2
    told = answer(command("trail", story.events[0].nonce, "--json"))["trail"]["reuses"]
    assert told[0]["label"] == listed[1]["label"]
    assert len(answer(command("replays", "--label", "needs_review", "--json"))["reuses"]) == 2
    assert not answer(command("replays", "--label", "consistent_with_retry", "--json"))["reuses"]


def test_refusals_are_counted_by_cause_and_over_time(command: Command, story: Story) -> None:
    """`refusals` counts by the pages' words, and its JSON adds up."""
    found = answer(command("refusals", "--json"))
    assert found["causes"] == {"missing_token": 2}
    assert sum(row["events"] for row in found["series"]) == found["total"] == 2
    shown = command("refusals").out
    assert "no token" in shown
    assert "next: approvaltrail events --type refused --reason missing_token" in shown
    assert "No refusal" in command("refusals", "--tool", "nothing").out


def test_the_ledger_closes(command: Command, story: Story) -> None:
    """`ledger` balances the nonces issued with their fates, beside claims and outages."""
    found = answer(command("ledger", "--json"))
    assert found["balance"]["issued"] == sum(found["balance"]["fates"].values()) == 2
    assert found["outages"] == []
    assert "✔ it closes" in command("ledger").out
    assert command("ledger", "--last", "1h", "migrate").code == ExitCode.USAGE


def test_the_ledger_has_the_words_of_its_page() -> None:
    """Command line and dashboard name the fates of a nonce alike."""
    assert {fate: sign.word for fate, sign in _FATES.items()} == show_ledger.FATES


@pytest.mark.parametrize("which", ["replays", "trail", "refusals", "ledger", "events"])
@pytest.mark.parametrize("width", [80, 10_000])
def test_hostile_text_is_shown_as_text(
    command: Command, story: Story, which: str, width: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither wide nor at 80 columns does a control or bidi character reach the terminal."""
    monkeypatch.setattr(output, "_PIPED_WIDTH", width)
    shown = command(which, *([story.events[0].nonce] if which == "trail" else [])).out
    assert not {"\x1b", "\x07", "\u202e"} & set(shown)
    table = [row for row in shown.splitlines() if row.startswith(("20", "  "))]
    assert width > 80 or all(len(row) <= 80 for row in table), shown


def test_a_reader_that_leaves_is_no_failure() -> None:
    """`approvaltrail … | head -1` ends with 0 and without a word."""
    code = (
        "import os, sys; from approvaltrail.local.cli.entry import run\n"
        "read, write = os.pipe(); os.close(read); os.dup2(write, 1)\n"
        "sys.exit(run(['version']))"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False)
    assert (ran.returncode, ran.stderr) == (0, b"")


def test_a_silent_producer_is_retired(
    command: Command, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`retire` with a reason ends the waiting for a producer; one that reports is refused."""
    monkeypatch.setenv("CLICKHOUSE_DSN", database)
    past = Story(datetime.now(UTC) - timedelta(hours=3))
    past.issue(past.call())
    present = Story(datetime.now(UTC) - timedelta(seconds=5), seed=9, instance="mcp-2")
    present.issue(present.call())
    with open_store(database) as store:
        migrate(store)
        store_story(store, past.events, datetime.now(UTC) - timedelta(hours=2))
        store_story(store, present.events, datetime.now(UTC))
    gone, here = past.events[0].producer_id, present.events[0].producer_id
    found = answer(command("pipeline", "--json"))["completeness"]
    assert found["state"] == "not_yet"
    done = answer(command("retire", gone, "--reason", "host gone", "--json"))
    assert done["retired"]["condition"] == "retired"
    assert done["retired"]["condition_reason"] == "host gone"
    assert done["completeness"]["state"] == "complete"
    assert "retired (host gone)" in command("pipeline").out
    refused = command("retire", here, "--reason", "x", "--json")
    assert "stop it first" in problem(refused, ExitCode.FAILED_CHECK)["message"]
    unknown = command("retire", gone[:-4] + "0000", "--reason", "x", "--json")
    problem(unknown, ExitCode.NOTHING_FOUND)


def test_errors_of_every_kind_are_json_for_programs(command: Command) -> None:
    """With --json an error is one object on stderr, says whether to retry, and stdout is empty."""
    assert problem(command("replays", "--json"), ExitCode.UNAVAILABLE)["retriable"] is True
    wrong = problem(command("replays", "--json", "--last", "soon"), ExitCode.USAGE)
    assert "24h" in wrong["message"]
    problem(command("replays", "--json", "--nonsense"), ExitCode.USAGE)
