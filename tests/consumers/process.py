"""A sink in a process of its own, to be stopped, frozen and killed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import httpx
from prometheus_client.parser import text_string_to_metric_families

from approvaltrail.consumers.settings import SinkSettings


class SinkProcess:
    """`python -m approvaltrail.consumers.sink` with settings in its environment."""

    def __init__(self, settings: SinkSettings, log: Path, **changes: str) -> None:
        values = {
            "kafka_bootstrap_servers": settings.kafka_bootstrap_servers,
            "clickhouse_dsn": settings.dsn(),
            "topic_prefix": settings.topic_prefix,
            "sink_group_id": settings.sink_group_id,
            "session_timeout_ms": "6000",
            "heartbeat_interval_ms": "300",
            "repair_interval_seconds": "0",
            "health_port": "0",
            **({"sink_instance": settings.sink_instance} if settings.sink_instance else {}),
            **changes,
        }
        environment = {f"APPROVALTRAIL_{name.upper()}": value for name, value in values.items()}
        self.log = log
        with log.open("ab") as stream:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "approvaltrail.consumers.sink"],
                env={**os.environ, **environment},
                stderr=stream,
            )

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    @property
    def exit_code(self) -> int | None:
        """Its exit code, None while it runs."""
        return self._process.poll()

    @property
    def ready(self) -> bool:
        """Whether it says that it does its work."""
        answer = self._ask("readyz")
        return answer is not None and answer.is_success and answer.json()["partitions"] > 0

    def metric(self, name: str, topic: str) -> float:
        """Return one of its metrics for a topic."""
        answer = self._ask("metrics")
        for family in text_string_to_metric_families(answer.text if answer else ""):
            for sample in family.samples:
                if sample.name == f"approvaltrail_sink_{name}" and sample.labels["topic"] == topic:
                    return sample.value
        return 0.0

    def kill(self) -> None:
        """End it with SIGKILL and wait until it is gone."""
        self._process.kill()
        self._process.wait(10)

    def stop(self) -> int:
        """Ask it to end and return its exit code; kill it if it does not."""
        if self._process.poll() is None:
            os.kill(self.pid, signal.SIGCONT)
            self._process.terminate()
        try:
            return self._process.wait(15)
        except subprocess.TimeoutExpired:
            self.kill()
            return -signal.SIGKILL

    def _ask(self, path: str) -> httpx.Response | None:
        port = self._port()
        if port is None:
            return None
        try:
            return httpx.get(f"http://127.0.0.1:{port}/{path}", timeout=2, trust_env=False)
        except httpx.HTTPError:
            return None

    def _port(self) -> int | None:
        for line in self.log.read_text().splitlines()[::-1]:
            if '"health_served"' in line:
                return int(json.loads(line)["port"])
        return None
