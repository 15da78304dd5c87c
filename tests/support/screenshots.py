"""Takes the README's pictures of a running dashboard.

`python -m tests.support.screenshots --url URL --out docs/pictures`: overview, replays and the trail
of the reuse that most needs review, light, 1440 px wide. No picture is bigger than 200 KB.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path
from typing import Final

from PIL import Image
from playwright.sync_api import Page, sync_playwright

CHROMIUM: Final = Path("/usr/bin/chromium")
WIDTH: Final = 1440
HEIGHTS: Final = {"overview": 1180, "replays": 900, "trail": 1500}
"""Of each picture, at most; what follows on the page is left out."""
LARGEST_BYTES: Final = 200_000
_WHOLE: Final = ".stApp[data-test-script-state=notRunning]"
_PATIENCE_MILLISECONDS: Final = 60_000


def take(page: Page, url: str, folder: Path) -> list[Path]:
    """Take all pictures; return their files."""
    page.goto(f"{url}/")
    page.locator(".at-card-number").first.wait_for()
    pictures = [_save(page, folder / "overview.png")]
    page.goto(f"{url}/replays")
    rows = page.locator("table.at tbody tr")
    rows.first.wait_for()
    pictures.append(_save(page, folder / "replays.png"))
    review = rows.filter(has_text="Needs review").filter(has_text="client address")
    row = review.first if review.count() else rows.first
    row.get_by_role("link", name="Trail of").click()
    page.locator(".at-timeline").wait_for()
    pictures.append(_save(page, folder / "trail.png"))
    return pictures


def _save(page: Page, file: Path) -> Path:
    """Show as much of the page as the picture may hold, and save it small."""
    page.locator(_WHOLE).wait_for()
    content = page.evaluate("document.querySelector('.stMain').scrollHeight")
    page.set_viewport_size({"width": WIDTH, "height": min(int(content), HEIGHTS[file.stem])})
    page.evaluate("document.fonts.ready")
    page.mouse.move(0, 0)
    with tempfile.TemporaryDirectory() as temporary:
        raw = Path(temporary) / "raw.png"
        page.screenshot(path=raw, animations="disabled")
        _squeeze(raw, file)
    return file


def _squeeze(raw: Path, file: Path) -> None:
    """Save a picture with as many colours as fit the size; text stays sharp with few."""
    with Image.open(raw) as opened:
        picture = opened.convert("RGB")
    for colours in (256, 128, 64, 32):
        picture.quantize(colours, dither=Image.Dither.NONE).save(file, optimize=True)
        if file.stat().st_size <= LARGEST_BYTES:
            return
    raise RuntimeError(f"{file.name} does not fit {LARGEST_BYTES} bytes; take less of the page")


def main() -> int:
    """Parse the command line and take the pictures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--url", required=True, help="where the dashboard is")
    parser.add_argument("--out", type=Path, required=True, help="the folder for the pictures")
    chosen = parser.parse_args()
    if not CHROMIUM.exists():
        sys.stderr.write(f"{CHROMIUM} is not there: install Debian's package chromium\n")
        return 1
    chosen.out.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        page = browser.new_page(
            viewport={"width": WIDTH, "height": 900}, color_scheme="light", timezone_id="UTC"
        )
        page.set_default_timeout(_PATIENCE_MILLISECONDS)
        for picture in take(page, chosen.url.rstrip("/"), chosen.out):
            sys.stdout.write(f"{picture}: {picture.stat().st_size:,} bytes\n")
        browser.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
