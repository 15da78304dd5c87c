"""The process around the sink: settings, logs, health, exit codes."""

from __future__ import annotations

import io
import json
import logging
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import httpx
import pytest
import structlog
from prometheus_client import CollectorRegistry
from pydantic import SecretStr
from tests.consumers.parts import Journal, Topic, running, stored_ids, until
from tests.consumers.process import SinkProcess

from approvaltrail.consumers.health import Condition, HealthServer, health_app
from approvaltrail.consumers.kafka_trouble import KafkaTroubleFilter
from approvaltrail.consumers.logs import configure_logs
from approvaltrail.consumers.settings import SinkSettings
from approvaltrail.schemas.errors import SettingsError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from approvaltrail.store.connection import Store

TOKEN = "at1.eyJub25jZSI6ImFiY2RlZiJ9abcdef.MEUCIQDxAbCdEfGhIjKlMnOpQrStUvWxYzAbCdEfGhI"


async def test_sigterm_stores_what_was_fetched_commits_and_ends_with_0(
    topic: Topic, store: Store, settings: Callable[..., SinkSettings], tmp_path: Path
) -> None:
    """Told to stop, a sink does not leave what it holds to others."""
    journal, chosen = Journal(), settings()
    sink = SinkProcess(chosen, tmp_path / "sink.log", flush_interval_ms="60000")
    await until(lambda: sink.ready, "ready")
    await topic.send(journal, journal.records(25), partition=0)
    await until(lambda: sink.metric("buffered_messages", topic.events) == 25, "it holds all")
    assert sink.stop() == 0
    assert len(stored_ids(store)) == 25
    assert (await topic.committed(chosen.sink_group_id))[0] == 25


def test_each_wrong_setting_is_named_and_no_value_repeated() -> None:
    """The process says which variables are wrong and ends with 3."""
    environment = {
        "PATH": os.environ["PATH"],
        "KAFKA_BOOTSTRAP_SERVERS": "127.0.0.1:1",
        "APPROVALTRAIL_FLUSH_EVENTS": "s3cret-and-no-number",
    }
    done = subprocess.run(
        [sys.executable, "-m", "approvaltrail.consumers.sink"],
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 3
    assert "APPROVALTRAIL_CLICKHOUSE_DSN: is not set" in done.stderr
    assert "APPROVALTRAIL_FLUSH_EVENTS: " in done.stderr
    assert "s3cret" not in done.stderr


def test_credentials_that_do_not_fit_together_are_refused() -> None:
    """SASL without a password, or an unreadable certificate, is an error of settings."""
    common = {"kafka_bootstrap_servers": "k:9092", "clickhouse_dsn": SecretStr("http://e/d")}
    with pytest.raises(ValueError, match="KAFKA_SASL_PASSWORD"):
        SinkSettings(**common, kafka_security_protocol="SASL_PLAINTEXT")
    encrypted = SinkSettings(**common, kafka_security_protocol="SSL", kafka_ssl_ca_file="/no/such")
    with pytest.raises(SettingsError, match="KAFKA_SSL_CA_FILE"):
        encrypted.connection_options()
    options = SinkSettings(
        **common,
        kafka_security_protocol="SASL_PLAINTEXT",
        kafka_sasl_username="sink",
        kafka_sasl_password=SecretStr("hush"),
    ).connection_options()
    assert options["sasl_plain_password"] == "hush"
    assert options["sasl_mechanism"] == "SCRAM-SHA-512"


async def test_a_sink_says_ready_only_when_it_does_its_work(
    settings: Callable[..., SinkSettings],
) -> None:
    """/readyz answers 200 with partitions in hand; /metrics speaks Prometheus."""
    async with running(settings(health_port=0)) as sink, httpx.AsyncClient(trust_env=False) as web:
        address = f"http://127.0.0.1:{sink.health_port}"
        assert (await web.get(f"{address}/healthz")).json() == {"status": "alive"}
        ready = await web.get(f"{address}/readyz")
        assert (ready.status_code, ready.json()["status"]) == (200, "ok")
        assert (
            "approvaltrail_sink_insert_seconds_bucket" in (await web.get(f"{address}/metrics")).text
        )


async def test_any_process_may_serve_its_health() -> None:
    """A process that is not ready answers 503 with its reasons."""
    condition = Condition(ready=False, state="degraded", reasons=("the broker is away",))
    server = HealthServer(
        health_app(lambda: condition, CollectorRegistry()), host="127.0.0.1", port=0
    )
    await server.start()
    try:
        async with httpx.AsyncClient(trust_env=False) as web:
            answer = await web.get(f"http://127.0.0.1:{server.port}/readyz")
    finally:
        await server.stop()
    assert answer.status_code == 503
    assert answer.json() == {"status": "degraded", "reasons": ["the broker is away"]}


@pytest.fixture
def log_lines() -> Iterator[Callable[[], list[dict]]]:
    """Configure logs into memory; put everything back afterwards."""
    root = logging.getLogger()
    handlers, level, stream = root.handlers[:], root.level, io.StringIO()
    configure_logs("sink", "debug", stream)
    yield lambda: [json.loads(line) for line in stream.getvalue().splitlines()]
    root.handlers[:] = handlers
    root.setLevel(level)
    structlog.reset_defaults()


def test_lines_of_a_lost_connection_become_one_sentence_a_minute(
    log_lines: Callable[[], list[dict]],
) -> None:
    """The first says where and what to do; the others are counted."""
    library, now = logging.getLogger("aiokafka"), 0.0
    [handler] = [one for one in logging.getLogger().handlers if one.filters]
    handler.filters[:] = [KafkaTroubleFilter(lambda: now)]
    refused = "[Errno 111] Connect call failed ('127.0.0.1', 9092)"
    for _ in range(40):
        library.error("Unable connect to node with id %s: %s", 1, refused)
        logging.getLogger("aiokafka.consumer.fetcher").error(
            "Failed fetch messages from %s: %s", 1, "NodeNotReadyError"
        )
        now += 1
    library.error("Unable to update metadata from %s", [1])
    now += 60
    library.error('Unable connect to "%s:%s": %s', "kafka-1", 9092, refused)
    library.error("Something else")
    first, later, other = log_lines()
    assert (first["event"], first["lines"]) == ("kafka_unreachable", 1)
    assert first["what"].startswith("Kafka at 127.0.0.1:9092 ")
    assert "check that Kafka runs" in first["next"]
    assert (later["lines"], later["what"].split()[2]) == (81, "kafka-1:9092")
    assert other["event"] == "Something else"


def test_every_log_line_is_json_and_none_holds_a_token(
    log_lines: Callable[[], list[dict]],
) -> None:
    """Ours and the libraries' lines are parsed alike; token-like text is taken out of each."""
    log = structlog.stdlib.get_logger("test")
    log.info("something_happened", given=TOKEN, nested={"parts": [f"x {TOKEN}"]}, count=3)
    logging.getLogger("aiokafka").warning("failed on %s", TOKEN)
    try:
        int(TOKEN)
    except ValueError:
        log.exception("it_failed")
    lines = log_lines()
    assert [line["event"] for line in lines][::2] == ["something_happened", "it_failed"]
    assert lines[0]["count"] == 3
    assert lines[0]["component"] == "sink"
    assert TOKEN.split(".")[1] not in json.dumps(lines)
    assert json.dumps(lines).count("[token removed]") >= 4
