"""Runs as one of the deployment's ClickHouse users, in ClickHouse's real engine.

    python -m tests.deployment.store_as USER DATA_FOLDER < statements.json

The engine in this process knows one user, `default`; so the user in question is given that name,
with its own profile and grants as `deploy/clickhouse/users.xml` has them. The others keep theirs.
One engine a process, so each user needs a process.
"""

from __future__ import annotations

import json
import sys
import tempfile
import xml.etree.ElementTree as ET
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from deploy.make_secrets import STORE_USERS

from approvaltrail.store.answers import EventFilter, ReuseFilter, TenantScope, TimeRange
from approvaltrail.store.connection import Address, Store
from approvaltrail.store.errors import StoreRefusedError
from approvaltrail.store.migrations import check_migrated, migrate
from approvaltrail.store.queries import Queries

USERS = Path(__file__).parents[2] / "deploy" / "clickhouse" / "users.xml"
EVERYTHING = "everything"
"""A user with all rights, who prepares what the server's own configuration prepares."""


def configuration(user: str, folder: Path) -> Path:
    """Write a configuration in which `user` is the one that this process is."""
    root = ET.parse(USERS).getroot()
    _text(root, "include_from", str(folder / "passwords.xml"))
    digests = "".join(
        f"<{name}_password_sha256>{'0' * 64}</{name}_password_sha256>" for name in STORE_USERS
    )
    (folder / "passwords.xml").write_text(f"<clickhouse>{digests}</clickhouse>")
    users = root.find("users")
    assert users is not None
    users.remove(users.find("default"))
    if user == EVERYTHING:
        mine = ET.SubElement(users, "default")
        _text(ET.SubElement(mine, "networks"), "ip", "::/0")
        _text(mine, "profile", "default")
        _text(mine, "quota", "default")
        _text(mine, "access_management", "1")
    else:
        mine = users.find(user)
        assert mine is not None
        mine.tag = "default"
        mine.remove(mine.find("password_sha256_hex"))
    ET.SubElement(mine, "no_password")
    ET.SubElement(ET.SubElement(root, "quotas"), "default")
    ET.SubElement(root.find("profiles"), "default")
    ET.ElementTree(root).write(folder / "users.xml")
    file = folder / "server.xml"
    file.write_text(f"<clickhouse><users_config>{folder}/users.xml</users_config></clickhouse>")
    return file


def _text(parent: ET.Element, tag: str, text: str) -> None:
    found = parent.find(tag)
    (ET.SubElement(parent, tag) if found is None else found).text = text


def attempt(store: Store, statement: str) -> str:
    """Run a statement; return `ok`, or the engine's code for its refusal."""
    try:
        match statement:
            case "migrate":
                migrate(store)
            case "check_migrated":
                check_migrated(store)
            case "every named query":
                ask_everything(store)
            case _:
                store.command(statement)
    except StoreRefusedError as refusal:
        return str(refusal.code)
    return "ok"


def ask_everything(store: Store) -> None:
    """Ask what the pages ask."""
    queries, scope = Queries(store), TenantScope.everything()
    now = datetime.now(UTC)
    day = TimeRange(now - timedelta(days=1), now)
    queries.overview(day, scope)
    queries.trail("A" * 22, scope)
    queries.reuses(day, scope, ReuseFilter(), 10, 0)
    queries.events(day, scope, EventFilter(), 10, 0)
    queries.completeness(scope, now)
    queries.dead_letters(scope, 10)


def main() -> None:
    """Answer one line of JSON: what came of each statement."""
    user, data = sys.argv[1:]
    statements = json.load(sys.stdin)
    with tempfile.TemporaryDirectory() as folder:
        # chDB reads settings behind a path, which no DSN may give it
        path = f"{data}?config-file={configuration(user, Path(folder))}"
        address = replace(Address.of(f"chdb://{data}?database=approvaltrail"), folder=path)
        with Store(address, read_only=False, timeout_seconds=60) as store:
            results = {statement: attempt(store, statement) for statement in statements}
    sys.stdout.write(json.dumps(results) + "\n")


if __name__ == "__main__":
    main()
