"""Answers are kept for a moment, shared by those who wait, and never longer than they may be."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from itertools import count

import pytest

from approvaltrail.dashboard.asking import Asking
from approvaltrail.dashboard.kept import Kept
from approvaltrail.store.connection import open_store
from approvaltrail.store.queries import Queries

NOWHERE = "http://reader:sesame@127.0.0.1:9/nothing"


class Clock:
    """A clock that is set by hand."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_an_answer_is_asked_again_when_its_time_is_over() -> None:
    """Within its seconds it is given again, after them it is asked anew."""
    clock, answers = Clock(), count()
    kept = Kept(8, clock)
    assert [kept.get("key", 5, lambda: next(answers)) for _ in range(3)] == [0, 0, 0]
    clock.now = 5
    assert kept.get("key", 5, lambda: next(answers)) == 1
    assert kept.get("another", 5, lambda: next(answers)) == 2


def test_one_asks_and_the_others_wait() -> None:
    """Many who want the same at once are one question, however long the answer takes."""
    kept, asked = Kept(8), []
    begun, go = threading.Event(), threading.Event()

    def ask() -> str:
        asked.append(1)
        begun.set()
        go.wait(20)
        return "answer"

    with ThreadPoolExecutor(4) as pool:
        waiting = [pool.submit(kept.get, "key", 60, ask) for _ in range(4)]
        assert begun.wait(20)
        go.set()
        assert {one.result(20) for one in waiting} == {"answer"}
    assert len(asked) == 1


def test_a_failure_is_told_and_not_kept() -> None:
    """Whoever comes next asks again."""
    kept = Kept(8)

    def fail() -> str:
        raise OSError("no answer")

    with pytest.raises(OSError, match="no answer"):
        kept.get("key", 60, fail)
    assert kept.get("key", 60, lambda: "answer") == "answer"


def test_no_more_than_so_many_are_kept() -> None:
    """The oldest is forgotten first."""
    kept = Kept(2)
    for key in "abc":
        kept.get(key, 60, lambda key=key: key)
    assert kept.get("c", 60, lambda: "new") == "c"
    assert kept.get("a", 60, lambda: "new") == "new"


def test_what_is_asked_ahead_is_there_when_it_is_wanted_and_fails_quietly() -> None:
    """A page that asks meanwhile waits for the answer on its way; more than a bound is dropped."""
    asking = Asking(Queries(open_store(NOWHERE)))
    go, done = threading.Event(), threading.Event()
    asking.soon(asking.queries.tenants, None, None)  # fails, and nobody hears of it

    def ask() -> str:
        go.wait(20)
        done.set()
        return "asked ahead"

    asking.soon(asking.kept.get, "key", 60, ask)
    for _ in range(500):
        asking.soon(go.wait, 20)
    go.set()
    assert done.wait(20)
    assert asking.kept.get("key", 60, lambda: "asked by the page") == "asked ahead"
