"""Events on the wire in Confluent's framing, with a real registry; the journal keeps its bytes."""

from __future__ import annotations

import builtins
import json
import sys
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer
from confluent_kafka.serialization import MessageField, SerializationContext
from tests.producer.support import (
    bodies_in,
    heartbeats,
    issued,
    journal_in,
    make_topics,
    messages_of,
    refused,
    seals,
    settings_for,
    until,
)
from tests.support.engine_faults import Close, FaultProxy, Status
from tests.support.schema_registry import INTERFACE

from approvaltrail.consumers.migrate import register_schemas
from approvaltrail.producer import Producer
from approvaltrail.producer.seals import verify_seals
from approvaltrail.schemas import topics
from approvaltrail.schemas.contract import (
    HEADER_BYTES,
    confluent_header,
    event_contract,
    header_of,
    registry_id_of,
)
from approvaltrail.schemas.encoding import decode_values
from approvaltrail.schemas.errors import SettingsError

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.schema_registry import RegistryProcess

    from approvaltrail.local.broker import BrokerProcess
    from approvaltrail.producer.settings import ProducerSettings


async def on_the_wire(settings: ProducerSettings, count: int) -> list[Any]:
    """Return the messages of the events' topic once there are so many."""
    topic = topics.prefixed(topics.EVENTS, settings.topic_prefix)
    return await messages_of(
        settings.kafka_bootstrap_servers, topic, lambda found: len(found) >= count
    )


async def test_a_framed_event_is_readable_by_confluents_own_deserializer(
    tmp_path: Path, kafka: BrokerProcess, topic_prefix: str, schema_registry: RegistryProcess
) -> None:
    """Confluent's deserializer reads each event off the wire, as the journal's bytes decode."""
    await make_topics(kafka.bootstrap_servers, topic_prefix)
    settings = settings_for(
        tmp_path,
        kafka.bootstrap_servers,
        topic_prefix=topic_prefix,
        schema_registry_url=schema_registry.url,
    )
    async with Producer(settings) as producer:
        for event in (issued(), refused(), issued(attributes=(("region", "eu"),))):
            await producer.record(event)
        messages = await on_the_wire(settings, 3)
    client = SchemaRegistryClient({"url": schema_registry.url})
    [version] = client.get_versions(f"{topic_prefix}{topics.EVENTS}-value")
    registered = client.get_version(f"{topic_prefix}{topics.EVENTS}-value", version)
    assert json.loads(registered.schema.schema_str)["name"] == "ApprovalEvent"
    read = AvroDeserializer(client)
    context = SerializationContext(messages[0].topic, MessageField.VALUE)
    values = sorted(
        (read(message.value, context) for message in messages), key=lambda one: one["sequence"]
    )
    assert values == [decode_values(body) for body in bodies_in(journal_in(tmp_path))]
    assert {registry_id_of(header_of(one.value) or b"") for one in messages} == {
        registered.schema_id
    }


async def test_journal_and_seals_keep_their_bytes_and_other_messages_their_framing(
    tmp_path: Path, kafka: BrokerProcess, topic_prefix: str, schema_registry: RegistryProcess
) -> None:
    """Only the header is exchanged, of events alone: records, seals and heartbeats are the same."""
    await make_topics(kafka.bootstrap_servers, topic_prefix)
    settings = settings_for(
        tmp_path,
        kafka.bootstrap_servers,
        topic_prefix=topic_prefix,
        schema_registry_url=schema_registry.url,
    )
    async with Producer(settings) as producer:
        for _ in range(5):
            await producer.record(issued())
        messages = await on_the_wire(settings, 5)
    bodies = bodies_in(journal_in(tmp_path))
    assert {body[:HEADER_BYTES] for body in bodies} == {event_contract().header}
    assert sorted(message.value[5:] for message in messages) == sorted(
        body[HEADER_BYTES:] for body in bodies
    )
    sealed = await seals(
        kafka.bootstrap_servers, topic_prefix, lambda found: found and found[-1].last_sequence == 5
    )
    assert verify_seals(sealed, lambda first, last: bodies[first - 1 : last]) == ()
    assert await heartbeats(kafka.bootstrap_servers, topic_prefix, lambda found: len(found) > 1)


@pytest.mark.parametrize("fault", [Status(503), Status(404), Status(401), Close()], ids=repr)
async def test_while_the_registry_is_away_recording_goes_on_and_health_says_so(
    tmp_path: Path,
    kafka: BrokerProcess,
    topic_prefix: str,
    registry_faults: FaultProxy,
    fault: Any,
) -> None:
    """The relay waits for the registry; nothing is sent in another framing meanwhile."""
    await make_topics(kafka.bootstrap_servers, topic_prefix)
    registry_faults.inject(fault, match="", times=1_000_000)
    settings = settings_for(
        tmp_path,
        kafka.bootstrap_servers,
        topic_prefix=topic_prefix,
        schema_registry_url=registry_faults.url + INTERFACE,
    )
    async with Producer(settings) as producer:
        await producer.record(issued())
        await until(
            lambda: "schema registry" in " ".join(one.text for one in producer.health().reasons),
            "health names the registry",
        )
        assert (await producer.record(issued())).sequence == 2
        assert (producer.health().ready, producer.health().pending) == (True, 2)
        registry_faults.clear()
        await until(lambda: producer.health().pending == 0, "all is delivered")
        assert not producer.health().degraded
        messages = await on_the_wire(settings, 2)
    assert {message.value[:1] for message in messages} == {b"\0"}


async def test_without_leave_to_register_the_relay_waits_until_migrate_has(
    tmp_path: Path, kafka: BrokerProcess, topic_prefix: str, schema_registry: RegistryProcess
) -> None:
    """A producer that may not register says who can, and goes on once the schema is there."""
    await make_topics(kafka.bootstrap_servers, topic_prefix)
    settings = settings_for(
        tmp_path,
        kafka.bootstrap_servers,
        topic_prefix=topic_prefix,
        schema_registry_url=schema_registry.url,
        schema_registry_register=False,
    )
    async with Producer(settings) as producer:
        await producer.record(issued())
        await until(
            lambda: (
                "run `approvaltrail migrate`" in producer.health().reasons[0].text
                if producer.health().reasons
                else None
            ),
            "health says what to do",
        )
        [said] = await register_schemas(settings, topic_prefix)
        assert said.startswith("approval_event.v1 is schema ")
        await until(lambda: producer.health().pending == 0, "all is delivered")
        [message] = await on_the_wire(settings, 1)
    number = int(said.split("schema ")[1].split()[0])
    assert message.value.startswith(confluent_header(number))


def test_a_registry_without_its_extra_is_a_start_that_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without httpx the start is refused, and leaves no journal behind."""
    real = builtins.__import__

    def without_httpx(name: str, *arguments: Any, **named: Any) -> Any:
        if name == "httpx":
            raise ImportError(name=name)
        return real(name, *arguments, **named)

    monkeypatch.delitem(sys.modules, "approvaltrail.schemas.registry", raising=False)
    monkeypatch.setattr(builtins, "__import__", without_httpx)
    settings = settings_for(tmp_path / "journals", schema_registry_url="http://127.0.0.1:1")
    with pytest.raises(SettingsError, match=r"install approvaltrail-producer\[registry\]"):
        Producer(settings).start()
    assert list(tmp_path.rglob("*.journal")) == []
