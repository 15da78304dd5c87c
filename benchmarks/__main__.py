"""All benchmarks one after the other: `python -m benchmarks [--quick] [--json]`.

Each runs in a process of its own and ends with everything it started. `--quick` takes few events:
enough to see that everything runs, not enough to be quoted.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from typing import Final

from benchmarks.harness import Figure, show

BENCHMARKS: Final[dict[str, tuple[str, ...]]] = {
    "record": ("--seconds", "1"),
    "gate": ("--count", "100"),
    "sink": ("--events", "100000", "--rounds", "1", "--share-events", "0"),
    "end_to_end": ("--seconds", "5", "--backlog", "20000"),
    "queries": ("--events", "200000", "--times", "5"),
    "restart": ("--rounds", "1"),
    "pages": ("--events", "200000", "--rounds", "1"),
}
"""Each benchmark, in the order in which an event travels, with what makes it quick."""


def run(name: str, options: Sequence[str]) -> Iterator[Figure]:
    """Run one benchmark and yield its figures; its own words go to the error output."""
    done = subprocess.run(
        [sys.executable, "-m", f"benchmarks.{name}", "--json", *options],
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    for line in done.stdout.splitlines():
        if line.startswith("{"):
            values = json.loads(line)
            values.pop("ratio", None)
            yield Figure(**values | {"name": f"{name}: {values['name']}"})
    if done.returncode:
        raise RuntimeError(f"benchmarks.{name} ended with {done.returncode}")


def main() -> int:
    """Run all that are there and print one table; say which failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few events, figures of no worth")
    parser.add_argument("--json", action="store_true", help="print JSON lines instead of a table")
    chosen = parser.parse_args()
    figures: list[Figure] = []
    failed = []
    for name, quick in BENCHMARKS.items():
        if importlib.util.find_spec(f"benchmarks.{name}") is None:
            continue
        load = os.getloadavg()[0]
        print(f"{name} (load average {load:.1f}) ...", file=sys.stderr)
        try:
            figures += run(name, quick if chosen.quick else ())
        except RuntimeError as error:
            failed.append(str(error))
    show(figures, as_json=chosen.json)
    for line in failed:
        print(line, file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
