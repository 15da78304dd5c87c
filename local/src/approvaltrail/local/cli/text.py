"""Text that came from tools and callers, made safe to print on a terminal.

A caller chooses targets, client names and the like, so any of them may hold escape sequences that
move the cursor, repaint earlier lines or turn text around. Whatever is not plainly printable is
shown as its escape.
"""

from __future__ import annotations

from rich.text import Text


def safe(text: str) -> str:
    """Return the text with every character that is not plainly printable as an escape."""
    if text.isprintable():
        return text
    return "".join(map(_shown, text))


def _shown(character: str) -> str:
    if character.isprintable():
        return character
    code = ord(character)
    if code <= 0xFF:  # noqa: PLR2004 - two hex digits
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"  # noqa: PLR2004


def cell(text: object, style: str = "") -> Text:
    """Return a table cell of safe text that no markup can reach."""
    return Text("" if text is None else safe(str(text)), style=style)


def middle(text: str, maximum: int) -> str:
    """Cut a long text in the middle, as nonces are told apart at both ends."""
    if len(text) <= maximum:
        return text
    head = (maximum - 1) // 2
    return f"{text[:head]}…{text[len(text) - (maximum - 1 - head) :]}"
