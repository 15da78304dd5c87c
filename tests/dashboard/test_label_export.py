"""Reuses of one label are exported: all of the range, labelled as the pages label them."""

from __future__ import annotations

import json
import zipfile
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.dashboard.conftest import Told
from tests.dashboard.test_export import ANA, EVERYTHING, rewritten, rows_in, whole_day
from tests.dashboard.test_labels import a_retry

from approvaltrail.dashboard.export.labelled import LabelledReuses, labelled
from approvaltrail.dashboard.export.making import Terms, export_events
from approvaltrail.dashboard.export.manifest import MANIFEST, filter_of
from approvaltrail.dashboard.export.verifying import verify_export
from approvaltrail.schemas.events import Reason
from approvaltrail.store.answers import Reuse, ReuseFilter
from approvaltrail.store.connection import open_store
from approvaltrail.store.labels import LabelKind, LabelThresholds, label_of, recent_nonces
from approvaltrail.store.queries import Queries

LIMITS = st.builds(
    LabelThresholds,
    retry_window=st.integers(1, 600).map(lambda seconds: timedelta(seconds=seconds)),
    retry_reuses=st.integers(1, 9),
    caller_window=st.integers(1, 900).map(lambda seconds: timedelta(seconds=seconds)),
    caller_nonces=st.integers(2, 4),
)


BASE = a_retry()


def presented(second: int, who: str | None, nonce: str) -> Reuse:
    """Return a reuse at a second of an hour, by one of a few callers, of one of a few nonces."""
    event = BASE.presentation.event
    changed = event.model_copy(
        update={
            "occurred_at": event.occurred_at + timedelta(seconds=second),
            "principal": who,
            "credential_id": None,
            "nonce": nonce,
        }
    )
    return replace(BASE, presentation=replace(BASE.presentation, event=changed))


FEW_OF_EACH = st.builds(
    presented, st.integers(0, 3600), st.sampled_from(["ana", "bo", None]), st.sampled_from("klmn")
)


@given(st.lists(FEW_OF_EACH, max_size=30), LIMITS)
def test_labels_of_a_walk_are_those_of_the_whole(
    found: list[Reuse], limits: LabelThresholds
) -> None:
    """Holding one window of reuses gives each the label that all of them together give it."""
    order = sorted(found, key=lambda one: one.presentation.event.occurred_at, reverse=True)
    expected = [(one, label_of(one, limits, recent_nonces(one, order, limits))) for one in order]
    assert list(labelled(order, limits)) == expected


@given(
    LIMITS, st.sampled_from(LabelKind), st.builds(ReuseFilter, strict_replays_only=st.booleans())
)
def test_what_was_asked_reads_back_from_a_manifest(
    limits: LabelThresholds, label: LabelKind, wanted: ReuseFilter
) -> None:
    """Label, limits and filter survive being written down as text."""
    asked = LabelledReuses(wanted=wanted, label=label, limits=limits)
    assert LabelledReuses.of(filter_of(asked)) == asked


@pytest.fixture
def queries(told: Told) -> Queries:
    return Queries(open_store(told.reader_dsn))


def test_the_reuses_of_a_label_are_exported_and_verify(
    queries: Queries, told: Told, tmp_path: Path
) -> None:
    """What needs review and what is consistent with a retry are all reuses, and each is in one."""
    ids = {}
    for label in LabelKind:
        wanted = LabelledReuses(wanted=ReuseFilter(), label=label)
        target = tmp_path / f"{label.value}.zip"
        manifest = export_events(
            queries, whole_day(told), EVERYTHING, wanted, target, Terms(exporter=ANA)
        )
        assert manifest.query.filter["label"] == label.value
        assert manifest.query.filter["label_retry_window"] == "120"
        ids[label] = {row["event_id"] for row in rows_in(target)}
        if ids[label]:
            assert verify_export(target, queries).verified
    retry = told.nonce_of(tool="tidb_create_backup")
    assert ids[LabelKind.CONSISTENT_WITH_RETRY] == {
        one.event_id for one in told.reuses if one.nonce == retry
    }
    assert set().union(*ids.values()) == {one.event_id for one in told.reuses}
    assert sum(map(len, ids.values())) == len(told.reuses)


def test_a_filter_narrows_what_is_exported_and_changes_no_label(
    queries: Queries, told: Told, tmp_path: Path
) -> None:
    """Tool and strictness choose rows; what else the caller did is still looked at."""
    wanted = ReuseFilter(tool="tidb_delete_cluster", strict_replays_only=True)
    asked = LabelledReuses(wanted=wanted, label=LabelKind.NEEDS_REVIEW)
    target = tmp_path / "strict.zip"
    export_events(queries, whole_day(told), EVERYTHING, asked, target, Terms(exporter=ANA))
    strict = {
        one.event_id
        for one in told.reuses
        if one.tool == "tidb_delete_cluster" and one.reason is Reason.ALREADY_USED
    }
    assert {row["event_id"] for row in rows_in(target)} == strict


def test_s_18_a_filter_that_cannot_be_read_is_not_verified(
    queries: Queries, told: Told, tmp_path: Path
) -> None:
    """S-18: a manifest that names a label nobody has is said to be unreadable."""
    asked = LabelledReuses(wanted=ReuseFilter(), label=LabelKind.NEEDS_REVIEW)
    target = tmp_path / "label.zip"
    export_events(queries, whole_day(told), EVERYTHING, asked, target, Terms(exporter=ANA))

    def spoil(members: dict[str, bytes]) -> None:
        manifest = json.loads(members[MANIFEST])
        manifest["query"]["filter"]["label"] = "harmless"
        members[MANIFEST] = json.dumps(manifest).encode()

    spoilt = rewritten(target, spoil)
    assert zipfile.is_zipfile(spoilt)
    assert str(verify_export(spoilt, queries)).startswith(
        "not verified: the manifest's filter cannot be read"
    )
