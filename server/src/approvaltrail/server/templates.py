"""SQL templates: a fixed statement with parameters, bound to one declared cluster.

A model fills every field that it is shown, so a template's tool shows only what a question can
answer: the parameters. The cluster is no parameter. It is declared in the template, beside the
statement that names its database, and checked against the boundary when the server starts.
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model

from approvaltrail.server.errors import TemplateError

KINDS: Final[dict[str, type]] = {
    "string": str,
    "integer": int,
    "number": float,
    "boolean": bool,
}
MAXIMUM_TEMPLATES: Final = 200
_NAME: Final = r"^[a-z][a-z0-9_]{0,63}$"
_NO_QUESTION: Final = frozenset({"cluster", "clusterid", "cluster_id"})
_READS: Final = re.compile(
    r"\s*(select|with|show|describe|desc|explain|table|values)\b", re.IGNORECASE
)
_PIECES: Final = re.compile(
    r"""('(?:[^'\\]|\\.|'')*'|"(?:[^"\\]|\\.|"")*"|`[^`]*`|--[^\n]*|\#[^\n]*|/\*.*?\*/)"""
    r"""|:([A-Za-z_][A-Za-z0-9_]*)""",
    re.DOTALL | re.VERBOSE,
)


class _Parameter(BaseModel):
    model_config = ConfigDict(extra="forbid")

    type: str = "string"
    description: str = ""


class _Entry(BaseModel):
    model_config = ConfigDict(extra="forbid")

    name: str = Field(pattern=_NAME)
    description: str = Field(min_length=1, max_length=2_000)
    cluster: str = Field(min_length=1, max_length=128)
    database: str = Field(min_length=1, max_length=64)
    sql: str = Field(min_length=1, max_length=16_384)
    parameters: dict[str, _Parameter] = {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Template:
    """One template."""

    name: str
    description: str
    cluster: str
    """The id of the cluster that it runs on."""
    database: str
    statement: str
    """The statement in the driver's notation: `%(name)s`."""
    arguments: type[BaseModel]
    """What a caller gives."""


def load_templates(path: Path) -> tuple[Template, ...]:
    """Read a template file.

    Raises:
        TemplateError: naming every problem, by the template's name or place.
    """
    try:
        content = tomllib.loads(path.read_text("utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise TemplateError(
            [f"the template file cannot be read ({type(error).__name__})"]
        ) from None
    except tomllib.TOMLDecodeError as error:
        raise TemplateError([f"the template file is not TOML: {error}"]) from None
    return templates_of(content)


def templates_of(content: dict[str, Any]) -> tuple[Template, ...]:
    """Read templates from a parsed file; errors as `load_templates`."""
    entries = content.get("template", [])
    unknown = sorted(set(content) - {"template"})
    problems = [f"the template file has an unknown table {name!r}" for name in unknown]
    if not isinstance(entries, list) or len(entries) > MAXIMUM_TEMPLATES:
        raise TemplateError([*problems, f"give at most {MAXIMUM_TEMPLATES} [[template]] tables"])
    found: list[Template] = []
    for place, entry in enumerate(entries, start=1):
        try:
            found.append(_template(entry, place))
        except TemplateError as error:
            problems += error.problems
    names = [template.name for template in found]
    problems += [f"two templates are named {name!r}" for name in {*names} if names.count(name) > 1]
    if problems:
        raise TemplateError(problems)
    return tuple(found)


def _template(entry: Any, place: int) -> Template:
    name = entry.get("name") if isinstance(entry, dict) else None
    where = f"template {name!r}" if isinstance(name, str) else f"template number {place}"
    try:
        read = _Entry.model_validate(entry)
    except ValidationError as error:
        raise TemplateError(_lines(where, error)) from None
    statement, used = _statement(read.sql)
    problems = [
        *(f"{where} uses :{name} and does not declare it" for name in sorted(used)
          if name not in read.parameters),
        *(f"{where} declares {name!r} and does not use it" for name in sorted(read.parameters)
          if name not in used),
        *(f"{where} asks for {name!r}: the cluster is declared, never asked for"
          for name in sorted(read.parameters) if name.lower() in _NO_QUESTION),
        *(f"{where}: parameter {name!r} has type {parameter.type!r}; it takes {', '.join(KINDS)}"
          for name, parameter in read.parameters.items() if parameter.type not in KINDS),
    ]  # fmt: skip
    if _READS.match(read.sql) is None or ";" in _without_texts(read.sql).rstrip().rstrip(";"):
        problems.append(f"{where} must be one statement that reads; changes go by tidb_execute")
    if problems:
        raise TemplateError(problems)
    return Template(
        name=read.name,
        description=read.description,
        cluster=read.cluster,
        database=read.database,
        statement=statement,
        arguments=_arguments(read),
    )


def _lines(where: str, error: ValidationError) -> list[str]:
    lines = []
    for part in error.errors(include_input=False, include_url=False):
        place = ".".join(map(str, part["loc"])) or "it"
        wrong = "is missing" if part["type"] == "missing" else f"is wrong: {part['msg']}"
        why = "; a template declares where it runs" if place == "cluster" else ""
        lines.append(f"{where}: {place} {wrong}{why}")
    return lines


def _statement(sql: str) -> tuple[str, set[str]]:
    """Turn `:name` into the driver's notation, outside quotes and comments; say what is used."""
    used: set[str] = set()
    parts: list[str] = []
    end = 0
    for found in _PIECES.finditer(sql):
        parts.append(sql[end : found.start()].replace("%", "%%"))
        end = found.end()
        if found[2] is None:
            parts.append(found[1].replace("%", "%%"))
        else:
            used.add(found[2])
            parts.append(f"%({found[2]})s")
    parts.append(sql[end:].replace("%", "%%"))
    return "".join(parts), used


def _without_texts(sql: str) -> str:
    return _PIECES.sub(lambda found: "" if found[2] is None else found[0], sql)


def _arguments(read: _Entry) -> type[BaseModel]:
    fields: dict[str, Any] = {
        name: (KINDS[parameter.type], Field(description=parameter.description))
        for name, parameter in read.parameters.items()
    }
    made: type[BaseModel] = create_model(
        f"{read.name}_arguments",
        __config__=ConfigDict(extra="forbid", hide_input_in_errors=True),
        **fields,
    )
    return made
