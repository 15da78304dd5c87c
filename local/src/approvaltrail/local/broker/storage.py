"""A broker's folder: made without Kafka's format tool, which would cost a JVM of its own.

With static quorum voters the tool writes two files. `meta.properties` names cluster and node; the
bootstrap checkpoint holds the feature levels of one Kafka version (no id, no host, no port) and
ships with this package, recorded from that version's own tool.
"""

from __future__ import annotations

import base64
import fcntl
import os
import uuid
from importlib import resources
from typing import TYPE_CHECKING

from approvaltrail.local.broker.errors import BrokerError, FolderInUseError
from approvaltrail.local.broker.jars import KAFKA_VERSION

if TYPE_CHECKING:
    from pathlib import Path


def new_kafka_id() -> str:
    """Return an id in Kafka's form: a random UUID in base64url, never starting with a dash."""
    while True:
        text = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        if not text.startswith("-"):
            return text


def prepare(data: Path, *, node_id: int, cluster_id: str | None) -> str:
    """Make the folder a broker's if it is not one yet; return the cluster's id kept in it.

    Raises FolderInUseError while another broker runs on it, BrokerError when it belongs to
    another node or cluster.
    """
    data.mkdir(parents=True, exist_ok=True)
    meta = data / "meta.properties"
    if not meta.exists():
        _format(data, meta, node_id=node_id, cluster_id=cluster_id or new_kafka_id())
    _check_free(data)
    found = dict(line.split("=", 1) for line in meta.read_text().splitlines() if "=" in line)
    if found.get("node.id") != str(node_id) or cluster_id not in (None, found.get("cluster.id")):
        raise BrokerError(
            f"{data} holds node {found.get('node.id')} of cluster {found.get('cluster.id')}, "
            f"not node {node_id}: choose the folder that this broker had, or an empty one"
        )
    return found["cluster.id"]


def _format(data: Path, meta: Path, *, node_id: int, cluster_id: str) -> None:
    checkpoint = resources.files(__package__).joinpath(f"bootstrap-{KAFKA_VERSION}.checkpoint")
    (data / "bootstrap.checkpoint").write_bytes(checkpoint.read_bytes())
    temporary = meta.with_name(f".meta-{os.getpid()}.tmp")
    temporary.write_text(
        f"cluster.id={cluster_id}\ndirectory.id={new_kafka_id()}\nnode.id={node_id}\nversion=1\n"
    )
    temporary.replace(meta)


def _check_free(data: Path) -> None:
    """Kafka locks `.lock` by POSIX record lock: asking for it here answers before a JVM starts."""
    with (data / ".lock").open("a+b") as lock:
        try:
            fcntl.lockf(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise folder_in_use(data) from error


def folder_in_use(data: Path) -> FolderInUseError:
    """Return the error that says so."""
    return FolderInUseError(
        f"another broker runs on {data}: stop it, or start this one on another folder"
    )
