"""The broker's start-up cache: used where it fits, done without wherever it does not."""

from __future__ import annotations

import shutil
import threading
from pathlib import Path

import pytest
from tests.support.processes import wait_until
from tests.support.services import missing

from approvaltrail.local import parts
from approvaltrail.local.broker import BrokerError, BrokerProcess, ensure_jars
from approvaltrail.local.broker.broker import single
from approvaltrail.local.broker.startup_cache import cache_file
from approvaltrail.local.child import ChildError
from approvaltrail.local.parts import BrokerPart


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give the folder of a broker that has run for a while, and so has its cache."""
    home = tmp_path_factory.mktemp("an odd, folder")
    process = BrokerProcess(home)
    part = BrokerPart(process, home.with_suffix(".log"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parts, "_CACHE_AFTER_SECONDS", 0.0)
        try:
            part.start()
        except (BrokerError, ChildError) as error:
            missing("the embedded Kafka", error)
        try:
            alone = [cache_file(home)]
            wait_until(lambda: list(home.glob("startup-*")) == alone, "the cache is made", 180)
        finally:
            part.stop()
    return home


def uses_cache(process: BrokerProcess) -> bool:
    """Whether the JVM has the cache in its memory."""
    maps = Path(f"/proc/{process.pid}/maps").read_text()
    return cache_file(process.data).name in maps


@pytest.mark.timeout(300)
def test_a_cache_is_used_and_a_damaged_one_is_not(made: Path) -> None:
    """A broker with a damaged cache starts as one without; a killed one comes back with its own."""
    whole = cache_file(made).read_bytes()
    middle = len(whole) // 2
    flipped = whole[:middle] + bytes([whole[middle] ^ 0xFF]) + whole[middle + 1 :]
    process = BrokerProcess(made)
    try:
        for content in (whole, whole, flipped, whole[:middle], b"", b"no cache " * 1_000):
            cache_file(made).write_bytes(content)
            process.start().wait_ready()
            assert uses_cache(process) is (content is whole)
            process.kill()
    finally:
        process.kill()
        cache_file(made).write_bytes(whole)


@pytest.mark.timeout(300)
def test_a_cache_of_other_jars_is_done_without(made: Path, tmp_path: Path) -> None:
    """After an upgrade, say: what was learnt of other jars is not used."""
    jars = list(ensure_jars())
    other = shutil.copy(jars[0], tmp_path / jars[0].name)
    home = tmp_path / "broker"
    home.mkdir()
    shutil.copy(cache_file(made), cache_file(home))
    broker = single(home, [other, *jars[1:]])
    try:
        broker.start().wait_ready()
        assert cache_file(home).name not in Path(f"/proc/{broker.pid}/maps").read_text()
    finally:
        broker.kill()


@pytest.mark.timeout(300)
def test_a_stop_ends_the_making_and_leaves_nothing(tmp_path: Path) -> None:
    """Who stops everything does not wait for a cache, and finds no half of one."""
    process = BrokerProcess(tmp_path)
    failed: list[BaseException] = []

    def make() -> None:
        try:
            process.make_startup_cache()
        except (BrokerError, ChildError) as error:
            failed.append(error)

    thread = threading.Thread(target=make)
    thread.start()
    wait_until(lambda: process._cache_maker and process._cache_maker.running, "it is made", 60)
    process.stop()
    thread.join(60)
    assert not thread.is_alive()
    assert not process.has_startup_cache
    assert list(tmp_path.iterdir()) == []
