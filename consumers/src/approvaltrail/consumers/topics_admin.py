"""Create the topics as they are described, and find out where a cluster differs from that."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from typing import Any

from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from aiokafka.errors import KafkaError, for_code

from approvaltrail.consumers.errors import KafkaUnavailableError, TopicsError
from approvaltrail.schemas.topics import Topic, all_topics, prefixed

_COPIES = 3
"""Copies of each partition, fewer only where there are fewer brokers."""
_ALREADY_EXISTS = 36
_SETTLED_SECONDS = 15.0
_MEND = "run `approvaltrail migrate`"


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicState:
    """What the cluster says of one topic."""

    partitions: int
    configuration: Mapping[str, str]


async def ensure_topics(
    bootstrap_servers: str,
    prefix: str = "",
    *,
    single_machine: bool = False,
    options: Mapping[str, Any] | None = None,
) -> list[str]:
    """Create what is missing, mend what may be mended, and say in sentences what was done.

    The number of partitions of a topic that exists is never changed: that would tear a token's
    issuance and its reuses apart.

    Args:
        bootstrap_servers: where the cluster is
        prefix: stands before every topic's name
        single_machine: whether the cluster is one broker, with fewer partitions
        options: further client arguments (`kafka_options`: credentials, TLS)

    Raises:
        TopicsError: a topic differs in a way that only its operator may mend.
        KafkaUnavailableError: the cluster cannot be reached, or refuses these credentials.
    """
    async with _admin(bootstrap_servers, options) as admin:
        done = await _create_missing(admin, prefix, single_machine=single_machine)
        done += await _mend_configuration(admin, prefix)
        differences = await _settled(admin, prefix, single_machine=single_machine)
    if differences:
        raise TopicsError("\n".join(differences))
    return done


async def check_topics(
    bootstrap_servers: str,
    prefix: str = "",
    *,
    single_machine: bool | None = None,
    options: Mapping[str, Any] | None = None,
) -> None:
    """Hold the cluster's topics to their description.

    Without `single_machine`, either described number of partitions will do.

    Raises:
        TopicsError: a topic is missing or differs; the message says how to mend each.
        KafkaUnavailableError: the cluster cannot be reached, or refuses these credentials.
    """
    async with _admin(bootstrap_servers, options) as admin:
        differences = await _differences(admin, prefix, single_machine=single_machine)
    if differences:
        raise TopicsError("\n".join(differences))


@contextlib.asynccontextmanager
async def _admin(
    bootstrap_servers: str, options: Mapping[str, Any] | None
) -> AsyncIterator[AIOKafkaAdminClient]:
    arguments = {**(options or {}), "bootstrap_servers": bootstrap_servers}
    admin = AIOKafkaAdminClient(**arguments)
    try:
        await admin.start()
        yield admin
    except (KafkaError, OSError) as error:
        raise KafkaUnavailableError(
            f"Kafka at {bootstrap_servers} cannot be asked for its topics "
            f"({type(error).__name__}): check the address, that it runs, and the credentials"
        ) from error
    finally:
        await admin.close()


async def _create_missing(
    admin: AIOKafkaAdminClient, prefix: str, *, single_machine: bool
) -> list[str]:
    there = set(await admin.list_topics())
    copies = min(_COPIES, len((await admin.describe_cluster())["brokers"]))
    wanted = [
        NewTopic(
            name=prefixed(topic.name, prefix),
            num_partitions=_partitions(topic, single_machine=single_machine),
            replication_factor=copies,
            topic_configs=topic.configuration(),
        )
        for topic in all_topics()
        if prefixed(topic.name, prefix) not in there
    ]
    if not wanted:
        return []
    answer = await admin.create_topics(wanted)
    refused = [
        f"topic {name} cannot be created: {message or for_code(code).__name__}"
        for name, code, message, *_ in answer.topic_errors
        if code not in {0, _ALREADY_EXISTS}
    ]
    if refused:
        raise TopicsError("\n".join(refused))
    return [f"created topic {topic.name}" for topic in wanted]


async def _settled(admin: AIOKafkaAdminClient, prefix: str, *, single_machine: bool) -> list[str]:
    """Return what still differs once every change has reached the broker that is asked."""
    deadline = time.monotonic() + _SETTLED_SECONDS
    while True:
        differences = await _differences(admin, prefix, single_machine=single_machine)
        mendable = [line for line in differences if line.endswith(_MEND)]
        if not mendable or time.monotonic() > deadline:
            return differences
        await asyncio.sleep(0.05)


async def _mend_configuration(admin: AIOKafkaAdminClient, prefix: str) -> list[str]:
    states = await _states(admin, prefix)
    done = []
    for topic in all_topics():
        name = prefixed(topic.name, prefix)
        wrong = _wrong_configuration(topic, states[name]) if name in states else {}
        if wrong:
            resource = ConfigResource(ConfigResourceType.TOPIC, name, topic.configuration())
            await admin.alter_configs([resource])
            done.append(f"set {', '.join(sorted(wrong))} of topic {name}")
    return done


async def _differences(
    admin: AIOKafkaAdminClient, prefix: str, *, single_machine: bool | None
) -> list[str]:
    states = await _states(admin, prefix)
    found = []
    for topic in all_topics():
        name = prefixed(topic.name, prefix)
        if name not in states:
            found.append(f"topic {name} is missing: {_MEND}")
            continue
        found += _sentences(topic, name, states[name], single_machine=single_machine)
    return found


def _sentences(
    topic: Topic, name: str, state: TopicState, *, single_machine: bool | None
) -> list[str]:
    right = (
        {topic.partitions, topic.partitions_single_machine}
        if single_machine is None
        else {_partitions(topic, single_machine=single_machine)}
    )
    found = []
    if state.partitions not in right:
        numbers = " or ".join(map(str, sorted(right)))
        found.append(
            f"topic {name} has {state.partitions} partitions instead of {numbers}: partitions are "
            "not changed by us, because a token's events share one; make the topic anew, or set "
            "APPROVALTRAIL_TOPIC_PREFIX to begin beside it"
        )
    for key, (is_now, ought) in _wrong_configuration(topic, state).items():
        found.append(f"topic {name} has {key} {is_now} instead of {ought}: {_MEND}")
    return found


def _partitions(topic: Topic, *, single_machine: bool) -> int:
    return topic.partitions_single_machine if single_machine else topic.partitions


def _wrong_configuration(topic: Topic, state: TopicState) -> dict[str, tuple[str, str]]:
    return {
        key: (state.configuration[key], ought)
        for key, ought in topic.configuration().items()
        if state.configuration.get(key, ought) != ought
    }


async def _states(admin: AIOKafkaAdminClient, prefix: str) -> dict[str, TopicState]:
    there = set(await admin.list_topics())
    names = [name for topic in all_topics() if (name := prefixed(topic.name, prefix)) in there]
    if not names:
        return {}
    described = await admin.describe_topics(names)
    resources = [ConfigResource(ConfigResourceType.TOPIC, name) for name in names]
    configurations: dict[str, dict[str, str]] = {}
    for answer in await admin.describe_configs(resources):
        for _code, _message, _type, name, entries in (row[:5] for row in answer.resources):
            configurations[name] = {entry[0]: entry[1] for entry in entries}
    return {
        topic["topic"]: TopicState(
            partitions=len(topic["partitions"]),
            configuration=configurations.get(topic["topic"], {}),
        )
        for topic in described
    }
