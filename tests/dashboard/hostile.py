"""Texts that other dashboards were harmed by."""

from __future__ import annotations

from itertools import cycle, islice

HOSTILE = (
    "raise $5 to $9",
    "$a__b$ and $$x^2$$",
    "prod:db1:users",
    "mail:eve@example.com",
    ":red[x] :material/bolt: :smile:",
    "[a] [b](http://evil.example)",
    "![x](http://evil.example/p.png)",
    "<img src=x onerror=alert(1)>",
    "<script>alert(1)</script>",
    "</td></tr></table><h1>owned</h1>",
    "*_#|\\`~ > - 1.",
    "first line\nsecond line",
    '" onmouseover="alert(1)" x="',
    "&lt;b&gt; &amp; &#39;",
    "=cmd|'/C calc'!A0",
    "javascript:alert(1)",
    "{{7*7}} ${7*7} %s %(x)s",
)

FIELDS = ("tenant", "tool", "target", "action", "principal", "session_id", "client_name")
"""What a caller can put a text into."""


def hostile_texts(number: int) -> list[str]:
    """Return the texts of the story's reuse of this number, one a field."""
    first = number * len(FIELDS)
    return list(islice(cycle(HOSTILE), first, first + len(FIELDS)))
