"""The topic of dead letters is there and refuses what is written to it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from tests.consumers.conftest import settings, store, topic
from tests.consumers.parts import Journal, Topic, assert_counted_once, running, stored_ids, until

if TYPE_CHECKING:
    from approvaltrail.consumers.settings import SinkSettings
    from approvaltrail.store.connection import Store

__all__ = ["settings", "store", "topic"]


async def keep_by(topic: Topic, policy: str) -> None:
    """Change how the topic of dead letters is kept; compacted, it refuses what has no key."""
    admin = AIOKafkaAdminClient(bootstrap_servers=topic.bootstrap_servers)
    await admin.start()
    try:
        change = {"cleanup.policy": policy, "retention.ms": "-1"}
        await admin.alter_configs([ConfigResource(ConfigResourceType.TOPIC, topic.dead, change)])
    finally:
        await admin.close()


async def test_p18_a_partition_waits_for_a_dead_letter_topic_that_takes_no_writes(
    topic: Topic, store: Store, settings: Callable[..., SinkSettings]
) -> None:
    """P-18: its offset stays before the bad message, the others go on, and nothing is lost."""
    chosen = settings(stalled_retry_seconds=0.5, dead_letter_timeout_seconds=3)
    journal = Journal()
    async with running(chosen) as sink:
        await keep_by(topic, "compact")
        await topic.send(journal, journal.records(3), partition=0)
        bad = await topic.send_raw(b"bad", partition=0)
        await topic.send(journal, journal.records(3), partition=0)
        await until(lambda: not sink.condition().ready, "the partition stands and says so")
        await topic.send(journal, journal.records(5), partition=1)
        await until(lambda: len(stored_ids(store)) == 11, "all good ones are stored")
        assert (await topic.committed(chosen.sink_group_id))[0] == bad
        await keep_by(topic, "delete")
        await until(lambda: sink.condition().ready, "the partition goes on")
    assert (await topic.committed(chosen.sink_group_id))[0] == bad + 4
    assert store.query("SELECT offset FROM dead_letters FINAL").rows == [(bad,)]
    assert_counted_once(store, journal)
