"""The pytest fixture `gate`: `from approvaltrail.gate.pytest_plugin import gate` in a conftest."""

from __future__ import annotations

import pytest

from approvaltrail.gate.testing import GateUnderTest


@pytest.fixture
def gate() -> GateUnderTest:
    """Give a gate with a clock that stands, a ledger and an event log in memory."""
    return GateUnderTest()
