"""What can go wrong with the embedded broker.

BrokerError
├── JarError            a pinned jar is missing, differs from its pin, or cannot be fetched
├── PortTakenError      somebody else listens on the port
├── FolderInUseError    another broker runs on the same folder
└── BrokerStartError    the broker ended, or did not answer in time
"""

from __future__ import annotations

from typing import ClassVar


class BrokerError(RuntimeError):
    """Base of all errors of the embedded broker."""

    retriable: ClassVar[bool] = False


class JarError(BrokerError):
    """Kafka's jars are not complete; retrying helps once the network is back."""

    retriable: ClassVar[bool] = True


class PortTakenError(BrokerError):
    """A port is not free."""


class FolderInUseError(BrokerError):
    """Another broker holds the folder."""


class BrokerStartError(BrokerError):
    """The broker did not become ready; its log says why."""

    retriable: ClassVar[bool] = True
