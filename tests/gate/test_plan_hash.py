"""What the plan hash covers, and what it cannot confuse."""

from __future__ import annotations

import json
import math
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from tests.gate.common import plan

from approvaltrail.gate import Plan, PlanError, plan_hash
from approvaltrail.gate.leaves import leaf_text
from approvaltrail.gate.plan import PLAN_BYTES, canonical_plan
from approvaltrail.gate.values import CIRCULAR, MAXIMUM_DEPTH, MAXIMUM_VALUES, frozen_details

EMOJI, LIGATURE = "\U0001f600", "\ufb33"
HASH_OF_FIXED = "cc47f957242a1c484b6825b9a14daef442b1bdacc166824e04bf04d0e808f98b"
HASH_OF_UTF16 = "783d6aa619e8985f5a99916111b1c1579f829fd6afa5718b9c3c1e9d4ba25abe"
leaves = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text(alphabet=st.characters(codec=None), max_size=12)
)
trees = st.recursive(
    leaves,
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=6), inner, max_size=4)
    ),
    max_leaves=12,
)
details = st.dictionaries(st.text(max_size=6), trees, max_size=4)


def reduced(value: Any) -> Any:
    """Reduce by the documented rule: containers stay, leaves become their text."""
    if isinstance(value, dict):
        return {key: reduced(item) for key, item in value.items()}
    if isinstance(value, list):
        return [reduced(item) for item in value]
    return (leaf_text(value),)


def shuffled(value: Any) -> Any:
    """Reverse the insertion order of every mapping."""
    if isinstance(value, dict):
        return {key: shuffled(value[key]) for key in reversed(list(value))}
    return [shuffled(item) for item in value] if isinstance(value, list) else value


def test_the_canonical_form_and_hash_are_fixed() -> None:
    """G3: these very bytes are hashed; a change of any of them refuses outstanding tokens."""
    fixed = Plan(
        tool="tidb_delete_cluster",
        target="prod-7",
        action="delete cluster",
        summary="delete cluster prod-7",
        details={"nodes": 3, "tags": ["a", None], "note": "é"},
        reversible=False,
    )
    assert canonical_plan(fixed) == (
        b"approvaltrail plan v1\n"
        b"s19:tidb_delete_cluster"
        b"s6:prod-7"
        b"s14:delete cluster"
        b"s21:delete cluster prod-7"
        b"m3:s5:nodess1:3s4:notes2:\xc3\xa9s4:tagsl2:s1:as4:null"
        b"s5:false"
    )
    assert plan_hash(fixed) == HASH_OF_FIXED


@pytest.mark.parametrize(
    "change",
    [
        {"tool": "tidb_delete_branch"},
        {"target": "prod-8"},
        {"target": ""},
        {"target": None},
        {"action": "delete"},
        {"summary": "delete it"},
        {"details": {"nodes": 3}},
        {"details": {"nodes": 3, "backups": 3}},
        {"reversible": True},
    ],
)
def test_every_field_of_a_plan_is_bound(change: dict[str, Any]) -> None:
    """G3: a change of tool, target, action, summary, details or reversible changes the hash."""
    assert plan_hash(plan(**change)) != plan_hash(plan())


def test_an_absent_target_is_no_text() -> None:
    """G-05: an absent target, an empty one and one named null are three plans."""
    assert len({plan_hash(plan(target=target)) for target in (None, "", "null", "n")}) == 4


def test_leaves_hash_as_they_read() -> None:
    """G3: the hash carries no types of leaves: 1, 1.0 and "1" are one, and so they read."""
    for alike in ([1, 1.0, "1"], [True, "true"], [None, "null"], [1e21, "1e+21"]):
        assert len({plan_hash(plan(details={"v": value})) for value in alike}) == 1


def test_no_details_are_empty_details() -> None:
    """G3: details that are absent, None or empty are the same."""
    empty: list[Any] = [None, {}]
    assert len({plan_hash(plan(details=value)) for value in empty}) == 1


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"a": "1,b:2"}, {"a": "1", "b": "2"}),
        ({"a": ["x", "y"]}, {"a": ["x,y"]}),
        ({"a": ["x", ["y"]]}, {"a": [["x"], "y"]}),
        ({"a": []}, {"a": {}}),
        ({"a": []}, {"a": ""}),
        ({"a": {}}, {"a": "{}"}),
        ({"a:1": "b"}, {"a": "1:b"}),
        ({"as1:b": "c"}, {"a": "s1:bc"}),
        ({"a": "s1:b"}, {"a": ["b"]}),
        ({"a": None}, {}),
        ({"": "a"}, {"a": ""}),
    ],
)
def test_structure_cannot_be_spelt_by_text(one: dict[str, Any], other: dict[str, Any]) -> None:
    """G-06: a text with separators in it never passes for structure."""
    assert plan_hash(plan(details=one)) != plan_hash(plan(details=other))


@given(details, details)
def test_hashes_are_equal_exactly_where_the_docs_say(
    one: dict[str, Any], other: dict[str, Any]
) -> None:
    """G-06: two details hash alike if and only if they differ in types of leaves at most."""
    alike = plan_hash(plan(details=one)) == plan_hash(plan(details=other))
    assert alike is (reduced(one) == reduced(other))


@given(details)
def test_order_of_keys_and_a_json_round_trip_change_nothing(value: dict[str, Any]) -> None:
    """G3: insertion order never enters the hash, nor does a way through JSON."""
    expected = plan_hash(plan(details=value))
    assert plan_hash(plan(details=shuffled(value))) == expected
    assert plan_hash(plan(details=json.loads(json.dumps(value)))) == expected


@given(st.tuples(st.text(min_size=1, max_size=9), st.text(max_size=9), st.text(min_size=1)))
def test_text_cannot_move_between_fields(fields: tuple[str, str, str]) -> None:
    """G-06: moving a character from one field to the next changes the hash."""
    tool, target, action = fields
    assume(len(tool) > 1 and len(action) < 100)
    moved = plan(tool=tool[:-1], target=tool[-1] + target, action=action)
    assert plan_hash(moved) != plan_hash(plan(tool=tool, target=target, action=action))


def test_keys_sort_by_utf16_code_units() -> None:
    """G-09: the one order is that of UTF-16 code units, where U+1F600 comes before U+FB33."""
    one = {"x": {LIGATURE: 1, EMOJI: 2}, LIGATURE: 3, EMOJI: 4}
    other = {EMOJI: 4, LIGATURE: 3, "x": {EMOJI: 2, LIGATURE: 1}}
    assert list(frozen_details(one)) == ["x", EMOJI, LIGATURE]
    assert plan_hash(plan(details=one)) == plan_hash(plan(details=other)) == HASH_OF_UTF16


def test_a_circular_reference_cannot_take_out_a_preflight() -> None:
    """G3: a container that holds itself is cut where it repeats; the plan hashes and shows."""
    loop: dict[str, Any] = {"name": "a"}
    loop["self"] = loop
    ring: list[Any] = []
    ring.append(ring)
    made = plan(details={"loop": loop, "ring": ring, "huge": 10**10_000, "nan": math.nan})
    assert made.details["loop"]["self"] == CIRCULAR
    assert made.details["ring"] == (CIRCULAR,)
    assert plan_hash(made) == plan_hash(plan(details=dict(made.details)))


def test_the_same_value_twice_is_no_circle() -> None:
    """A value that stands in two places is shown in both."""
    shared = {"a": 1}
    made = plan(details={"one": shared, "two": [shared, shared]})
    assert made.values()["details"] == {"one": {"a": 1}, "two": [{"a": 1}, {"a": 1}]}


def test_a_plan_is_cut_off_from_what_it_was_made_of() -> None:
    """G-02: nobody holds a reference through which a plan could change."""
    nodes = [1, 2]
    given_details: dict[str, Any] = {"nodes": nodes}
    made = plan(details=given_details)
    before = plan_hash(made)
    nodes.append(3)
    given_details["more"] = True
    assert plan_hash(made) == before
    with pytest.raises(TypeError):
        made.details["nodes"] = ()  # type: ignore[index]
    with pytest.raises(AttributeError):
        made.target = "other"  # type: ignore[misc]


def test_dates_and_enums_stand_as_their_texts() -> None:
    """A date is its ISO text, so that it reads and hashes the same on every instance."""
    at = datetime(2026, 1, 2, tzinfo=UTC)
    assert plan(details={"at": at}).details["at"] == "2026-01-02T00:00:00+00:00"


@pytest.mark.parametrize(
    "unsuitable",
    [{"v": object()}, {"v": {1, 2}}, {"v": b"x"}, {1: "a", "1": "b"}, {("k",): 1}],
)
def test_what_may_show_itself_differently_is_refused(unsuitable: dict[Any, Any]) -> None:
    """G4: a value without one stable text is an error of the plan's maker, found at once."""
    with pytest.raises(PlanError):
        plan(details=unsuitable)


def nested(depth: int) -> dict[str, Any]:
    """Make details nested to this depth."""
    value: dict[str, Any] = {}
    for _ in range(depth - 1):
        value = {"d": value}
    return value


def test_depth_and_count_are_bounded() -> None:
    """A plan nested too deep, or of too many values, is refused with the bound's name."""
    plan(details=nested(MAXIMUM_DEPTH))
    with pytest.raises(PlanError, match=str(MAXIMUM_DEPTH)):
        plan(details=nested(MAXIMUM_DEPTH + 1))
    plan(details={"v": list(range(MAXIMUM_VALUES - 2))})
    with pytest.raises(PlanError, match=str(MAXIMUM_VALUES)):
        plan(details={"v": list(range(MAXIMUM_VALUES - 1))})


def test_size_is_bounded_to_the_byte() -> None:
    """S-07: a plan of exactly the limit is taken, one byte more names size and limit."""
    frame = len(canonical_plan(plan(details={"v": "x" * 10_000}))) - 10_000
    plan(details={"v": "x" * (PLAN_BYTES - frame)})
    with pytest.raises(PlanError, match=f"{PLAN_BYTES + 1}.*{PLAN_BYTES}"):
        plan(details={"v": "x" * (PLAN_BYTES - frame + 1)})
    with pytest.raises(PlanError, match=str(PLAN_BYTES)):
        plan(details={"v": "x" * 2_000_000})
