"""Evidence that is taken away: complete, harmless, and checked from its values up."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import os
import warnings
import zipfile
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.dashboard.conftest import Make, Told
from tests.support.stored import store_story
from tests.support.story import Story

from approvaltrail.dashboard.errors import TooManyRowsError
from approvaltrail.dashboard.export.cells import cell_of, neutral, original, value_of
from approvaltrail.dashboard.export.encodings import Encoding, decoded, encoded
from approvaltrail.dashboard.export.making import Terms, export_events, export_trail, file_name
from approvaltrail.dashboard.export.manifest import MANIFEST, Exporter, Manifest
from approvaltrail.dashboard.export.reading import Source
from approvaltrail.dashboard.export.rows import HASH, NAMES, digest, row_of
from approvaltrail.dashboard.export.verifying import verify_export
from approvaltrail.schemas.events import EventType, Reason
from approvaltrail.store.answers import (
    EventFilter,
    ReuseFilter,
    StoredEvent,
    TenantScope,
    TimeRange,
)
from approvaltrail.store.connection import open_store
from approvaltrail.store.queries import Queries

EVERYTHING = TenantScope.everything()
ANA = Exporter(principal="ana@corp.example", subject="s-1", role="investigator")
CANARY = "at1." + "eyJub25jZSI6ImNhbmFyeSJ9" * 2 + "." + "c" * 43
BOTH = pytest.mark.parametrize("encoding", list(Encoding))


@pytest.fixture
def queries(told: Told) -> Queries:
    return Queries(open_store(told.reader_dsn))


def whole_day(told: Told) -> TimeRange:
    return TimeRange(told.now - timedelta(days=2), told.now + timedelta(minutes=1))


def rows_in(path: Path) -> list[dict[str, Any]]:
    with zipfile.ZipFile(path) as archive:
        manifest = Manifest.model_validate_json(archive.read(MANIFEST))
        data = archive.read(manifest.data.file)
    return list(decoded(io.BytesIO(data), manifest.data.encoding))


def rewritten(path: Path, change: Callable[[dict[str, bytes]], None]) -> Path:
    """Return a copy of an export with its members changed."""
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    change(members)
    copy = path.with_name("changed.zip")
    with zipfile.ZipFile(copy, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return copy


@pytest.fixture
def exported(queries: Queries, told: Told, tmp_path: Path) -> Path:
    target = tmp_path / "day.zip"
    export_events(queries, whole_day(told), EVERYTHING, None, target, Terms(exporter=ANA))
    return target


@BOTH
def test_an_export_holds_every_event_and_says_what_it_is(
    queries: Queries, told: Told, tmp_path: Path, encoding: Encoding
) -> None:
    """S-13: what is exported is what was recorded, value for value; the manifest says the rest."""
    target = tmp_path / "day.zip"
    terms = Terms(exporter=ANA, encoding=encoding, expected_producers=1, now=told.now)
    manifest = export_events(queries, whole_day(told), EVERYTHING, None, target, terms)
    rows = rows_in(target)
    assert {row["event_id"] for row in rows} == {one.event_id for one in told.story.events}
    recorded = {one.event_id: one for one in told.story.events}
    for row in rows:
        event = recorded[row["event_id"]]
        assert row["nonce"] == event.nonce
        assert row["client_address"] == event.client_address
        assert row["sequence"] == event.sequence
        assert row["ledgered"] is event.ledgered
        assert datetime.fromisoformat(row["occurred_at"]) == event.occurred_at
        assert row["plan_summary"] == event.plan_summary
    assert manifest.data.rows == len(rows) == len(told.story.events)
    with zipfile.ZipFile(target) as archive:
        data = archive.read(manifest.data.file)
        said = json.loads(archive.read(MANIFEST))
    assert said["data"]["sha256"] == hashlib.sha256(data).hexdigest()
    assert said["data"]["bytes"] == len(data)
    assert said["exporter"] == {"principal": "ana@corp.example", "subject": "s-1"} | {
        "role": "investigator"
    }
    assert said["completeness"]["state"] == "complete"
    assert said["completeness"]["producers_expected"] == 1
    assert said["completeness"]["asked_at"] == said["made_at"]
    assert (said["format"], said["version"]) == ("approvaltrail-export/1", "0.1.0")
    assert said["start"].endswith("Z")
    assert str(verify_export(target)) == f"verified: {len(rows):,} events"
    assert target.stat().st_mode & 0o077 == 0


def test_a_trail_is_exported_whole_whatever_its_length(new_store: Make, tmp_path: Path) -> None:
    """More reuses than a page shows: all of them leave, newest first, over page bounds."""
    store, reader = new_store()
    now = datetime.now(UTC)
    story = Story(now - timedelta(minutes=5))
    call = story.call()
    nonce = story.issue(call)
    story.after(seconds=1).accept(call, nonce, outcome=None)
    for number in range(2_300):
        if number % 700 == 0:  # many share an instant, over the bound of a page
            story.after(seconds=1)
        story.replay(call, nonce)
    store_story(store, story.events, now)
    queries = Queries(open_store(reader))
    manifest = export_trail(queries, nonce, EVERYTHING, tmp_path / "t.zip", Terms(exporter=ANA))
    rows = rows_in(tmp_path / "t.zip")
    assert manifest.data.rows == len(story.events) == len({row["event_id"] for row in rows})
    times = [row["occurred_at"] for row in rows]
    assert times == sorted(times, reverse=True)
    assert manifest.query.nonce == nonce
    assert file_name(manifest).startswith("approvaltrail-trail-")
    found = verify_export(tmp_path / "t.zip", against=queries)
    assert str(found) == "verified: 2,302 events"


def test_whole_pages_of_one_instant_are_read_once(new_store: Make) -> None:
    """Where one microsecond holds more than a page, nothing is left out and nothing comes twice."""
    store, reader = new_store()
    now = datetime.now(UTC)
    story = Story(now - timedelta(minutes=5))
    for _ in range(2_050):
        story.refuse(story.call(), Reason.MISSING_TOKEN)
    story.after(seconds=1).refuse(story.call(), Reason.MISSING_TOKEN)
    store_story(store, story.events, now)
    span = TimeRange(now - timedelta(hours=1), now)
    source = Source(
        queries=Queries(open_store(reader)),
        time_range=span,
        scope=EVERYTHING,
        wanted=EventFilter(),
    )
    found = [one.event.event_id for one in source]
    assert sorted(found) == sorted(one.event_id for one in story.events)


def test_more_than_the_cap_is_refused_with_its_name(
    queries: Queries, told: Told, tmp_path: Path
) -> None:
    """The error says how many there are and which setting caps them; no half file stays."""
    terms = Terms(exporter=ANA, maximum_rows=10)
    with pytest.raises(TooManyRowsError, match=r"at most 10 \(APPROVALTRAIL_EXPORT_ROWS\)"):
        export_events(queries, whole_day(told), EVERYTHING, None, tmp_path / "x.zip", terms)
    assert list(tmp_path.iterdir()) == []


def test_an_export_stays_within_the_scope(queries: Queries, told: Told, tmp_path: Path) -> None:
    """A viewer of one tenant takes away that tenant's events, and learns how many are withheld."""
    target = tmp_path / "x.zip"
    acme = TenantScope.only("acme")
    export_events(queries, whole_day(told), acme, None, target, Terms(exporter=ANA))
    assert {row["tenant"] for row in rows_in(target)} == {"acme"}
    stolen = told.nonce_of(reason=Reason.WRONG_TENANT)
    manifest = export_trail(queries, stolen, acme, target, Terms(exporter=ANA))
    assert manifest.withheld == 1
    assert {row["tenant"] for row in rows_in(target)} == {"acme"}
    assert manifest.query.tenant == "acme"


def test_a_filter_is_part_of_the_manifest(queries: Queries, told: Told, tmp_path: Path) -> None:
    """Who reads the evidence knows what was asked."""
    wanted = EventFilter(event_type=EventType.REPLAYED, tool="tidb_delete_cluster")
    target = tmp_path / "x.zip"
    manifest = export_events(
        queries, whole_day(told), EVERYTHING, wanted, target, Terms(exporter=ANA)
    )
    assert manifest.query.filter == {"event_type": "replayed", "tool": "tidb_delete_cluster"}
    assert {row["event_type"] for row in rows_in(target)} == {"replayed"}
    assert verify_export(target, against=queries).verified


def test_reuses_are_exported_as_the_page_lists_them(
    queries: Queries, told: Told, tmp_path: Path
) -> None:
    """Every presentation after an acceptance, whatever came of it; or the strict replays alone."""
    target = tmp_path / "x.zip"
    for wanted, expected in (
        (ReuseFilter(), told.reuses),
        (
            ReuseFilter(strict_replays_only=True),
            [one for one in told.reuses if one.event_type is EventType.REPLAYED],
        ),
    ):
        manifest = export_events(
            queries, whole_day(told), EVERYTHING, wanted, target, Terms(exporter=ANA)
        )
        assert [row["event_id"] for row in rows_in(target)] == [one.event_id for one in expected]
        assert manifest.query.kind == "reuses"
        assert verify_export(target, against=queries).verified
    assert manifest.query.filter == {"strict_replays_only": "True"}


@pytest.mark.parametrize(
    "text", ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "\n=1", " =1", "＝1", "'=1", "'", ""]
)
def test_no_cell_is_a_formula(text: str) -> None:
    """What a spreadsheet would run begins with an apostrophe, which takes it off again."""
    assert neutral(text).startswith("'")
    assert original(neutral(text)) == text


@given(st.text() | st.none() | st.sampled_from(["=x", "'", "true", "12"]))
def test_any_text_comes_back_from_a_cell(text: str | None) -> None:
    """Neutral is reversible, for every text, and no value stays no value."""
    cell = cell_of(text)
    assert value_of("target", cell) == text
    assert not cell.lstrip().startswith(("=", "+", "-", "@"))


@given(st.lists(st.text(st.characters(codec="utf-8")), min_size=len(NAMES), max_size=len(NAMES)))
def test_any_row_comes_back_from_either_encoding(texts: list[str]) -> None:
    """Separators, quotes, line breaks and controls in a text move no boundary."""
    row: dict[str, Any] = dict(zip(NAMES, texts, strict=True))
    row |= {"sequence": 2**63 - 1, "kafka_partition": 3, "kafka_offset": 9, "ledgered": False}
    row |= {"attributes": [["a", texts[0]]], "nonce": None}
    row[HASH] = digest(row)
    for encoding in Encoding:
        data = b"".join(encoded([row, row], encoding))
        assert list(decoded(io.BytesIO(data), encoding)) == [row, row]


def test_a_csv_of_hostile_texts_is_data_in_a_spreadsheet(
    hostile_story: tuple[str, Story, list[str]], tmp_path: Path
) -> None:
    """No cell of a whole export begins as a formula does."""
    reader, story, _ = hostile_story
    span = TimeRange(story.now - timedelta(days=1), story.now + timedelta(days=1))
    target = tmp_path / "x.zip"
    terms = Terms(exporter=ANA, encoding=Encoding.CSV)
    export_events(Queries(open_store(reader)), span, EVERYTHING, None, target, terms)
    with zipfile.ZipFile(target) as archive:
        text = archive.read("events.csv").decode("utf-8")
    cells = [cell for row in csv.reader(io.StringIO(text, newline="")) for cell in row]
    assert len(cells) > 500
    assert [one for one in cells if one.lstrip().startswith(("=", "+", "-", "@"))] == []
    assert verify_export(target).verified


def test_s_09_no_token_leaves_in_an_export(queries: Queries, told: Told, tmp_path: Path) -> None:
    """S-09, S-10: a canary in a row, filter or nonce is taken out; what stands around it stays."""
    stored = queries.events(whole_day(told), EVERYTHING, None, 1).events[0]
    spoilt = stored.event.model_copy(
        update={"target": f"before {CANARY} after", "attributes": (("note", CANARY),)}
    )
    row = row_of(replace(stored, event=spoilt))
    assert row["target"] == "before [token removed] after"
    assert row["attributes"] == [["note", "[token removed]"]]
    target = tmp_path / "x.zip"
    for asked in (EventFilter(text=CANARY), EventFilter(principal=f"x {CANARY}")):
        export_events(queries, whole_day(told), EVERYTHING, asked, target, Terms(exporter=ANA))
        with zipfile.ZipFile(target) as archive:
            everything = b"".join(map(archive.read, archive.namelist()))
        assert b"token removed" in everything
        assert CANARY.encode() not in everything
        assert CANARY.split(".")[2].encode() not in everything
    exporter = Exporter(principal=CANARY)
    manifest = export_events(
        queries, whole_day(told), EVERYTHING, None, target, Terms(exporter=exporter)
    )
    assert CANARY.encode() not in manifest.encoded()


@BOTH
def test_s_17_a_changed_value_is_found_and_the_event_named(
    queries: Queries, told: Told, tmp_path: Path, encoding: Encoding
) -> None:
    """S-17: another principal in one row fails, and the verifier names that event."""
    target = tmp_path / "x.zip"
    terms = Terms(exporter=ANA, encoding=encoding)
    export_events(queries, whole_day(told), EVERYTHING, None, target, terms)
    victim = next(row for row in rows_in(target) if row["principal"] == "mika@corp.example")

    def change(members: dict[str, bytes]) -> None:
        name = encoding.file_name
        lines = members[name].splitlines(keepends=True)
        index = next(i for i, line in enumerate(lines) if victim["event_id"].encode() in line)
        lines[index] = lines[index].replace(b"mika@", b"nina@")
        members[name] = b"".join(lines)

    found = verify_export(rewritten(target, change))
    assert not found.verified
    assert victim["event_id"] in str(found)
    assert "was changed" in str(found)


@pytest.mark.parametrize("where", [0, 17, 400, -400, -2])
def test_s_17_any_byte_that_changed_is_found(exported: Path, where: int) -> None:
    """S-17: one flipped bit anywhere in the data and it is not verified."""

    def flip(members: dict[str, bytes]) -> None:
        data = bytearray(members["events.ndjson"])
        data[where] ^= 1
        members["events.ndjson"] = bytes(data)

    assert str(verify_export(rewritten(exported, flip))).startswith("not verified: ")


def test_s_17_a_row_that_changed_in_the_store_is_found(new_store: Make, tmp_path: Path) -> None:
    """S-17: compared with the store, an event that was changed there after the export is named."""
    store, reader = new_store()
    now = datetime.now(UTC)
    story = Story(now - timedelta(minutes=5))
    call = story.call()
    nonce = story.issue(call)
    story.after(seconds=1).accept(call, nonce)
    store_story(store, story.events, now)
    queries = Queries(open_store(reader))
    export_trail(queries, nonce, EVERYTHING, tmp_path / "x.zip", Terms(exporter=ANA))
    assert verify_export(tmp_path / "x.zip", against=queries).verified
    victim = story.events[1]
    store.command(
        "ALTER TABLE events UPDATE principal = 'nobody' WHERE event_id = {id:UUID}",
        settings={"mutations_sync": 1},
        parameters={"id": victim.event_id},
    )
    found = verify_export(tmp_path / "x.zip", against=queries)
    assert str(found).startswith(f"not verified: event {victim.event_id} is another in the store")


def _without(name: str) -> Callable[[dict[str, bytes]], None]:
    return lambda members: members.pop(name) and None


def _manifest(**changed: Any) -> Callable[[dict[str, bytes]], None]:
    def change(members: dict[str, bytes]) -> None:
        said = json.loads(members[MANIFEST])
        for path, value in changed.items():
            part, _, name = path.rpartition("__")
            (said[part] if part else said)[name] = value
        members[MANIFEST] = json.dumps(said).encode()

    return change


def _short(members: dict[str, bytes]) -> None:
    members["events.ndjson"] = members["events.ndjson"].split(b"\n", 1)[1]


def _twice(members: dict[str, bytes]) -> None:
    line = members["events.ndjson"].split(b"\n", 1)[0] + b"\n"
    data = line + members["events.ndjson"]
    members["events.ndjson"] = data
    _manifest(
        data__bytes=len(data), data__sha256=hashlib.sha256(data).hexdigest(), data__rows=999_999
    )(members)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (_without(MANIFEST), "it has no manifest.json"),
        (_without("events.ndjson"), "cannot be read"),
        (_manifest(format="approvaltrail-export/9"), "the manifest cannot be read at format"),
        (_manifest(data__rows=3), "the manifest speaks of 3 events"),
        (_manifest(data__sha256="0" * 64), "SHA-256 is not the manifest's"),
        (_manifest(data__columns=[]), "its columns are not those of an export"),
        (_manifest(data__columns=["event_id"]), "its columns are not those of an export"),
        (_manifest(data__bytes=10), "longer than the manifest's 10 bytes"),
        (_manifest(data__file="../../etc/passwd"), "the manifest cannot be read at data.file"),
        (_manifest(start="2099-01-01T00:00:00Z", end="2099-01-02T00:00:00Z"), "outside of the"),
        (_manifest(query__tenant="acme"), "another tenant"),
        (_short, "another length"),
        (_twice, "stands in it twice"),
        (lambda members: members.update({MANIFEST: b"{"}), "the manifest cannot be read"),
        (lambda members: members.update({MANIFEST: b"[" * 100_000}), "the manifest cannot be read"),
    ],
)
def test_s_18_what_cannot_be_checked_is_not_verified(
    exported: Path, change: Callable[[dict[str, bytes]], None], reason: str
) -> None:
    """S-18: a missing manifest, a missing file or numbers that do not agree are never success."""
    found = verify_export(rewritten(exported, change))
    assert not found.verified
    assert str(found).startswith("not verified: ")
    assert reason in str(found)
    assert "read)" in str(found)


@pytest.mark.parametrize(
    ("name", "reason"),
    [("notes.txt", "more files than"), ("events.ndjson", "two files of one name")],
)
def test_s_18_a_member_that_nobody_checks_is_refused(
    exported: Path, name: str, reason: str
) -> None:
    """S-18: a file beside the two, or a second one of a name, would ride on a good answer."""
    with zipfile.ZipFile(exported, "a") as archive, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        archive.writestr(name, b"unchecked")
    found = verify_export(exported)
    assert not found.verified
    assert reason in str(found)


def test_s_17_what_a_manifest_says_is_proven_by_its_hash(exported: Path) -> None:
    """S-17: who exported is repeated, not proven, unless the hash that was kept is given."""
    with zipfile.ZipFile(exported) as archive:
        kept = Manifest.model_validate_json(archive.read(MANIFEST)).sha256()
    assert verify_export(exported).manifest_sha256 == kept
    assert verify_export(exported, manifest_sha256=kept.upper()).verified
    forged = rewritten(exported, _manifest(exporter__principal="somebody else"))
    assert verify_export(forged).verified
    found = verify_export(forged, manifest_sha256=kept)
    assert not found.verified
    assert "the manifest is another" in str(found)


def test_s_17_no_damage_to_the_archive_itself_raises(exported: Path, tmp_path: Path) -> None:
    """S-17: a byte changed inside a compressed member is found, whatever the decompressor says."""
    whole = exported.read_bytes()
    with zipfile.ZipFile(exported) as archive:
        starts = [one.header_offset + 30 + len(one.filename) for one in archive.infolist()]
    damaged = tmp_path / "damaged.zip"
    found = 0
    for start in starts:
        for offset in range(0, 120, 3):
            changed = bytearray(whole)
            changed[start + offset] ^= 0x5A
            damaged.write_bytes(changed)
            if verify_export(damaged).verified:  # a byte of a header that says nothing of content
                assert content(damaged) == content(exported)
            else:
                found += 1
    assert found > 30


def content(path: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def test_s_18_what_is_neither_file_nor_folder_is_not_read(tmp_path: Path) -> None:
    """S-18: a pipe or a device, which may never end, is not an export."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for path in (pipe, Path("/dev/zero")):
        assert "neither a file nor a folder" in str(verify_export(path))


def test_s_18_an_empty_range_is_not_verified(queries: Queries, told: Told, tmp_path: Path) -> None:
    """S-18: nothing was checked, so nothing is verified; it says that it read 0 events."""
    long_ago = TimeRange(told.now - timedelta(days=900), told.now - timedelta(days=899))
    target = tmp_path / "x.zip"
    export_events(queries, long_ago, EVERYTHING, None, target, Terms(exporter=ANA))
    found = verify_export(target)
    assert str(found) == (
        "not verified: it holds no events, so nothing could be checked (0 events read)"
    )


def test_s_18_what_is_no_export_is_not_verified(tmp_path: Path) -> None:
    """S-18: no file, an empty folder, and a file of something else."""
    (tmp_path / "text.zip").write_text("hello")
    (tmp_path / "empty").mkdir()
    for name in ("missing.zip", "text.zip", "empty"):
        assert not verify_export(tmp_path / name).verified
    assert "no such file" in str(verify_export(tmp_path / "missing.zip"))
    assert "no ZIP file" in str(verify_export(tmp_path / "text.zip"))


def test_an_unpacked_export_is_verified_too(exported: Path, tmp_path: Path) -> None:
    """The folder into which the file was unpacked serves as well."""
    with zipfile.ZipFile(exported) as archive:
        archive.extractall(tmp_path / "unpacked")
    assert verify_export(tmp_path / "unpacked").verified


def test_a_row_is_the_same_whatever_reads_it(queries: Queries, told: Told) -> None:
    """The hash of a row does not depend on the encoding or on the order of its fields."""
    stored: StoredEvent = queries.events(whole_day(told), EVERYTHING, None, 1).events[0]
    row = row_of(stored)
    assert digest(dict(reversed(row.items()))) == row[HASH]
