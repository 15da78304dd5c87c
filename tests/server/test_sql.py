"""SQL over the MySQL protocol, against two servers whose users carry per-cluster prefixes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from tests.server.helpers import Local, called, confirmation, read_templates, secret, template
from tests.server.mariadb import PASSWORD, MariaDb, mariadb

from approvaltrail.server.database import MAXIMUM_ROWS, Login, run_statement
from approvaltrail.server.errors import (
    DatabaseRefusedError,
    DatabaseSilentError,
    StartRefusedError,
)
from approvaltrail.server.testing import World, running_server

CLUSTER = template()["cluster"]


@pytest.fixture(scope="module")
def first() -> Iterator[MariaDb]:
    """Give the server of one cluster."""
    with mariadb("p1first") as server:
        yield server


@pytest.fixture(scope="module")
def second() -> Iterator[MariaDb]:
    """Give the server of another cluster."""
    with mariadb("p2second") as server:
        yield server


def login(server: MariaDb, user: str) -> Login:
    """Return a login without TLS, for the loopback."""
    return Login(host="127.0.0.1", port=server.port, user=user, password=PASSWORD, tls=False)


def pinned(server: MariaDb, **changes: Any) -> dict[str, Any]:
    """Return the settings of a deployment that brings a login of its own."""
    return {
        "tidb_host": "127.0.0.1",
        "tidb_port": server.port,
        "tidb_sql_user": server.reader,
        "tidb_sql_password": secret(PASSWORD),
        "tidb_cluster_id": CLUSTER,
        "tidb_tls": False,
        **changes,
    }


def test_credentials_of_one_cluster_open_no_other(first: MariaDb, second: MariaDb) -> None:
    """B6: another cluster's host refuses this one's credentials; they are of use at home alone."""
    rows = run_statement(login(first, first.reader), "shop", "SELECT 1", None, changes=False)
    assert rows.rows == ((1,),)
    for user in (first.reader, first.reader.replace(first.prefix, ""), "reader"):
        with pytest.raises(DatabaseRefusedError) as caught:
            run_statement(login(second, user), "shop", "SELECT 1", None, changes=False)
        assert caught.value.code == 1045
        assert user not in str(caught.value)


def test_a_template_cannot_write(first: MariaDb) -> None:
    """B2: a template's transaction only reads, whatever its login may."""
    writer = login(first, f"{first.prefix}.writer")
    with pytest.raises(DatabaseRefusedError) as caught:
        run_statement(writer, "shop", "DELETE FROM orders", None, changes=False)
    assert caught.value.code == 1792


def test_a_result_has_a_bound(first: MariaDb) -> None:
    """A result beyond the bound is cut, and says so."""
    rows = run_statement(
        login(first, first.reader), "shop", "SELECT seq FROM seq_1_to_100000", None, changes=False
    )
    assert (len(rows.rows), rows.truncated) == (MAXIMUM_ROWS, True)


def test_silence_is_told_from_an_answer(first: MariaDb) -> None:
    """B4: nobody at the port is silence; a wrong password is an answer."""
    nobody = Login(host="127.0.0.1", port=1, user="u", password="p", tls=False)
    with pytest.raises(DatabaseSilentError):
        run_statement(nobody, None, "SELECT 1", None, changes=False)
    wrong = Login(host="127.0.0.1", port=first.port, user=first.reader, password="p", tls=False)
    with pytest.raises(DatabaseRefusedError):
        run_statement(wrong, None, "SELECT 1", None, changes=False)


async def test_a_template_runs_where_it_is_declared(first: MariaDb) -> None:
    """B1, B2: the parameters alone decide the answer, and a quote in one stays a value."""
    async with Local.open(templates=read_templates(template()), **pinned(first)) as local:
        answer = await local.call("orders_of", customer="o'brien")
        assert answer["result"]["rows"] == [[2]]
        nothing = await local.call("orders_of", customer="' OR ''='")
        assert nothing["result"]["rows"] == []
        assert local.recorder.events.types == []


async def test_a_login_that_is_refused_stops_the_start(first: MariaDb) -> None:
    """B4: an answer that says no will not be mended by waiting, so the server does not start."""
    wrong = pinned(first, tidb_sql_password=secret("canary-password"))
    with pytest.raises(StartRefusedError, match="TIDB_HOST") as caught:
        async with Local.open(templates=read_templates(template()), **wrong):
            pytest.fail("was started")
    assert "canary" not in str(caught.value)


async def test_a_cold_start_does_not_stop_the_start(first: MariaDb) -> None:
    """B4, B5: a silent endpoint is waited for; its tools are off the list meanwhile."""
    silent = pinned(first, tidb_port=1)
    async with Local.open(templates=read_templates(template()), **silent) as local:
        assert "orders_of" not in {tool.name for tool in (await local.client.list_tools()).tools}
        assert (await local.call("orders_of", customer="7"))["code"] == "target_unavailable"


async def test_a_confirmed_statement_runs_as_it_was_shown(first: MariaDb) -> None:
    """G1: tidb_execute changes data in its second step, and its preflight changes nothing."""
    world = World()
    cluster = world.add_cluster("prod-1", cluster_id=CLUSTER)
    other = world.add_cluster("other-1", cluster_id="77")
    key = world.add_key(cluster, other)
    settings = pinned(first, tidb_sql_user=f"{first.prefix}.writer")
    statement = {
        "clusterId": "prod-1",
        "database": "shop",
        "sql": "INSERT INTO orders VALUES (3, 'eve')",
    }
    async with Local.open(world=world, key=key, **settings) as local:
        shown = await local.call("tidb_execute", **statement)
        done = await local.call("tidb_execute", **statement, **confirmation(shown))
        assert done["result"]["changedRows"] == 1
        failed = await local.call("tidb_execute", **statement, **confirmation(shown))
        assert (failed["code"], failed["retry_safe"]) == ("target_refused", False)
        assert local.recorder.events.types == [
            "issued", "accepted", "completed", "accepted", "completed",
        ]  # fmt: skip
        assert [event.outcome for event in local.recorder.events.of_type("completed")] == [
            "succeeded", "failed",
        ]  # fmt: skip
        elsewhere = await local.call("tidb_execute", **statement | {"clusterId": "other-1"})
        assert elsewhere["code"] == "outside_boundary"


async def test_without_a_login_a_user_is_made_and_removed(first: MariaDb) -> None:
    """B8: under a caller's key each statement has a SQL user of its own, gone afterwards."""
    world = World()
    cluster = world.add_cluster("prod-1", host="127.0.0.1", port=first.port)
    key = world.add_key(cluster)
    async with Local.open(world=world, key=key, tidb_tls=False) as local:
        statement = {"clusterId": "prod-1", "database": "shop", "sql": "SELECT 1"}
        shown = await local.call("tidb_execute", **statement)
        answer = await local.call("tidb_execute", **statement, **confirmation(shown))
        assert answer["code"] == "target_refused"  # the world makes no user on this server
    assert [action for action, _ in world.performed] == ["create_sql_user", "delete_sql_user"]


async def test_a_login_is_not_lent_to_who_brings_a_key(first: MariaDb) -> None:
    """B8: under a caller's own key a template runs with that key's rights, and no others."""
    settings = {"own_keys": True, "rest": True, **pinned(first)}
    async with running_server(templates=read_templates(template()), **settings) as server:
        stranger = server.world.add_key(server.world.add_cluster("other-1", cluster_id="77"))
        server.world.add_cluster("home-1", cluster_id=CLUSTER)
        async with server.client_for(server.token("acme")) as client:
            assert (await called(client, "orders_of", customer="ana"))["result"]["rows"] == [[1]]
        async with server.client_for(stranger.text) as client:
            assert (await called(client, "orders_of", customer="ana"))["code"] == "target_refused"
