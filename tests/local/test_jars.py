"""Kafka's jars: pinned, checked, fetched once."""

from __future__ import annotations

import dataclasses
import re
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest
from tests.support.services import missing

from approvaltrail.local.broker import JarError
from approvaltrail.local.broker.jars import Jar, ensure_jars, pinned_jars

if TYPE_CHECKING:
    from pathlib import Path

SMALL = next(jar for jar in pinned_jars() if jar.artifact == "slf4j-simple")


def fetch(cache: Path, pins: list[Jar]) -> tuple[Path, ...]:
    """Fetch, or skip where no repository is reachable."""
    try:
        return ensure_jars(cache, pins=pins)
    except JarError as error:
        if "cannot fetch" not in str(error):
            raise
        missing("fetching jars", error)


def test_every_jar_is_pinned_by_version_and_digest() -> None:
    """Every jar is pinned by an exact version and a SHA-256, and no host is named."""
    pins = pinned_jars()
    assert len(pins) == 46
    assert len({jar.file_name for jar in pins}) == 46
    for jar in pins:
        assert re.fullmatch(r"[0-9a-f]{64}", jar.sha256)
        assert re.fullmatch(r"[\w.-]+:[\w.-]+:\d[\w.-]*", jar.coordinates)


def test_a_missing_jar_is_fetched_and_a_damaged_one_is_fetched_again(tmp_path: Path) -> None:
    """A jar that is missing or damaged is replaced by the pinned one, and progress is told."""
    (path,) = fetch(tmp_path, [SMALL])
    good = path.read_bytes()
    path.write_bytes(good[:-1] + b"?")
    told: list[tuple[int, int, str]] = []
    ensure_jars(tmp_path, pins=[SMALL], progress=lambda *step: told.append(step))
    assert path.read_bytes() == good
    assert told == [(1, 1, SMALL.file_name)]
    assert [entry.name for entry in tmp_path.glob(".fetch-*")] == []


def test_offline_says_what_is_missing_and_what_to_do(tmp_path: Path) -> None:
    """Offline, a missing jar is an error that names the jar, the folder and the next move."""
    told = r"1 of 1 .*missing or damaged in .*slf4j-simple.*network access"
    with pytest.raises(JarError, match=told) as caught:
        ensure_jars(tmp_path / "none", pins=[SMALL], offline=True)
    assert str(tmp_path) in str(caught.value)


def test_offline_is_enough_once_all_are_there(tmp_path: Path) -> None:
    """A complete cache needs no network."""
    fetch(tmp_path, [SMALL])
    assert ensure_jars(tmp_path, pins=[SMALL], offline=True) == (tmp_path / SMALL.file_name,)


def test_a_jar_with_other_bytes_than_pinned_is_refused(tmp_path: Path) -> None:
    """What arrives with another digest than pinned is refused and never enters the cache."""
    altered = dataclasses.replace(SMALL, sha256="0" * 64)
    with pytest.raises(JarError, match=r"slf4j-simple.*SHA-256|cannot fetch") as caught:
        ensure_jars(tmp_path, pins=[altered])
    if "cannot fetch" in str(caught.value):
        missing("fetching jars", caught.value)
    assert not (tmp_path / SMALL.file_name).exists()


def test_concurrent_callers_all_get_the_jar(tmp_path: Path) -> None:
    """Several callers at once end with one whole jar."""
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda _: fetch(tmp_path, [SMALL]), range(4)))
    assert set(found) == {(tmp_path / SMALL.file_name,)}
    ensure_jars(tmp_path, pins=[SMALL], offline=True)


def test_a_cache_that_java_cannot_name_is_refused(tmp_path: Path) -> None:
    """A class path is cut at each colon."""
    with pytest.raises(JarError, match="APPROVALTRAIL_JAR_CACHE to a folder without one"):
        ensure_jars(tmp_path / "a:b", pins=[SMALL])


def test_a_cache_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    """A folder that cannot be made is named in the error."""
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(JarError, match=r"cannot write Kafka's jars to .*choose another"):
        ensure_jars(tmp_path / "file" / "cache", pins=[SMALL])
