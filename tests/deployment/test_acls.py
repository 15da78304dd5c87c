"""What each Kafka user may do: the table in deploy/acls.yaml, judged by real brokers."""

from __future__ import annotations

import contextlib
import ssl
from collections import defaultdict
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from aiokafka.errors import (
    GroupAuthorizationFailedError,
    KafkaConnectionError,
    KafkaError,
    TopicAuthorizationFailedError,
)
from confluent_kafka import KafkaException, Producer, TopicCollection
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)
from deploy import grant_access
from deploy.make_secrets import ADMINISTRATOR, BROKERS, STORE_USERS
from tests.deployment import compose
from tests.deployment.secure_cluster import USERS, SecureCluster, grant

from approvaltrail.consumers.settings import SinkSettings
from approvaltrail.schemas import topics

ACLS = Path(grant_access.__file__).with_name("acls.yaml")
TABLE = yaml.safe_load(ACLS.read_text("utf-8"))["users"]
INCLUDED = {
    "READ": {"DESCRIBE"},
    "WRITE": {"DESCRIBE"},
    "ALTER_CONFIGS": {"DESCRIBE_CONFIGS"},
}
"""What Kafka derives: https://kafka.apache.org/documentation/#security_authz_primitives"""
ANSWER_SECONDS = 15


def granted(user: str, topic: str) -> set[str]:
    """Return what the table gives a user on a topic, with what Kafka derives from it."""
    given = set(TABLE[user]["topics"].get(topic, []))
    return given.union(*(INCLUDED.get(one, set()) for one in given))


def judged(secure: SecureCluster, user: str, password: str | None = None) -> dict[str, set[str]]:
    """Ask the brokers which operations a user may perform on each topic that it may see."""
    admin = AdminClient(secure.librdkafka(user, password))
    described = admin.describe_topics(
        TopicCollection(list(topics.NAMES)), include_authorized_operations=True
    )
    found: dict[str, set[str]] = defaultdict(set)
    for name, future in described.items():
        with contextlib.suppress(KafkaException):
            answer = future.result(ANSWER_SECONDS)
            found[name] = {one.name for one in answer.authorized_operations}
    return found


def test_the_table_names_topics_and_groups_that_exist() -> None:
    """Every topic in the table is one of ours, and the group is the one that sinks share."""
    assert tuple(TABLE) == USERS
    named = {topic for entry in TABLE.values() for topic in entry["topics"]}
    assert named == set(topics.NAMES)
    groups = {group for entry in TABLE.values() for group in entry.get("groups", {})}
    assert groups == {SinkSettings.model_fields["sink_group_id"].default}


def test_the_compose_file_names_users_that_exist() -> None:
    """Each service connects as a user of the table, and each super user has a certificate."""
    for service in compose.services():
        user = compose.environment(service).get("KAFKA_SASL_USERNAME")
        assert user in (None, *TABLE), service
        assert user in (None, service), "a service's user has the service's name"
        store_user = compose.environment(service).get("CLICKHOUSE_DSN", "//@").split("//")[1]
        assert store_user.split("@")[0] in ("", *STORE_USERS)
    super_users = {f"User:CN={name}" for name in (*BROKERS, ADMINISTRATOR)}
    assert set(compose.environment("kafka-1")["KAFKA_SUPER_USERS"].split(";")) == super_users


@pytest.mark.parametrize("user", USERS)
def test_a_user_has_the_tables_rights_and_no_others(secure: SecureCluster, user: str) -> None:
    """On every topic, brokers allow a user what the table says and refuse the rest."""
    found = judged(secure, user)
    assert {name: found[name] for name in topics.NAMES} == {
        name: granted(user, name) for name in topics.NAMES
    }


@pytest.mark.parametrize("user", USERS)
def test_no_user_may_touch_the_cluster_itself(secure: SecureCluster, user: str) -> None:
    """No user may alter the cluster, its rights, or create anything by cluster right."""
    admin = AdminClient(secure.librdkafka(user))
    answer = admin.describe_cluster(include_authorized_operations=True).result(ANSWER_SECONDS)
    assert not answer.authorized_operations
    mine = AclBinding(
        ResourceType.TOPIC,
        topics.EVENTS,
        ResourcePatternType.LITERAL,
        f"User:{user}",
        "*",
        AclOperation.ALL,
        AclPermissionType.ALLOW,
    )
    with pytest.raises(KafkaException, match="CLUSTER_AUTHORIZATION_FAILED"):
        admin.create_acls([mine])[mine].result(ANSWER_SECONDS)


@contextlib.asynccontextmanager
async def producing(options: dict[str, Any], **more: Any) -> AsyncIterator[AIOKafkaProducer]:
    producer = AIOKafkaProducer(**options, request_timeout_ms=10_000, **more)
    try:
        await producer.start()
        yield producer
    finally:
        await producer.stop()


async def read_first(options: dict[str, Any], topic: str, group: str | None) -> bytes:
    """Read the first message of partition 0; in a group, commit as well."""
    consumer = AIOKafkaConsumer(
        **options, group_id=group, auto_offset_reset="earliest", enable_auto_commit=False
    )
    place = TopicPartition(topic, 0)
    try:
        await consumer.start()
        consumer.assign([place])
        message = await consumer.getone(place)
        if group is not None:
            await consumer.commit({place: message.offset + 1})
        return message.value
    finally:
        await consumer.stop()


async def test_the_producer_writes_and_the_sink_reads(secure: SecureCluster) -> None:
    """An event goes from the producer's user to the sink's; neither can take the other's part."""
    producer, sink = secure.aiokafka("producer"), secure.aiokafka("sink")
    async with producing(producer, enable_idempotence=True, acks="all") as client:
        await client.send_and_wait(topics.EVENTS, b"event", partition=0)
    assert await read_first(sink, topics.EVENTS, "approval-trail-sink") == b"event"
    with pytest.raises(TopicAuthorizationFailedError):
        await read_first(producer, topics.EVENTS, None)
    with pytest.raises(GroupAuthorizationFailedError):
        await read_first(sink, topics.EVENTS, "another-group")
    async with producing(sink, acks="all") as client:
        with pytest.raises(TopicAuthorizationFailedError):
            await client.send_and_wait(topics.EVENTS, b"forged", partition=0)
        await client.send_and_wait(topics.DEAD, b"set aside", partition=0)
        await client.send_and_wait(topics.REPAIRS, b"send again", partition=0)
    assert await read_first(producer, topics.REPAIRS, None) == b"send again"
    assert await read_first(secure.aiokafka("operator"), topics.DEAD, None) == b"set aside"


async def test_the_migration_creates_our_topics_and_no_others(secure: SecureCluster) -> None:
    """The migration's user creates none but the described topics, and deletes none of them."""
    admin = AIOKafkaAdminClient(**secure.aiokafka("migrate"))
    await admin.start()
    try:
        created = await admin.create_topics([NewTopic("other", 1, 3)])
        assert [row[1] for row in created.topic_errors] == [TopicAuthorizationFailedError.errno]
        deleted = await admin.delete_topics([topics.EVENTS])
        assert [row[1] for row in deleted.topic_error_codes] == [
            TopicAuthorizationFailedError.errno
        ]
    finally:
        await admin.close()


@pytest.mark.parametrize("user", ["stranger", "producer", "CN=administrator"])
async def test_a_wrong_password_gets_nowhere(secure: SecureCluster, user: str) -> None:
    """An unknown user, or a known one with another password, is not let in."""
    with pytest.raises(KafkaError):
        async with producing(secure.aiokafka(user, "not the password")):
            pass


async def test_an_unencrypted_client_gets_nowhere(secure: SecureCluster) -> None:
    """A client without TLS is not served, on any listener."""
    for servers in (secure.clients, secure.outside, secure.inside):
        with pytest.raises(KafkaConnectionError):
            async with producing({"bootstrap_servers": servers}):
                pass


async def test_a_client_without_our_authority_stays_away(secure: SecureCluster) -> None:
    """A client that does not know the deployment's authority refuses the brokers."""
    options = secure.aiokafka("producer") | {"ssl_context": ssl.create_default_context()}
    with pytest.raises(KafkaConnectionError):
        async with producing(options):
            pass


async def test_the_inner_listener_takes_certificates_only(secure: SecureCluster) -> None:
    """Where brokers and administrators connect, a client without a certificate is refused."""
    context = ssl.create_default_context(cafile=str(secure.authority))
    options = {"bootstrap_servers": secure.inside, "security_protocol": "SSL"}
    with pytest.raises(KafkaConnectionError):
        async with producing(options | {"ssl_context": context}):
            pass


def test_a_user_without_rights_sees_nothing(secure: SecureCluster) -> None:
    """A user whom the table does not name may sign in, and then see and do nothing."""
    grant_access.set_passwords(secure.administrator(), {"stranger": b"known"})
    assert judged(secure, "stranger", "known") == {}
    client = Producer(secure.librdkafka("stranger", "known") | {"message.timeout.ms": 5_000})
    outcomes: list[str] = []
    for name in topics.NAMES:
        client.produce(name, b"x", on_delivery=lambda error, _: outcomes.append(error.name()))
    client.flush(ANSWER_SECONDS)
    assert outcomes == ["TOPIC_AUTHORIZATION_FAILED"] * len(topics.NAMES)


def test_rights_follow_the_table(
    secure: SecureCluster, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Granting again changes nothing; a right that leaves the table is taken away."""
    assert grant(secure) == 0
    assert "0 rights added, 0 taken away" in capsys.readouterr().out
    more = yaml.safe_load(ACLS.read_text("utf-8"))
    more["users"]["sink"]["topics"][topics.SEALS].append("WRITE")
    table = tmp_path / "acls.yaml"
    table.write_text(yaml.safe_dump(more))
    assert grant(secure, "--acls", str(table)) == 0
    assert "1 rights added, 0 taken away" in capsys.readouterr().out
    assert grant(secure) == 0
    assert "0 rights added, 1 taken away" in capsys.readouterr().out
    assert judged(secure, "sink")[topics.SEALS] == granted("sink", topics.SEALS)
