"""What the reading user may run, beyond what `readonly` already refuses.

ClickHouse's `readonly=2` refuses writes to tables, and no more: inside of a process it still lets a
SELECT read any file by `file()` or by a path in the `default` database, write one by INTO OUTFILE,
fetch a URL, and create temporary tables over files; some settings name files or hold expressions of
their own, and one changes the language. A server has grants for all that; chDB has none.

The engine's own parser prints each statement in canonical form first (no comments, one style of
quotes, exactly one statement), so this check reads what the engine will run and needs no parser.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from approvaltrail.local.engine import codes
from approvaltrail.local.engine.errors import QueryError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

HARMLESS_TABLE_FUNCTIONS = frozenset(
    {
        "format",
        "generaterandom",
        "generateseries",
        "generate_series",
        "null",
        "numbers",
        "numbers_mt",
        "primes",
        "sqlstandardvalues",
        "values",
        "view",
        "zeros",
        "zeros_mt",
    }
)
_READS_OUTSIDE = frozenset({"file", "catboostevaluate"})
_CALLS_A_MODEL = "ai"
_FIRST_WORDS = ("SELECT", "WITH", "SHOW", "DESCRIBE", "EXPLAIN", "EXISTS", "(")
_FILE_DATABASE = "default"
_HARMLESS_SETTINGS = (
    "cast_",
    "count_distinct_implementation",
    "date_time_",
    "distinct_",
    "enable_",
    "extremes",
    "final",
    "format_csv_",
    "group_by_",
    "join_",
    "log_comment",
    "max_",
    "merge_tree_",
    "min_",
    "optimize_",
    "output_format_",
    "prefer_",
    "priority",
    "query_plan_",
    "readonly",
    "session_timezone",
    "timeout_",
    "totals_mode",
    "transform_null_in",
    "union_",
    "use_",
)
"""A reader's settings are these names and those that begin so: how much, how fast, how printed."""
_WRITES_A_FILE = "output_format_schema"
_TOKEN = re.compile(
    r"""'(?:\\.|''|[^'\\])*'
      | (?P<name>`(?:\\.|[^`\\])*`|"(?:\\.|[^"\\])*"|[A-Za-z_]\w*) (?P<next>\s*[(.=])?
      | \{(?P<parameter>\w+):\s*Identifier\s*\}
    """,
    re.VERBOSE | re.DOTALL,
)


class ReaderGuard:
    """Refuses what would leave the tables; both lists are the engine's own names."""

    def __init__(self, table_functions: Iterable[str], settings: Iterable[str]) -> None:
        names = {name.lower() for name in table_functions}
        self._functions = (names | _READS_OUTSIDE) - HARMLESS_TABLE_FUNCTIONS
        self._settings = frozenset(name for name in settings if not _is_harmless(name))

    def check(
        self, canonical: str, parameters: Mapping[str, str], settings: Mapping[str, str]
    ) -> None:
        """Raise QueryError (497) unless the statement only reads tables."""
        for name in settings:
            if not _is_harmless(name):
                raise _denied(f"the setting {name} is not for readers")
        if not canonical.lstrip().startswith(_FIRST_WORDS):
            raise _denied("only statements that read are allowed")
        previous = ""
        for match in _TOKEN.finditer(canonical):
            if match["parameter"]:
                self._check_identifier(parameters.get(match["parameter"], ""))
            name = (match["name"] or "").strip('`"')
            self._check_name(name, (match["next"] or "").strip(), previous)
            previous = name

    def _check_name(self, name: str, following: str, previous: str) -> None:
        lowered = name.lower()
        if lowered == "outfile" and previous.lower() == "into":
            raise _denied("INTO OUTFILE writes to this machine")
        if following == "." and lowered == _FILE_DATABASE:
            raise _denied("the database 'default' shows files of this machine")
        if following == "=" and name in self._settings:
            raise _denied(f"the setting {name} is not for readers")
        if following == "(" and ("\\" in name or lowered in self._functions):
            raise _denied(f"the function {name} reads from outside the tables")
        if following == "(" and lowered.startswith(_CALLS_A_MODEL) and name[2:3].isupper():
            raise _denied(f"the function {name} sends rows to another service")

    def _check_identifier(self, value: str) -> None:
        if not re.fullmatch(r"\w+", value) or value == _FILE_DATABASE:
            raise _denied("an identifier parameter must be a plain name, and not 'default'")


def _is_harmless(setting: str) -> bool:
    return setting.startswith(_HARMLESS_SETTINGS) and setting != _WRITES_A_FILE


def check_database(name: str) -> None:
    """Raise QueryError (497) for a current database that shows files."""
    if name == _FILE_DATABASE:
        raise _denied("the database 'default' shows files of this machine; name another")


def _denied(reason: str) -> QueryError:
    return QueryError.of(codes.ACCESS_DENIED, f"reader: not enough privileges: {reason}.")
