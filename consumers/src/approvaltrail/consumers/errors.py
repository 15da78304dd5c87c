"""What can go wrong between Kafka and the store.

ConsumerError
├── KafkaUnavailableError      the cluster cannot be reached, or refuses these credentials
├── TopicsError                a topic is missing or differs from its description
├── InstanceTakenError         another process goes by this sink's name
├── DeadLetterError            a dead letter could not be put where it belongs
├── BatchAbandonedError        a batch whose partitions went to somebody else
└── RedriveError               a redrive stopped before its end
"""

from __future__ import annotations

from typing import ClassVar


class ConsumerError(Exception):
    """Base of the consumers' errors."""

    retriable: ClassVar[bool] = False


class KafkaUnavailableError(ConsumerError):
    """The cluster cannot be reached, or refuses these credentials."""

    retriable: ClassVar[bool] = True


class TopicsError(ConsumerError):
    """One or more topics are missing or differ; the message says how to mend each."""


class InstanceTakenError(ConsumerError):
    """Two processes take each other's partitions because they have one name in the group."""


class DeadLetterError(ConsumerError):
    """A dead letter could not be sent or recorded: its partition has to wait."""

    retriable: ClassVar[bool] = True


class BatchAbandonedError(ConsumerError):
    """The batch's partitions went to somebody else, who stores it; nothing was committed."""


class RedriveError(ConsumerError):
    """A redrive stopped before its end; asked again, it goes on where it stopped."""

    retriable: ClassVar[bool] = True
