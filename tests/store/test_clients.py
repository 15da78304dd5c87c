"""Clients are lent to one at a time, kept for whoever comes next, and never gather."""

from __future__ import annotations

import threading
from contextlib import ExitStack

import pytest

from approvaltrail.store.clients import Clients


class Client:
    """Knows only whether it was closed."""

    closed = False

    def close(self) -> None:
        """Close it."""
        self.closed = True


class Maker:
    """Makes clients and remembers them."""

    def __init__(self) -> None:
        self.made: list[Client] = []

    def __call__(self) -> Client:
        """Make one more."""
        self.made.append(Client())
        return self.made[-1]

    @property
    def open(self) -> int:
        """How many were not closed."""
        return sum(not one.closed for one in self.made)


def test_ended_threads_leave_no_clients() -> None:
    """Threads that ask one after another use the same client."""
    maker = Maker()
    clients = Clients(maker)

    def use() -> None:
        with clients.lent():
            pass

    for _ in range(50):
        thread = threading.Thread(target=use)
        thread.start()
        thread.join(30)
    assert len(maker.made) == 1


def test_a_client_in_use_is_lent_to_nobody_else() -> None:
    """Whoever asks meanwhile gets another client."""
    clients = Clients(Maker())
    with clients.lent() as one, clients.lent() as other:
        assert one is not other


def test_idle_clients_are_few() -> None:
    """After many were in use at once, most are closed."""
    maker = Maker()
    clients = Clients(maker)
    with ExitStack() as stack:
        for _ in range(40):
            stack.enter_context(clients.lent())
        assert maker.open == 40
    assert 1 <= maker.open <= 16


def test_closing_leaves_no_client_open() -> None:
    """Idle clients are closed at once and one in use when it comes back; more can be made."""
    maker = Maker()
    clients = Clients(maker)
    with clients.lent() as used:
        with clients.lent() as idle:
            pass
        clients.close()
        assert (idle.closed, used.closed) == (True, False)
    assert maker.open == 0
    with clients.lent() as fresh:
        assert not fresh.closed


def test_a_client_comes_back_after_an_error() -> None:
    """A refused statement does not cost its client."""
    maker = Maker()
    clients = Clients(maker)
    for _ in range(3):
        with pytest.raises(RuntimeError), clients.lent():
            raise RuntimeError
    assert (len(maker.made), maker.open) == (1, 1)
