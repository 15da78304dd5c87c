"""Apache Kafka on one machine: pinned jars, a Java in a wheel, a child that dies with its owner."""

from __future__ import annotations

from approvaltrail.local.broker.broker import Broker, Cluster, cluster
from approvaltrail.local.broker.errors import (
    BrokerError,
    BrokerStartError,
    FolderInUseError,
    JarError,
    PortTakenError,
)
from approvaltrail.local.broker.jars import default_cache, ensure_jars
from approvaltrail.local.broker.launch import BrokerAddress, BrokerProcess

__all__ = [
    "Broker",
    "BrokerAddress",
    "BrokerError",
    "BrokerProcess",
    "BrokerStartError",
    "Cluster",
    "FolderInUseError",
    "JarError",
    "PortTakenError",
    "cluster",
    "default_cache",
    "ensure_jars",
]
