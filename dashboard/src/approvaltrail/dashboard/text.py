"""The only place that hands text to the browser. None of it passes a Markdown renderer.

`show` takes markup that escaped every text on the way (see markup.py); `plain` and `copyable` take
any text as it is. A test walks the dashboard's source and refuses every other call that renders.
"""

from __future__ import annotations

import base64
import hashlib
from importlib.resources import as_file, files

import streamlit as st

from approvaltrail.dashboard.markup import Markup, visible


def show(markup: Markup) -> None:
    """Render markup built with `markup.element`."""
    if not isinstance(markup, Markup):
        raise TypeError("only markup built with element() is shown as HTML; use plain() for text")
    if markup:
        st.html(str(markup))


def plain(text: str) -> None:
    """Render a text to the character, with line breaks."""
    st.text(visible(text))


def copyable(text: str, language: str | None = None) -> None:
    """Render a text in monospace with a button that copies it."""
    st.code(visible(text), language=language, wrap_lines=True)


def stylesheet() -> None:
    """Load the pages' own style, from our own files."""
    with as_file(files("approvaltrail.dashboard") / "style.css") as path:
        st.html(path)


def behaviour() -> None:
    """Load the pages' own script, from our own files: links that change the page in place."""
    with st.container(key="at-behaviour"):
        st.html(f"<script>{_script()}</script>", unsafe_allow_javascript=True)


def behaviour_source() -> str:
    """Return what a content security policy has to name among `script-src` for the script to run.

    Where it does not, every link still works, by loading its page anew.
    """
    digest = hashlib.sha256(_script().encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"


def _script() -> str:
    return (files("approvaltrail.dashboard") / "behaviour.js").read_text("utf-8")
