"""The slowest files begin first, so that no worker is left with one while the others have ended.

Workers share the suite file by file (`--dist loadfile`), in the order of collection.
"""

from __future__ import annotations

from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SECONDS = {
    "tests/cli/test_whole_way.py": 72,
    "tests/dashboard/test_browser_looks.py": 70,
    "tests/dashboard/test_sign_in.py": 58,
    "tests/dashboard/test_browser_paths.py": 58,
    "tests/dashboard/test_browser_refresh.py": 50,
    "tests/gate/test_races.py": 46,
    "tests/local/test_broker.py": 42,
    "tests/consumers/test_broker_outage.py": 32,
    "tests/consumers/test_hostile.py": 60,
    "tests/local/test_startup_cache.py": 50,
    "tests/consumers/test_confluent_framing.py": 30,
    "tests/chaos/test_kills.py": 28,
    "tests/chaos/test_sinks_in_a_group.py": 28,
    "tests/chaos/test_flood.py": 27,
    "tests/producer/test_relay_faults.py": 27,
    "tests/dashboard/test_browser_time.py": 24,
    "tests/packaging/test_distributions.py": 25,
    "tests/store/test_writing.py": 23,
    "tests/consumers/test_faults.py": 23,
    "tests/gate/test_ledger_faults.py": 22,
    "tests/server/test_processes.py": 21,
    "tests/store/test_exactness.py": 20,
    "tests/dashboard/test_pages.py": 20,
    "tests/deployment/test_acls.py": 18,
    "tests/cli/test_answers.py": 18,
    "tests/consumers/test_poison.py": 17,
    "tests/consumers/test_crash.py": 17,
    "tests/producer/test_bounds.py": 16,
    "tests/contract/test_encoding.py": 15,
    "tests/store/test_completeness.py": 13,
    "tests/deployment/test_entry_points.py": 12,
    "tests/consumers/test_members.py": 12,
    "tests/consumers/test_delivery.py": 12,
    "tests/local/test_engine_process.py": 12,
    "tests/producer/test_damage.py": 12,
    "tests/store/test_trails.py": 11,
    "tests/gate/test_state_machine.py": 11,
    "tests/local/test_engine_client.py": 11,
    "tests/consumers/test_side_by_side.py": 10,
    "tests/gate/test_sql_ledger.py": 10,
    "tests/consumers/test_block.py": 10,
    "tests/deployment/test_broker_image.py": 10,
    "tests/dashboard/test_labels.py": 10,
    "tests/dashboard/test_investigation_pages.py": 10,
    "tests/chaos/test_cloned_journal.py": 9,
    "tests/gate/test_ledgers.py": 9,
    "tests/dashboard/test_export.py": 8,
    "tests/gate/test_sql_settings.py": 8,
    "tests/consumers/test_process.py": 8,
    "tests/dashboard/test_hostile_text.py": 8,
    "tests/deployment/test_store_users.py": 8,
}
"""About how long each takes on a calm machine; what is not listed takes less."""


def slowest_first(items: list[pytest.Item]) -> None:
    """Put the files that take long before the others; the order within a file stays."""
    items.sort(key=lambda item: -SECONDS.get(item.path.relative_to(ROOT).as_posix(), 0))
