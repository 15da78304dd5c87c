"""Links carry the view, and the dashboard starts closed to the outside."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.dashboard.browsing import started

from approvaltrail.dashboard.errors import AddressRefusedError
from approvaltrail.dashboard.launch import OPTIONS, serve
from approvaltrail.dashboard.markup import element
from approvaltrail.dashboard.view import CUSTOM, PRESETS, Choice

NOW = datetime(2026, 3, 9, 6, 0, 1, 250_000, tzinfo=UTC)


@pytest.mark.parametrize("name", PRESETS)
def test_a_preset_ends_just_after_now(name: str) -> None:
    """What was recorded this very second is in, and the length is what the name says."""
    found = Choice(range_name=name).at(NOW).time_range
    assert found.length == PRESETS[name]
    assert timedelta(0) < found.end - NOW <= timedelta(seconds=5)


def test_a_shared_link_is_absolute() -> None:
    """Tomorrow it shows the same."""
    href = Choice(range_name="1h").at(NOW).absolute_href("trail", nonce="n")
    query = {key: value[0] for key, value in parse_qs(urlsplit(href).query).items()}
    assert query == {
        "range": "custom",
        "from": "2026-03-09T05:00:05Z",
        "to": "2026-03-09T06:00:05Z",
        "nonce": "n",
    }
    again = Choice(range_name=CUSTOM, start=query["from"], end=query["to"])
    before = Choice(range_name="1h").at(NOW).time_range
    assert again.at(NOW + timedelta(days=9)).time_range == before


@given(st.text(min_size=1, max_size=60), st.text(max_size=30))
def test_any_value_survives_a_link(nonce: str, tenant: str) -> None:
    """Whatever a nonce or tenant holds, the link leads to our page with that value."""
    view = Choice(tenant=tenant).at(NOW)
    nonce = nonce.encode("utf-8", "replace").decode()
    href = view.href("trail", nonce=nonce)
    element("a", "here", href=href)
    assert parse_qs(urlsplit(href).query, keep_blank_values=True)["nonce"] == [nonce]


def test_the_default_view_makes_short_links() -> None:
    """What is usual is left out of the URL."""
    assert Choice().at(NOW).href("replays") == "replays"
    assert Choice(tenant="beta").at(NOW).href("events", type="issued") == (
        "events?tenant=beta&type=issued"
    )


def test_an_address_beyond_this_machine_is_refused() -> None:
    """Without sign-in nobody else may look."""
    with pytest.raises(AddressRefusedError, match="no sign-in"):
        serve(8501, "0.0.0.0")


def test_nothing_is_asked_of_other_hosts_and_nothing_is_told() -> None:
    """No usage statistics, no exception text, no export that leaves formulas as they are."""
    assert OPTIONS["browser.gatherUsageStats"] is False
    assert OPTIONS["client.showErrorDetails"] == "none"
    assert OPTIONS["client.disableDataExport"] is True
    assert OPTIONS["server.headless"] is True


def test_a_start_without_settings_names_what_lacks() -> None:
    """The command ends with code 2 and one line a setting."""
    kept = {name: value for name, value in os.environ.items() if "DSN" not in name}
    run = subprocess.run(
        [sys.executable, "-m", "approvaltrail.dashboard", "--port", "1"],
        env=kept,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert run.returncode == 2
    assert run.stderr.strip().splitlines()[-1] == "APPROVALTRAIL_DASHBOARD_DSN: is not set"


def test_ctrl_c_ends_the_dashboard_without_a_word(tmp_path: Path) -> None:
    """Whoever runs it by hand ends it so: exit code 0, and no traceback."""
    log = tmp_path / "log"
    process, url = started("http://reader:sesame@127.0.0.1:9/nothing", log)
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=30) == 0
    said = log.read_text("utf-8")
    assert url in said
    assert "Traceback" not in said
