"""Render every page of the dashboard and write down all text on them.

Run as `python -m approvaltrail.local.smoke.pages OUT NONCE`, with the dashboard's settings in the
environment: Streamlit's own test runner draws the pages from the real store, without a browser.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, Final

PATHS: Final = ("overview", "replays", "trail", "events", "pipeline")


def render(out: Path, nonce: str) -> list[str]:
    """Draw all pages, the trail for this nonce, into the file; return problems."""
    from approvaltrail.dashboard.testing import drawn, text_of  # noqa: PLC0415 - slow to load

    problems: list[str] = []
    with out.open("w", encoding="utf-8") as file:
        for path in PATHS:
            page = drawn(path, nonce=nonce) if path == "trail" else drawn(path)
            problems += [f"{path}: {one.value}" for one in page.exception]
            file.write(f"\n===== {path}\n{text_of(page)}\n{_tables(page)}\n")
    return problems


def _tables(page: Any) -> str:
    """Return every row of every table: a table's short form leaves out its middle."""
    values: list[Any] = [getattr(element, "value", None) for element in page.main]
    return "\n".join(value.to_csv() for value in values if hasattr(value, "to_csv"))


def main() -> int:
    """Draw and say what went wrong."""
    problems = render(Path(sys.argv[1]), sys.argv[2])
    for problem in problems:
        sys.stderr.write(problem + "\n")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
