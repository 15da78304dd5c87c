"""axe-core, as the Python package axe-playwright-python carries it."""

from __future__ import annotations

from importlib import resources
from typing import Any

from playwright.sync_api import Page

SERIOUS = frozenset({"serious", "critical"})


def axe_source() -> str:
    """Return axe-core's script."""
    return resources.files("axe_playwright_python").joinpath("axe.min.js").read_text("utf-8")


def serious(page: Page, source: str) -> list[str]:
    """Return what axe-core finds on a page that is serious, each with the elements concerned."""
    page.evaluate(source)
    found: list[dict[str, Any]] = page.evaluate(
        "axe.run({resultTypes: ['violations']}).then(result => result.violations)"
    )
    return [
        f"{one['id']}: {one['help']}: {[node['html'][:160] for node in one['nodes'][:3]]}"
        for one in found
        if one["impact"] in SERIOUS
    ]
