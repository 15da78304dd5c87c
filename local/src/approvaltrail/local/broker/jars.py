"""Kafka's jars: exact pins, fetched once, checked by SHA-256 on every use."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import tempfile
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING

import platformdirs

from approvaltrail.local.broker.errors import JarError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    Progress = Callable[[int, int, str], None]
    """Called with (jars done, jars in all, name of the last one), always on the caller's thread."""

KAFKA_VERSION = "4.3.1"
_TRIES = 3
_FETCHERS = 4
_TIMEOUT_SECONDS = 30


@dataclass(frozen=True, slots=True, kw_only=True)
class Jar:
    """One pinned Maven artifact."""

    group: str
    artifact: str
    version: str
    sha256: str
    classifier: str = ""
    packaging: str = "jar"

    @property
    def coordinates(self) -> str:
        """Maven's name for it, `group:artifact:version`."""
        return f"{self.group}:{self.artifact}:{self.version}"

    @property
    def file_name(self) -> str:
        """Its name in the cache folder."""
        classifier = f"-{self.classifier}" if self.classifier else ""
        return f"{self.artifact}-{self.version}{classifier}.{self.packaging}"


def pinned_jars() -> tuple[Jar, ...]:
    """Return the pins that ship with this package (`kafka-jars.lock`)."""
    text = resources.files(__package__).joinpath("kafka-jars.lock").read_text("utf-8")
    lines = (line.partition("#")[0].split() for line in text.splitlines())
    return tuple(
        Jar(group=group, artifact=artifact, version=version, sha256=sha256)
        for coordinates, sha256 in filter(None, lines)
        for group, artifact, version in [coordinates.split(":")]
    )


def default_cache() -> Path:
    """Return the folder of the jars in the user's cache."""
    return platformdirs.user_cache_path("approvaltrail") / f"kafka-{KAFKA_VERSION}"


def ensure_jars(
    cache: Path | None = None,
    *,
    offline: bool = False,
    progress: Progress | None = None,
    pins: Sequence[Jar] | None = None,
) -> tuple[Path, ...]:
    """Return the paths of all jars, each checked against its pin; fetch what is missing or damaged.

    Safe for several processes at once: one fetches, the others wait for it. A jar appears in the
    cache in one step, checked. Raises JarError.
    """
    cache = (cache or default_cache()).absolute()
    if os.pathsep in str(cache):
        raise JarError(
            f"Java cannot take jars from {cache}: its class path is cut at each {os.pathsep!r}; "
            "set APPROVALTRAIL_JAR_CACHE to a folder without one"
        )
    wanted = tuple(pins if pins is not None else pinned_jars())
    report = _Reporter(len(wanted), progress)
    bad = [jar for jar in wanted if not report.checked(jar, intact=_is_intact(jar, cache))]
    if bad and offline:
        raise JarError(
            f"{len(bad)} of {len(wanted)} Kafka jars are missing or damaged in {cache} "
            f"({bad[0].file_name} first) and fetching is switched off: "
            "run once with network access, or point to a folder that holds them"
        )
    if bad:
        _fetch_missing(bad, cache, report)
    return tuple(cache / jar.file_name for jar in wanted)


class _Reporter:
    """Counts jars that are in place and tells the caller."""

    def __init__(self, total: int, progress: Progress | None) -> None:
        self._done = 0
        self._total = total
        self._progress = progress

    def checked(self, jar: Jar, *, intact: bool) -> bool:
        if intact:
            self._done += 1
            if self._progress is not None:
                self._progress(self._done, self._total, jar.file_name)
        return intact


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _is_intact(jar: Jar, cache: Path) -> bool:
    path = cache / jar.file_name
    return path.is_file() and _sha256(path) == jar.sha256


@contextlib.contextmanager
def _alone(cache: Path) -> Iterator[None]:
    try:
        cache.mkdir(parents=True, exist_ok=True)
        lock = (cache / ".lock").open("w")
    except OSError as error:
        raise JarError(
            f"cannot write Kafka's jars to {cache} ({error.strerror}): "
            "make the folder writable or choose another"
        ) from error
    with lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _fetch_missing(bad: Sequence[Jar], cache: Path, report: _Reporter) -> None:
    with (
        _alone(cache),
        tempfile.TemporaryDirectory(dir=cache, prefix=".fetch-") as folder,
        ThreadPoolExecutor(_FETCHERS) as pool,
    ):
        fetcher = _Fetcher(Path(folder))
        missing = [jar for jar in bad if not report.checked(jar, intact=_is_intact(jar, cache))]
        futures = {pool.submit(fetcher.fetch, jar, cache): jar for jar in missing}
        try:
            for future in as_completed(futures):
                future.result()
                report.checked(futures[future], intact=True)
        except BaseException:
            pool.shutdown(wait=True, cancel_futures=True)
            raise


class _Fetcher:
    """jgo's Maven client, told to keep its files in a private folder."""

    def __init__(self, folder: Path) -> None:
        from jgo.maven import MavenContext  # noqa: PLC0415 - slow, rarely needed

        self._maven = MavenContext(repo_cache=folder, timeout=_TIMEOUT_SECONDS)

    def fetch(self, jar: Jar, cache: Path) -> None:
        path = self._download(jar)
        found = _sha256(path)
        if found != jar.sha256:
            raise JarError(
                f"{jar.coordinates} arrived with SHA-256 {found}, pinned is {jar.sha256}: "
                "it was not used; look at what stands between this machine and the repository"
            )
        path.replace(cache / jar.file_name)

    def _download(self, jar: Jar) -> Path:
        component = self._maven.project(jar.group, jar.artifact).at_version(jar.version)
        artifact = component.artifact(jar.classifier, jar.packaging)
        for attempt in range(1, _TRIES + 1):
            try:
                if artifact.cached_path is not None:
                    # The client refuses to write over what an interrupted attempt left behind.
                    artifact.cached_path.unlink(missing_ok=True)
                return Path(self._maven.resolver.download(artifact) or "")
            except Exception as error:
                if attempt == _TRIES:
                    raise JarError(
                        f"cannot fetch {jar.coordinates} ({type(error).__name__}, "
                        f"{_TRIES} attempts): check the network and run again; "
                        "jars already fetched are kept"
                    ) from error
        raise AssertionError  # the loop returns or raises
