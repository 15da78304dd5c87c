"""Settings: read once, named as the ecosystem names them, refused with their names."""

from __future__ import annotations

import os
import socket
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.producer.support import events_in, issued, journal_in, settings_for

from approvaltrail.producer import Producer, ProducerSettings
from approvaltrail.producer.kafka_options import connection_options, producer_options
from approvaltrail.schemas.errors import SettingsError

if TYPE_CHECKING:
    from collections.abc import Mapping


@pytest.fixture(autouse=True)
def _clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in os.environ:
        if name.startswith(("APPROVALTRAIL_", "KAFKA_")):
            monkeypatch.delenv(name)


def test_from_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Names of ours and of the ecosystem are read; arguments win; the rest has defaults."""
    monkeypatch.setenv("KAFKA_BOOTSTRAP_SERVERS", "a:9092, b:9093")
    monkeypatch.setenv("APPROVALTRAIL_JOURNAL_DIR", str(tmp_path))
    monkeypatch.setenv("APPROVALTRAIL_SERVICE", "from-environment")
    monkeypatch.setenv("APPROVALTRAIL_HEARTBEAT_SECONDS", "2.5")
    settings = Producer.from_environment(service="tidb-mcp").settings
    assert settings.service == "tidb-mcp"
    assert settings.bootstrap_servers == ["a:9092", "b:9093"]
    assert settings.journal_dir == tmp_path
    assert settings.heartbeat_seconds == 2.5
    assert settings.instance == socket.gethostname()
    monkeypatch.setenv("APPROVALTRAIL_KAFKA_BOOTSTRAP_SERVERS", "c:1")
    assert ProducerSettings.from_environment().bootstrap_servers == ["c:1"]


@pytest.mark.parametrize(
    ("values", "named"),
    [
        ({"jornal_dir": "x"}, "JORNAL_DIR"),
        ({"kafka_bootstrap_servers": "no-port"}, "APPROVALTRAIL_KAFKA_BOOTSTRAP_SERVERS"),
        ({"kafka_bootstrap_servers": "host:99999"}, "APPROVALTRAIL_KAFKA_BOOTSTRAP_SERVERS"),
        ({"kafka_bootstrap_servers": " , "}, "APPROVALTRAIL_KAFKA_BOOTSTRAP_SERVERS"),
        ({"service": ""}, "APPROVALTRAIL_SERVICE"),
        ({"request_timeout_ms": 30_000}, "APPROVALTRAIL_REQUEST_TIMEOUT_MS"),
        ({"journal_unverified_share": 1.0}, "APPROVALTRAIL_JOURNAL_UNVERIFIED_SHARE"),
        ({"topic_prefix": "a b"}, "APPROVALTRAIL_TOPIC_PREFIX"),
        ({"kafka_security_protocol": "SASL_SSL"}, "APPROVALTRAIL_KAFKA_SASL_PASSWORD"),
        ({"kafka_ssl_cert_file": "/x.pem"}, "APPROVALTRAIL_KAFKA_SSL_KEY_FILE"),
    ],
)
def test_wrong_settings_are_named(values: Mapping[str, object], named: str) -> None:
    """P-06: a wrong or unknown setting stops the start with its name and never its value."""
    good = {"service": "s", "kafka_bootstrap_servers": "h:1"}
    with pytest.raises(SettingsError) as caught:
        ProducerSettings.from_environment(**(good | dict(values)))
    assert named in str(caught.value)


def test_a_bad_start_leaves_the_journal_alone(tmp_path: Path) -> None:
    """P-06: after starts that fail for their settings, every event is still in the journal."""
    producer = Producer(settings_for(tmp_path))
    producer.start()
    for _ in range(50):
        producer.record_sync(issued())
    producer.close_sync(0.3)
    for wrong in ({"unknown_key": 1}, {"kafka_bootstrap_servers": "nonsense"}):
        with pytest.raises(SettingsError):
            Producer.from_environment(
                **(
                    {"service": "tidb-mcp", "journal_dir": tmp_path}
                    | {"kafka_bootstrap_servers": "h:1"}
                    | wrong
                )
            )
    assert len(events_in(journal_in(tmp_path))) == 50


def test_secrets_stay_out_of_sight(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A password comes from a file too, reaches the client, and is in no representation."""
    (tmp_path / "password").write_text("s3cr3t-of-kafka\n")
    monkeypatch.setenv("KAFKA_SASL_PASSWORD_FILE", str(tmp_path / "password"))
    settings = ProducerSettings.from_environment(
        service="s",
        kafka_bootstrap_servers="h:1",
        kafka_security_protocol="SASL_PLAINTEXT",
        kafka_sasl_username="producer",
    )
    assert connection_options(settings)["sasl_plain_password"] == "s3cr3t-of-kafka"
    assert "s3cr3t" not in repr(settings)


def test_unreadable_certificates_are_named() -> None:
    """A certificate that cannot be read is a SettingsError with the setting's name."""
    settings = ProducerSettings.from_environment(
        service="s",
        kafka_bootstrap_servers="h:1",
        kafka_security_protocol="SSL",
        kafka_ssl_ca_file=Path("/does/not/exist.pem"),
    )
    with pytest.raises(SettingsError, match="SSL_CA_FILE"):
        producer_options(settings)


def test_the_clients_options() -> None:
    """The client is idempotent, waits for all replicas, and its batches fit the topics."""
    options = producer_options(
        ProducerSettings.from_environment(service="s", kafka_bootstrap_servers="h:1")
    )
    assert options["enable_idempotence"] is True
    assert options["acks"] == "all"
    assert options["request_timeout_ms"] >= 40_000
    assert options["max_batch_size"] <= 1_048_576 // 2
