"""What the parts of one sink share: its place in the group and what it knows of its partitions."""

from __future__ import annotations

from dataclasses import dataclass

from aiokafka import AIOKafkaConsumer

from approvaltrail.consumers.continuity import Continuity
from approvaltrail.consumers.instance import InstanceWatch
from approvaltrail.consumers.metrics import SinkMetrics
from approvaltrail.consumers.offsets import Offsets
from approvaltrail.consumers.stalls import Stalls


@dataclass(frozen=True, slots=True, kw_only=True)
class Membership:
    """A sink's consumer, and what is known of each partition that it was given."""

    consumer: AIOKafkaConsumer
    offsets: Offsets
    stalls: Stalls
    continuity: Continuity
    instance: InstanceWatch
    metrics: SinkMetrics
