"""Draws a page without a browser, for tests and for whoever must search all that is shown.

`drawn("trail", nonce=…)` runs the app from the environment's settings through Streamlit's own test
runner; `text_of` returns every text that was sent to the browser.
"""

from __future__ import annotations

from importlib.resources import as_file, files
from typing import Any, Final

from streamlit.testing.v1 import AppTest

TIMEOUT_SECONDS: Final = 30


def drawn(path: str = "overview", **query: str) -> AppTest:
    """Draw a page as its URL with these parameters would."""
    with as_file(files("approvaltrail.dashboard") / "app.py") as script:
        app = AppTest.from_file(script, default_timeout=TIMEOUT_SECONDS)
    for name, value in query.items():
        app.query_params[name.rstrip("_")] = value
    if path != "overview":
        app.switch_page(f"views/{path}.py")
    return app.run()


def text_of(app: AppTest) -> str:
    """Return all that a page sent to the browser: markup as it is, widgets with all they hold."""
    return "\n".join(_text(element) for element in app.main)


def markup_of(app: AppTest) -> str:
    """Return the markup of a page alone."""
    bodies = [getattr(getattr(one, "proto", None), "body", None) for one in app.get("html")]
    ours = ("<style>", "<script>")  # no text from elsewhere begins a piece of markup
    return "\n".join(one for one in bodies if isinstance(one, str) and not one.startswith(ours))


def _text(element: Any) -> str:
    proto = getattr(element, "proto", None)
    body = getattr(proto, "body", None)
    value = str(getattr(element, "value", "") or "")
    return "\n".join((value, body if isinstance(body, str) else str(proto or "")))
