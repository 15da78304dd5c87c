"""The page of settings, its tables written from the settings themselves.

`python -m tests.support.settings_table` writes them anew between the markers in docs/settings.md.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import pkgutil
import textwrap
from collections.abc import Iterator
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Final

from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from approvaltrail.schemas.environment import EnvironmentSettings, variable_names

PAGE: Final = Path(__file__).parents[2] / "docs" / "settings.md"
BEGIN: Final = "<!-- settings: begin -->"
END: Final = "<!-- settings: end -->"
PARTS: Final = {
    "schemas": "Kafka and a schema registry, for whoever speaks to them",
    "gate": "Gate",
    "producer": "Producer",
    "store": "ClickHouse, for whoever speaks to it",
    "consumers": "Sink",
    "dashboard": "Dashboard",
    "local": "One machine: `up` and `demo`",
    "server": "Server",
}
"""Each part that has settings, and what its table is called."""


def settings_classes() -> Iterator[tuple[str, type[EnvironmentSettings]]]:
    """Yield each settings class with the part that it belongs to, in the parts' order."""
    for part in PARTS:
        package = importlib.import_module(f"approvaltrail.{part}")
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if module.name.endswith(("settings", ".migrate")):
                loaded = importlib.import_module(module.name)
                for value in vars(loaded).values():
                    if (
                        inspect.isclass(value)
                        and issubclass(value, EnvironmentSettings)
                        and value.__module__ == module.name
                    ):
                        yield part, value


def rows() -> Iterator[tuple[str, str, str, str]]:
    """Yield part, variables, default and meaning of each setting, each variable once."""
    seen: set[str] = set()
    for part, settings in settings_classes():
        meanings = _meanings(settings)
        for name, field in settings.model_fields.items():
            names = variable_names(field, name)
            if names[0] in seen:
                continue
            seen.add(names[0])
            variables = ", ".join(f"`{variable}`" for variable in names)
            yield part, variables, _default(field), meanings.get(name, "")


def tables() -> str:
    """Return a table in Markdown for each part, under its heading."""
    lines: list[str] = []
    for part, group in groupby(rows(), key=itemgetter(0)):
        lines += ["", f"## {PARTS[part]}", ""]
        lines += ["| variable, aliases | default | meaning |", "|---|---|---|"]
        lines += [f"| {' | '.join(row)} |" for _, *row in group]
    return "\n".join(lines).strip()


def written() -> str:
    """Return the tables as they stand on the page."""
    text = PAGE.read_text("utf-8")
    return text[text.index(BEGIN) + len(BEGIN) : text.index(END)].strip()


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return "**required**"
    if field.default is PydanticUndefined:
        return "see meaning"
    if field.default is None or field.default == "":
        return ""
    return f"`{getattr(field.default, 'value', field.default)}`"


def _meanings(settings: type) -> dict[str, str]:
    found: dict[str, str] = {}
    for kind in reversed(settings.__mro__):
        if kind.__module__.startswith("approvaltrail."):
            found |= _docstrings(kind)
    return found


def _docstrings(kind: type) -> dict[str, str]:
    """Read the sentences that stand below each field in the source."""
    body = ast.parse(textwrap.dedent(inspect.getsource(kind))).body[0]
    assert isinstance(body, ast.ClassDef)
    found: dict[str, str] = {}
    for before, after in zip(body.body, body.body[1:], strict=False):
        if (
            isinstance(before, ast.AnnAssign)
            and isinstance(before.target, ast.Name)
            and isinstance(after, ast.Expr)
            and isinstance(after.value, ast.Constant)
        ):
            found[before.target.id] = " ".join(str(after.value.value).split()).replace("|", "\\|")
    return found


def main() -> None:
    """Write the tables into the page."""
    text = PAGE.read_text("utf-8")
    before, rest = text.split(BEGIN)
    after = rest.split(END)[1]
    PAGE.write_text(f"{before}{BEGIN}\n{tables()}\n{END}{after}", "utf-8")


if __name__ == "__main__":
    main()
