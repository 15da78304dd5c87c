"""The brokers of docker-compose.yml on this machine: their settings, loopback for host names."""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from confluent_kafka.admin import AdminClient
from deploy import grant_access
from deploy.make_secrets import make_secrets
from tests.deployment import compose

from approvaltrail.local.broker import Broker, Cluster, ensure_jars
from approvaltrail.local.broker.configuration import HOST, Node
from approvaltrail.local.broker.ports import free_ports

LISTENERS = ("CLIENTS", "INSIDE", "CONTROLLER", "OUTSIDE")
USERS = ("producer", "sink", "operator", "migrate")
CLUSTER_ID = compose.environment("kafka-1")["CLUSTER_ID"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SecureCluster:
    """Three running brokers, and the certificates and passwords that they were made with."""

    cluster: Cluster
    secrets: Path
    inside: str
    """Where administrators connect, by certificate."""
    clients: str
    """Where everybody else connects, by password."""
    outside: str
    """As `clients`, for those outside of the containers' network."""

    def password(self, user: str) -> str:
        return (self.secrets / user / "kafka.password").read_text()

    @property
    def authority(self) -> Path:
        return self.secrets / "administrator" / "ca.pem"

    def librdkafka(self, user: str, password: str | None = None) -> dict[str, Any]:
        """Return a user's options for confluent-kafka."""
        return {
            "bootstrap.servers": self.clients,
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": "SCRAM-SHA-512",
            "sasl.username": user,
            "sasl.password": password or self.password(user),
            "ssl.ca.location": str(self.authority),
            "log_level": 0,
        }

    def aiokafka(self, user: str, password: str | None = None) -> dict[str, Any]:
        """Return a user's options for aiokafka."""
        return {
            "bootstrap_servers": self.clients,
            "security_protocol": "SASL_SSL",
            "sasl_mechanism": "SCRAM-SHA-512",
            "sasl_plain_username": user,
            "sasl_plain_password": password or self.password(user),
            "ssl_context": ssl.create_default_context(cafile=str(self.authority)),
        }

    def administrator(self) -> AdminClient:
        """Return a client that connects by certificate and may do everything."""
        identity = self.secrets / "administrator" / "identity.pem"
        return grant_access.connect(self.inside, identity, self.authority)

    def environment(self, service: str, **more: str) -> dict[str, str]:
        """Return the environment that the service has in docker-compose.yml, for this machine."""
        folder = str(self.secrets / service)
        there = compose.environment(service)
        return {
            name: value.replace("/run/approvaltrail", folder) for name, value in there.items()
        } | {"KAFKA_BOOTSTRAP_SERVERS": self.clients, **more}


def start(home: Path) -> SecureCluster:
    """Make secrets and start the brokers; raises as `Broker.start`."""
    secrets = home / "secrets"
    make_secrets(secrets, list(USERS))
    ports = free_ports(len(LISTENERS) * len(compose.BROKERS))
    placed = {
        broker: dict(zip(LISTENERS, ports[4 * index : 4 * index + 4], strict=True))
        for index, broker in enumerate(compose.BROKERS)
    }
    jars = ensure_jars()
    nodes = {
        broker: Node(node_id=index, port=at["CLIENTS"], controller_port=at["CONTROLLER"])
        for index, (broker, at) in enumerate(placed.items(), start=1)
    }
    cluster = Cluster(
        [
            Broker(
                home / broker,
                jars,
                node,
                voters=tuple(nodes.values()),
                cluster_id=CLUSTER_ID,
                properties=_localised(broker, placed, secrets / broker),
            )
            for broker, node in nodes.items()
        ]
    )
    cluster.start()
    return SecureCluster(
        cluster=cluster,
        secrets=secrets,
        inside=_addresses(placed, "INSIDE"),
        clients=_addresses(placed, "CLIENTS"),
        outside=_addresses(placed, "OUTSIDE"),
    )


def grant(running: SecureCluster, *more: str) -> int:
    """Run what the job `access` runs."""
    folder = str(running.secrets / "administrator")
    where = ["--bootstrap-servers", running.inside, "--secrets", folder, "--wait-seconds", "60"]
    return grant_access.main([*where, *more])


def _addresses(placed: dict[str, dict[str, int]], listener: str) -> str:
    return ",".join(f"{HOST}:{at[listener]}" for at in placed.values())


def _localised(broker: str, placed: dict[str, dict[str, int]], identity: Path) -> dict[str, str]:
    """Put this machine's addresses and folders in the place of the containers'; nothing else."""
    ours = placed[broker]
    settings = compose.properties(broker)
    del settings["log.dirs"]
    listening = ",".join(f"{name}://{HOST}:{ours[name]}" for name in LISTENERS)
    advertised = ",".join(
        f"{name}://{HOST}:{ours[name]}" for name in LISTENERS if name != "CONTROLLER"
    )
    voters = ",".join(
        f"{index}@{HOST}:{at['CONTROLLER']}" for index, at in enumerate(placed.values(), start=1)
    )
    replaced = {
        "listeners": listening,
        "advertised.listeners": advertised,
        "controller.quorum.voters": voters,
        "ssl.keystore.location": str(identity / "identity.pem"),
        "ssl.truststore.location": str(identity / "ca.pem"),
    }
    assert replaced.keys() <= settings.keys()
    return settings | replaced
