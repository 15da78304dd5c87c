"""The few pages that are shown before Streamlit's: refused, signed out, sign-in failed."""

from __future__ import annotations

from typing import Final

from markupsafe import Markup, escape
from starlette.responses import HTMLResponse

from approvaltrail.dashboard.markup import visible

_PAGE: Final = Markup(
    """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{title} · Approval Trail</title>
<style>
  body {{ font: 16px/1.5 system-ui, sans-serif; max-width: 36rem; margin: 15vh auto; }}
  h1 {{ font-size: 1.3rem; }}
  a {{ color: LinkText; }}
</style>
</head>
<body><main><h1>{title}</h1><p>{text}</p><p><a href="{href}">{action}</a></p></main></body>
</html>
"""
)


def notice(title: str, text: str, href: str, action: str, status: int) -> HTMLResponse:
    """Build a page with one thing to say and one thing to do; texts are escaped."""
    words = {"title": title, "text": text[:1].upper() + text[1:], "action": action}
    shown = {name: escape(visible(word)) for name, word in words.items()}
    return HTMLResponse(str(_PAGE.format(href=escape(href), **shown)), status_code=status)
