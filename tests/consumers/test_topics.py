"""Topics are made as described, and a cluster that differs is told from one that fits."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from tests.consumers.parts import PATIENCE_SECONDS

from approvaltrail.consumers.errors import KafkaUnavailableError, TopicsError
from approvaltrail.consumers.topics_admin import check_topics, ensure_topics
from approvaltrail.schemas.topics import NAMES, SEALS

if TYPE_CHECKING:
    from approvaltrail.local.broker import BrokerProcess


async def test_missing_topics_are_named_then_made_then_left_alone(
    kafka: BrokerProcess, topic_prefix: str
) -> None:
    """Each missing topic is named with its mending; to make them twice changes nothing."""
    with pytest.raises(TopicsError) as caught:
        await check_topics(kafka.bootstrap_servers, topic_prefix)
    lines = str(caught.value).splitlines()
    assert lines == [
        f"topic {topic_prefix}{name} is missing: run `approvaltrail migrate`" for name in NAMES
    ]
    made = await ensure_topics(kafka.bootstrap_servers, topic_prefix, single_machine=True)
    assert made == [f"created topic {topic_prefix}{name}" for name in NAMES]
    assert await ensure_topics(kafka.bootstrap_servers, topic_prefix, single_machine=True) == []
    await check_topics(kafka.bootstrap_servers, topic_prefix, single_machine=True)
    await check_topics(kafka.bootstrap_servers, topic_prefix)


async def test_a_differing_configuration_is_named_and_mended(
    kafka: BrokerProcess, topic_prefix: str
) -> None:
    """Seals that would be compacted away are found before a sink starts."""
    await ensure_topics(kafka.bootstrap_servers, topic_prefix, single_machine=True)
    admin = AIOKafkaAdminClient(bootstrap_servers=kafka.bootstrap_servers)
    await admin.start()
    change = {"cleanup.policy": "compact", "retention.ms": "-1", "max.message.bytes": "1048576"}
    resource = ConfigResource(ConfigResourceType.TOPIC, topic_prefix + SEALS, change)
    await admin.alter_configs([resource])
    await admin.close()
    said = ""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not said and time.monotonic() < deadline:  # the brokers hear of it one after another
        try:
            await check_topics(kafka.bootstrap_servers, topic_prefix)
        except TopicsError as error:
            said = str(error)
    assert "cleanup.policy compact instead of delete: run `approvaltrail migrate`" in said
    mended = await ensure_topics(kafka.bootstrap_servers, topic_prefix, single_machine=True)
    assert mended == [f"set cleanup.policy of topic {topic_prefix}{SEALS}"]
    await check_topics(kafka.bootstrap_servers, topic_prefix)


async def test_another_number_of_partitions_is_never_changed(
    kafka: BrokerProcess, topic_prefix: str
) -> None:
    """A token's events share a partition, so the number is the operator's to decide."""
    await ensure_topics(kafka.bootstrap_servers, topic_prefix, single_machine=True)
    with pytest.raises(TopicsError, match="has 3 partitions instead of 12"):
        await ensure_topics(kafka.bootstrap_servers, topic_prefix)


async def test_an_unreachable_cluster_is_named_by_its_address() -> None:
    """The error says where and what to check, and that a retry may help."""
    with pytest.raises(KafkaUnavailableError, match=r"127\.0\.0\.1:1") as caught:
        await check_topics("127.0.0.1:1")
    assert caught.value.retriable
