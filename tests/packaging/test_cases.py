"""Each fault in the list of those that others met has a test which carries its number."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
from tests.support.slow_files import SECONDS

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "delivery.md").read_text("utf-8")
ROWS = dict(re.findall(r"^\| ([PS]-\d\d) \|(.*)$", PAGE, re.MULTILINE))
CASES = [f"P-{number:02}" for number in range(1, 19)]
CASES += [f"S-{number:02}" for number in range(1, 21)]


def first_line(reference: str) -> str:
    """Return the sentence of the specification that a test is."""
    file, _, name = reference.partition("::")
    for node in ast.walk(ast.parse((ROOT / file).read_text("utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name == name:
            return (ast.get_docstring(node) or "").partition("\n")[0]
    raise AssertionError(f"there is no test {reference}")


def test_the_list_has_every_number_once() -> None:
    """Nothing is left out of the list."""
    assert list(ROWS) == CASES


@pytest.mark.parametrize("case", CASES)
def test_each_fault_has_a_test_that_carries_its_number(case: str) -> None:
    """Each test that a row names says in its first line which fault it is about."""
    references = re.findall(r"`(tests/[\w/]+\.py::\w+)`", ROWS[case])
    assert references
    assert [one for one in references if case not in first_line(one)] == []


def test_the_files_that_begin_first_exist() -> None:
    """The list of slow files names files that there are."""
    assert [name for name in SECONDS if not (ROOT / name).is_file()] == []
