"""README and pages tell the truth: settings, commands, code, and the tests that they name."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Any

import pytest
from tests.support import settings_table

from approvaltrail.gate import Plan
from approvaltrail.gate.pytest_plugin import gate  # noqa: F401 - a fixture
from approvaltrail.gate.testing import GateUnderTest, plan_of

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text("utf-8")


def test_the_page_names_every_setting() -> None:
    """The tables of docs/settings.md are those that the settings themselves give."""
    assert settings_table.written() == settings_table.tables(), (
        "run: .venv/bin/python -m tests.support.settings_table"
    )


def test_every_setting_has_a_meaning() -> None:
    """No setting stands in the table without a sentence."""
    assert [variables for _, variables, _, meaning in settings_table.rows() if not meaning] == []


@pytest.mark.parametrize("target", sorted(set(re.findall(r"^make ([a-z]+)", README, re.MULTILINE))))
def test_every_command_of_the_readme_exists(target: str) -> None:
    """Each `make` target that the README names is in the Makefile."""
    assert re.search(rf"^{target}:", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE)


@pytest.mark.parametrize("link", sorted(set(re.findall(r"\]\(([^)#]+)\)", README))))
def test_every_link_of_the_readme_leads_somewhere(link: str) -> None:
    """Each relative link and picture of the README exists."""
    assert link.startswith("https://") or (ROOT / link).exists()


def test_the_readmes_embedding_works(gate: GateUnderTest) -> None:  # noqa: F811
    """The README's five lines, run with an in-memory recorder: shown, run once, then a replay."""
    code = next(block for block in re.findall(r"```python\n(.*?)```", README, re.DOTALL))
    gated = code[code.index("@gate") :]

    class Api:
        async def delete(self, target: str | None) -> str:
            return f"deleted {target}"

    names: dict[str, Any] = {
        "gate": gate.gate,
        "Plan": Plan,
        "api": Api(),
        "plan_delete": lambda cluster: plan_of("tidb_delete_cluster", target=cluster),
    }
    exec(gated, names)

    async def twice() -> tuple[object, object]:
        tool = names["tidb_delete_cluster"]
        shown = await tool("prod-7")
        confirm = {"confirm": True, "confirm_target": "prod-7", "confirm_token": shown.token}
        return await tool("prod-7", **confirm), await tool("prod-7", **confirm)

    ran, again = asyncio.run(twice())
    assert ran == "deleted prod-7"
    assert getattr(again, "code", None) == "already_used"
    assert gate.events.types == ["issued", "accepted", "completed", "replayed"]


@pytest.mark.parametrize(
    "reference",
    sorted(
        {
            reference
            for page in (ROOT / "docs").rglob("*.md")
            for reference in re.findall(r"tests/[\w/]+\.py::\w+", page.read_text("utf-8"))
        }
    ),
)
def test_every_test_that_a_page_names_exists(reference: str) -> None:
    """A promise that names its test names one that there is."""
    file, _, name = reference.partition("::")
    assert re.search(rf"^(async )?def {name}\(", (ROOT / file).read_text("utf-8"), re.MULTILINE)
