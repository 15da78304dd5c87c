"""Takes the README's pictures of the dashboard, light and dark, always of the same size.

`python -m tests.support.screenshots` starts the demo in a folder of its own, waits for its
incidents, photographs overview, replays and the trail of a reuse that needs review, and stops
everything; `--url URL` takes a running dashboard instead.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from PIL import Image
from playwright.sync_api import Page, sync_playwright

PICTURES: Final = Path(__file__).parents[2] / "docs/pictures"
CHROMIUM: Final = Path("/usr/bin/chromium")
WIDTH: Final = 1440
HEIGHTS: Final = {"overview": 1180, "replays": 900, "trail": 1500}
"""Of each picture; what follows on the page is left out."""
THEMES: Final = ("light", "dark")
LARGEST_BYTES: Final = 300_000
INCIDENTS: Final = 10
"""Reuses that the demo has to have told before pictures are worth taking."""
_START_SECONDS: Final = 300.0
_COMMAND: Final = (sys.executable, "-m", "approvaltrail.local.cli")
_WHOLE: Final = ".stApp[data-test-script-state=notRunning]"
_PATIENCE_MILLISECONDS: Final = 60_000


@contextlib.contextmanager
def demo() -> Iterator[str]:
    """Run the demo until its incidents are stored; give the dashboard's address."""
    with tempfile.TemporaryDirectory(prefix="approvaltrail-pictures-") as folder:
        said = Path(folder) / "said"
        with said.open("wb") as out:
            run = subprocess.Popen(
                [*_COMMAND, "demo", "--data", f"{folder}/data"], stdout=out, stderr=out
            )
        try:
            yield _address(run, said, f"{folder}/data")
        finally:
            run.send_signal(signal.SIGINT)
            with contextlib.suppress(subprocess.TimeoutExpired):
                run.wait(60)
            run.kill()


def _address(run: subprocess.Popen[bytes], said: Path, data: str) -> str:
    deadline = time.monotonic() + _START_SECONDS
    while time.monotonic() < deadline and run.poll() is None:
        lines = said.read_text(errors="replace").split()
        url = next((one for one in lines if one.startswith("http://")), None)
        asked = [*_COMMAND, "replays", "--data", data, "--limit", "1", "--json"]
        if url is not None:
            answer = subprocess.run(asked, capture_output=True, check=False)
            if answer.returncode == 0 and json.loads(answer.stdout)["total"] >= INCIDENTS:
                return url
        time.sleep(1)
    raise RuntimeError(f"the demo has told no {INCIDENTS} incidents: {said.read_text()[-2000:]}")


def take(page: Page, url: str, folder: Path, theme: str) -> Iterator[Path]:
    """Take all pictures of a theme, one after the other."""
    suffix = "" if theme == "light" else f"-{theme}"
    page.goto(f"{url}/")
    page.locator(".at-card-number").first.wait_for()
    yield _save(page, folder, "overview", suffix)
    page.goto(f"{url}/replays")
    rows = page.locator("table.at tbody tr")
    rows.first.wait_for()
    yield _save(page, folder, "replays", suffix)
    review = rows.filter(has_text="Needs review").filter(has_text="client address")
    row = review.first if review.count() else rows.first
    row.get_by_role("link", name="Trail of").click()
    page.locator(".at-timeline").wait_for()
    yield _save(page, folder, "trail", suffix)


def _save(page: Page, folder: Path, name: str, suffix: str) -> Path:
    """Show as much of the page as the picture holds, and save it small."""
    file = folder / f"{name}{suffix}.png"
    page.locator(_WHOLE).wait_for()
    page.set_viewport_size({"width": WIDTH, "height": HEIGHTS[name]})
    page.locator(_WHOLE).wait_for()
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


def photograph(url: str, folder: Path) -> None:
    """Take the pictures of a running dashboard into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        for theme in THEMES:
            page = browser.new_page(
                viewport={"width": WIDTH, "height": 900},
                color_scheme="dark" if theme == "dark" else "light",
                timezone_id="UTC",
            )
            page.set_default_timeout(_PATIENCE_MILLISECONDS)
            for picture in take(page, url.rstrip("/"), folder, theme):
                sys.stdout.write(f"{picture}: {picture.stat().st_size:,} bytes\n")
            page.close()
        browser.close()


def main() -> int:
    """Parse the command line and take the pictures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--url", help="where the dashboard is; without it the demo is started")
    parser.add_argument("--out", type=Path, default=PICTURES, help="the folder for the pictures")
    chosen = parser.parse_args()
    if not CHROMIUM.exists():
        sys.stderr.write(f"{CHROMIUM} is not there: install Debian's package chromium\n")
        return 1
    with contextlib.nullcontext(chosen.url) if chosen.url else demo() as url:
        photograph(url, chosen.out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
