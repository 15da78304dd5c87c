"""The embedded broker: real Apache Kafka that starts, stops, dies and comes back."""

from __future__ import annotations

import asyncio
import socket
from typing import TYPE_CHECKING

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from tests.support.processes import is_alive, owner_of, wait_until
from tests.support.services import missing

from approvaltrail.local.broker import (
    Broker,
    BrokerError,
    BrokerProcess,
    BrokerStartError,
    FolderInUseError,
    PortTakenError,
    cluster,
    default_cache,
    ensure_jars,
)
from approvaltrail.local.broker.broker import single
from approvaltrail.local.broker.metadata import ask_cluster

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

TOPIC = "kept"


@pytest.fixture(scope="module")
def jars() -> tuple[Path, ...]:
    """Give the checked jars."""
    try:
        return ensure_jars()
    except BrokerError as error:
        missing("the embedded Kafka", error)


@pytest.fixture
def broker(tmp_path: Path, jars: tuple[Path, ...]) -> Iterator[BrokerProcess]:
    """Give a broker of this test's own, not started."""
    process = BrokerProcess(tmp_path / "kafka", offline=True)
    yield process
    process.kill()


async def create(bootstrap: str, partitions: int = 1, copies: int = 1) -> None:
    """Create the topic."""
    admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap)
    await admin.start()
    await admin.create_topics([NewTopic(TOPIC, partitions, copies)])
    await admin.close()


async def send(bootstrap: str, values: list[bytes]) -> None:
    """Send, each acknowledged."""
    producer = AIOKafkaProducer(bootstrap_servers=bootstrap, acks="all", enable_idempotence=True)
    await producer.start()
    await asyncio.gather(*[await producer.send(TOPIC, value) for value in values])
    await producer.stop()


async def receive(bootstrap: str, count: int) -> list[bytes]:
    """Read the topic from its start."""
    consumer = AIOKafkaConsumer(TOPIC, bootstrap_servers=bootstrap, auto_offset_reset="earliest")
    await consumer.start()
    async with asyncio.timeout(20):
        values = [(await consumer.getone()).value for _ in range(count)]
    await consumer.stop()
    return values


async def test_acknowledged_records_survive_a_kill_and_a_move_to_other_ports(
    tmp_path: Path, broker: BrokerProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a Java on the PATH, records survive SIGKILL, a restart, a stop and other ports."""
    monkeypatch.setenv("PATH", "/nowhere")
    first = broker.start().wait_ready()
    await create(first.bootstrap_servers)
    values = [b"%d" % number for number in range(200)]
    await send(first.bootstrap_servers, values)

    broker.kill()
    assert not broker.running
    again = broker.start().wait_ready()
    assert again == first, "the same port and cluster, so that clients find it"
    assert await receive(again.bootstrap_servers, 200) == values

    broker.stop()
    assert broker.pid is not None
    assert not is_alive(broker.pid)
    moved = BrokerProcess(tmp_path / "kafka", offline=True)
    try:
        address = moved.start().wait_ready()
        assert address.cluster_id == first.cluster_id
        assert address.bootstrap_servers != first.bootstrap_servers
        assert await receive(address.bootstrap_servers, 200) == values
    finally:
        moved.stop()


def test_a_folder_belongs_to_one_broker_at_a_time(kafka: BrokerProcess) -> None:
    """A second broker on the same folder is refused, and told what to do; the first lives on."""
    second = BrokerProcess(kafka.data, offline=True)
    with pytest.raises(FolderInUseError, match=r"another broker runs on .*another folder"):
        second.start()
    assert kafka.running


def test_a_taken_port_is_named_before_java_starts(broker: BrokerProcess, tmp_path: Path) -> None:
    """A port that somebody else listens on is an error that names it."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        process = BrokerProcess(tmp_path / "other", port, offline=True)
        with pytest.raises(PortTakenError, match=rf"port {port} .*choose another port"):
            process.start()
    assert process.pid is None


def test_a_port_taken_meanwhile_is_found_out(jars: tuple[Path, ...], tmp_path: Path) -> None:
    """Kafka's own finding that a port is taken becomes the same error."""
    one = single(tmp_path / "late", jars)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        host, port = taken.getsockname()
        late = Broker(
            tmp_path / "late", jars, one.node, properties={"listeners": _listeners(one, port)}
        )
        late.start()
        with pytest.raises((PortTakenError, BrokerStartError)) as caught:
            late.wait_ready()
        late.kill()
    assert isinstance(caught.value, PortTakenError), host


def _listeners(broker: Broker, port: int) -> str:
    controller = f"CONTROLLER://127.0.0.1:{broker.node.controller_port}"
    return f"PLAINTEXT://127.0.0.1:{port},{controller}"


def test_readiness_knows_its_own_cluster(kafka: BrokerProcess) -> None:
    """Readiness asks who answers; nothing and a stranger are told from the broker itself."""
    host, _, port = kafka.bootstrap_servers.partition(":")
    view = ask_cluster(host, int(port))
    assert view is not None
    assert view.cluster_id == kafka.wait_ready().cluster_id
    assert view.node_ids == {1}
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        assert ask_cluster("127.0.0.1", unused.getsockname()[1], 0.2) is None


def test_a_folder_of_another_node_is_refused(jars: tuple[Path, ...], tmp_path: Path) -> None:
    """A folder formatted for one cluster is not started as another's."""
    folder = tmp_path / "home"
    (folder / "data").mkdir(parents=True)
    (folder / "data" / "meta.properties").write_text("cluster.id=abc\nnode.id=7\nversion=1\n")
    with pytest.raises(BrokerError, match=r"holds node 7 of cluster abc, not node 1"):
        single(folder, jars).start()


def test_no_broker_outlives_its_owner(jars: tuple[Path, ...], tmp_path: Path) -> None:
    """When the process that started Kafka is killed by SIGKILL, no JVM stays behind."""
    owner, pid = owner_of(
        "from pathlib import Path; from approvaltrail.local.broker import BrokerProcess\n"
        f"b = BrokerProcess(Path({str(tmp_path / 'kafka')!r}), offline=True).start()\n"
        "b.wait_ready(); print(b.pid, flush=True)"
    )
    assert is_alive(pid)
    owner.kill()
    owner.wait()
    wait_until(lambda: not is_alive(pid), "the JVM is gone", 15)


async def test_a_cluster_of_three_serves_with_one_node_killed(tmp_path: Path) -> None:
    """Three brokers form one cluster that keeps acknowledged records when one is killed."""
    three = cluster(tmp_path, ensure_jars(default_cache(), offline=True))
    try:
        three.start().wait_ready()
        await create(three.bootstrap_servers, partitions=3, copies=3)
        await send(three.bootstrap_servers, [b"before"])
        three.brokers[0].kill()
        await send(three.bootstrap_servers, [b"after"])
        assert sorted(await receive(three.bootstrap_servers, 2)) == [b"after", b"before"]
    finally:
        three.stop()
    assert not any(broker.running for broker in three.brokers)
