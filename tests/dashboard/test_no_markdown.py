"""One way renders untrusted text: a walk over the source finds every other."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import approvaltrail.dashboard

SOURCES = sorted(Path(approvaltrail.dashboard.__file__).parent.rglob("*.py"))

MARKDOWN = frozenset(
    {"write", "markdown", "metric", "caption", "title", "header", "subheader"}
    | {"info", "success", "warning", "error", "exception", "toast", "badge"}
    | {"latex", "button", "link_button", "download_button", "page_link", "expander", "tabs"}
    | {"popover", "status", "selectbox", "multiselect", "text_input", "text_area", "toggle"}
    | {"checkbox", "radio", "pills", "segmented_control", "number_input", "slider", "select_slider"}
    | {
        "date_input",
        "time_input",
        "datetime_input",
        "dialog",
        "spinner",
        "progress",
        "write_stream",
    }
    | {"help", "echo", "MarkdownColumn", "LinkColumn", "menu_button", "form_submit_button"}
)
"""Streamlit's calls whose label, body or help passes a Markdown renderer."""
WIDGETS = frozenset({"selectbox", "text_input", "toggle"})
"""Of these the first argument is a label and the others are data."""
SILENT = frozenset(
    {
        "streamlit.delta_generator",
        "streamlit.web",
        "streamlit.testing.v1",
        "streamlit.runtime.state",
    }
)
"""Modules of Streamlit that render nothing."""
RENDERERS = frozenset({"html", "text", "code", "json", "dataframe", "table"})
"""Calls that show text as it is, or raw: `text.py` alone may make them."""
TEXTUAL = frozenset({"label", "body", "help", "title", "icon", "delta", "value", "placeholder"})
LABEL_FROM_OUR_OWN_CODE = {"filters.py": {"text_input", "selectbox"}}
"""Helpers that take a label; the test below holds their callers to literals."""
LABEL_HELPERS = frozenset({"text_field", "choice_field"})


def calls(path: Path) -> list[tuple[str, ast.Call]]:
    found = []
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            owner = node.func.value
            if isinstance(owner, ast.Name) and owner.id in {"st", "streamlit", "sidebar"}:
                found.append((node.func.attr, node))
    return found


def literal(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant)


def offences(path: Path) -> list[str]:
    said = []
    for name, call in calls(path):
        where = f"{path.name}:{call.lineno} st.{name}"
        if name in RENDERERS and path.name != "text.py":
            said.append(f"{where}: only text.py renders text")
        if name in MARKDOWN and name not in LABEL_FROM_OUR_OWN_CODE.get(path.name, set()):
            shown = call.args[:1] if name in WIDGETS else call.args
            texts = [*shown, *(one.value for one in call.keywords if one.arg in TEXTUAL)]
            if not all(map(literal, texts)):
                said.append(f"{where}: a Markdown renderer gets a text that is not a literal")
    return said


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.stem)
def test_d_08_no_markdown_renderer_gets_a_text_from_elsewhere(path: Path) -> None:
    """D-08: whatever renders Markdown shows literals of ours and nothing else."""
    assert offences(path) == []


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.stem)
def test_labels_handed_to_helpers_are_literals(path: Path) -> None:
    """Where a helper takes a label, its callers hand it one of ours."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Call):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else None
            name = node.func.id if isinstance(node.func, ast.Name) else name
            assert name not in LABEL_HELPERS or literal(node.args[0]), ast.unparse(node)


def test_streamlit_is_imported_whole() -> None:
    """`from streamlit import …` would hide a call from the walk above."""
    for path in SOURCES:
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("streamlit"):
                assert node.module in SILENT, path


def test_the_walk_finds_what_it_looks_for(tmp_path: Path) -> None:
    """A page that broke the rule would be found."""
    page = tmp_path / "page.py"
    page.write_text("import streamlit as st\nst.write(name)\nst.metric('a', value)\nst.html(x)\n")
    assert len(offences(page)) == 3
