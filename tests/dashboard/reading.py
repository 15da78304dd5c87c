"""Reads markup as a browser would, far enough to say what is on a page."""

from __future__ import annotations

from html.parser import HTMLParser
from urllib.parse import parse_qs, urlsplit


class Reader(HTMLParser):
    """What a browser would make of some markup: elements, attributes, text, links, rows."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.text = ""
        self.rows: list[Row] = []
        self.feed(str(html))
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note an element."""
        self.elements.append(tag)
        self.attributes += attrs
        if tag == "tr":
            self.rows.append(Row())
        if tag == "a" and self.rows:
            self.rows[-1].links.append(dict(attrs)["href"] or "")

    def handle_data(self, data: str) -> None:
        """Note a text."""
        self.text += data
        if self.rows:
            self.rows[-1].text += data

    @property
    def links(self) -> list[str]:
        """Where the page leads."""
        return [value or "" for name, value in self.attributes if name == "href"]


class Row:
    """A row of a table."""

    def __init__(self) -> None:
        self.text = ""
        self.links: list[str] = []

    @property
    def nonces(self) -> set[str]:
        """The nonces whose trails the row leads to."""
        found = [parse_qs(urlsplit(link).query).get("nonce", []) for link in self.links]
        return {nonce for one in found for nonce in one}
