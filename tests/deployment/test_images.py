"""The images: each is built from the distributions that it needs, and starts what exists."""

from __future__ import annotations

import fnmatch
import importlib.util
import json
import re
import tomllib
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

import pytest
import yaml
from deploy.make_secrets import ADMINISTRATOR, BROKERS, STORE_USERS, VIEWER
from tests.deployment import compose
from tests.deployment.secure_cluster import USERS

ROOT = compose.ROOT
DEVELOPMENT = ROOT / "deploy" / "docker-compose.development.yml"
PYTHON_IMAGES = {"sink": "consumers", "dashboard": "dashboard"}
OURS = re.compile(r"approvaltrail-([a-z]+)")


@dataclass(slots=True)
class Stage:
    """One stage of the Dockerfile: where it begins, and its instructions in order."""

    base: str
    steps: list[tuple[str, str]] = field(default_factory=list)

    def all(self, instruction: str) -> list[str]:
        return [text for name, text in self.steps if name == instruction]


def stages() -> dict[str, Stage]:
    """Read the Dockerfile, continued lines joined."""
    text = (ROOT / "Dockerfile").read_text("utf-8").replace("\\\n", " ")
    found: dict[str, Stage] = {}
    name = ""
    for line in text.splitlines():
        instruction, _, rest = line.strip().partition(" ")
        if instruction == "FROM":
            base, _, name = rest.partition(" AS ")
            found[name] = Stage(base)
        elif instruction and not instruction.startswith("#"):
            found[name].steps.append((instruction, rest.strip()))
    return found


def with_bases(name: str) -> list[tuple[str, str]]:
    """Return a stage's instructions after those of the stages that it begins from."""
    stage = stages()[name]
    before = with_bases(stage.base) if stage.base in stages() else []
    return [*before, *stage.steps]


def members_needed(distribution: str) -> set[str]:
    """Return the members that a member's installation needs, itself included."""
    project = tomllib.loads((ROOT / distribution / "pyproject.toml").read_text())["project"]
    direct = {match[1] for line in project["dependencies"] if (match := OURS.match(line))}
    return {distribution}.union(*(members_needed(member) for member in direct))


@pytest.mark.parametrize(("image", "member"), PYTHON_IMAGES.items())
def test_an_image_builds_the_wheels_it_installs(image: str, member: str) -> None:
    """Of the workspace, an image copies and builds exactly what its distribution needs."""
    steps = with_bases(f"build-{image}")
    workspace = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["uv"]["workspace"]
    copied = {text.split()[0] for name, text in steps if name == "COPY"} & set(workspace["members"])
    runs = " ".join(text for name, text in steps if name == "RUN")
    built = set(re.search(r"for member in ([a-z ]+);", runs)[1].split())
    assert copied == built == members_needed(member)
    assert f"approvaltrail-{member}" in runs
    assert "--constraint requirements.lock" in runs


@pytest.mark.parametrize("image", [*PYTHON_IMAGES, "access"])
def test_a_final_stage_holds_an_environment_and_no_tools(image: str) -> None:
    """A final stage copies one environment, begins from the bare runtime, and is not root."""
    stage = stages()[image]
    assert stage.base == "runtime"
    assert f"--from=build-{image} /{image} /{image}" in stage.all("COPY")
    assert stage.all("USER") == ["10001:10001"]
    start = json.loads(stage.all("ENTRYPOINT")[0])
    assert start[0] == f"/{image}/bin/python"
    if start[1] == "-m":
        assert importlib.util.find_spec(start[2]) is not None


def test_every_base_image_is_pinned_to_a_version() -> None:
    """No image is `latest`, and all stages of ours begin from the same Python."""
    ours = {stage.base for stage in stages().values() if stage.base not in stages()}
    assert len(ours) == 1
    for file in (compose.FILE, DEVELOPMENT):
        ours |= {one["image"] for one in compose.services(file).values() if "image" in one}
    for image in ours:
        assert re.search(r":\d+\.\d+", image), image


def test_the_packages_of_the_access_image_are_locked() -> None:
    """What the access image installs has its version and hashes in requirements.lock."""
    runs = " ".join(text for name, text in with_bases("build-access") if name == "RUN")
    packages = runs.rsplit("requirements.lock", 1)[1].split()
    lock = (ROOT / "requirements.lock").read_text("utf-8")
    for package in packages:
        assert re.search(rf"^{package}==", lock, re.MULTILINE), f"make lock: {package}"


def test_what_is_copied_is_sent_to_the_builder() -> None:
    """.dockerignore lets through what the Dockerfile copies."""
    rules = [line for line in (ROOT / ".dockerignore").read_text().splitlines() if line[0] != "#"]
    for stage in stages().values():
        for text in stage.all("COPY"):
            if text.startswith("--from"):
                continue
            for source in text.split()[:-1]:
                assert (ROOT / source).exists(), source
                allowed = [rule[1:] for rule in rules if rule.startswith("!")]
                assert any(fnmatch.fnmatch(source.split("/")[0], one) for one in allowed), source


def starts_what_exists(entrypoint: list[str]) -> None:
    for option, value in pairwise(entrypoint):
        if option == "-m":
            assert importlib.util.find_spec(value) is not None, value
        if value.startswith("/deploy/"):
            assert (ROOT / value.removeprefix("/")).is_file(), value


@pytest.mark.parametrize("file", [compose.FILE, DEVELOPMENT], ids=["cluster", "development"])
def test_services_build_targets_and_mount_files_that_exist(file: Path) -> None:
    """A service's build target, mounted files, volumes, networks and predecessors exist."""
    whole = yaml.safe_load(file.read_text("utf-8"))
    for name, service in whole["services"].items():
        if "build" in service:
            assert service["build"]["target"] in stages(), name
            assert (file.parent / service["build"]["context"]).resolve() == ROOT
            starts_what_exists(service.get("entrypoint", []))
        for volume in service.get("volumes", []):
            source = volume.split(":")[0]
            if source.startswith("."):
                assert (file.parent / source).is_file(), volume
            else:
                assert source in whole["volumes"], volume
        assert set(service.get("depends_on", {})) <= set(whole["services"])
        assert set(service.get("networks", [])) <= set(whole.get("networks") or {})


@pytest.mark.parametrize("file", [compose.FILE, DEVELOPMENT], ids=["cluster", "development"])
def test_every_service_runs_with_the_least(file: Path) -> None:
    """No service is root, can write its image, gains privileges, or listens beyond loopback."""
    for name, service in compose.services(file).items():
        assert service["user"].split(":")[0] not in ("0", "root"), name
        assert service["read_only"] is True, name
        assert service["cap_drop"] == ["ALL"], name
        assert "no-new-privileges:true" in service["security_opt"], name
        for port in service.get("ports", []):
            assert port.startswith("127.0.0.1:"), name
        ends = service["restart"] in ("no", "on-failure")
        assert ends or "healthcheck" in service, name


def test_the_secrets_job_fills_every_folder_that_others_mount() -> None:
    """Each folder of secrets is a volume that one job writes and others may only read."""
    everything = compose.services()
    made = dict(volume.split(":") for volume in everything["secrets"]["volumes"])
    folders = {Path(path).name for path in made.values()}
    assert folders == {*BROKERS, ADMINISTRATOR, *USERS, *STORE_USERS, VIEWER} | {
        "authority",
        "clickhouse",
        "door",
    }
    prepared = " ".join(stages()["access"].all("RUN"))
    assert all(re.search(rf"[ ]{folder}[ ;]", prepared) for folder in folders)
    for name, service in everything.items():
        mounted = [one for one in service.get("volumes", []) if one.split(":")[0] in made]
        if name == "secrets":
            continue
        assert all(volume.endswith(":ro") for volume in mounted), name
        assert len(mounted) <= 1, f"{name} sees only its own"
