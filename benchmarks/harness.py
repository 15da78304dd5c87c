"""What all benchmarks share: figures, interleaved rounds, and how they are printed."""

from __future__ import annotations

import argparse
import json
import logging
import os
import platform
import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Final

import structlog
from rich.console import Console
from rich.table import Table

ROUNDS: Final = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One measured value, and where there is one, what it is compared with."""

    name: str
    value: float
    unit: str
    baseline: float | None = None
    """The same measure of the baseline named in `name`, in the same unit."""

    @property
    def ratio(self) -> float | None:
        """Value over baseline."""
        return self.value / self.baseline if self.baseline else None


def percentile(values: Sequence[float], share: float) -> float:
    """Return the value below which `share` (0 to 1) of the values lie, by nearest rank."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]


def interleaved(
    candidates: dict[str, Callable[[], float]], rounds: int = ROUNDS
) -> dict[str, float]:
    """Run the candidates in turn, round after round, and return each one's median."""
    seen: dict[str, list[float]] = {name: [] for name in candidates}
    for _ in range(rounds):
        for name, measure in candidates.items():
            seen[name].append(measure())
    return {name: statistics.median(values) for name, values in seen.items()}


def arguments(description: str | None, **defaults: int) -> argparse.Namespace:
    """Parse `--json` and the whole-number options given as keyword arguments; quiet the logs."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))
    logging.getLogger("aiokafka").setLevel(logging.CRITICAL)
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--json", action="store_true", help="print JSON lines instead of a table")
    for name, default in defaults.items():
        parser.add_argument(f"--{name.replace('_', '-')}", type=int, default=default)
    return parser.parse_args()


def machine() -> str:
    """Describe the machine in a line: cores, memory, system, Python."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return (
        f"{os.cpu_count()} cores, {memory:.0f} GiB, {platform.system()} {platform.machine()}, "
        f"Python {platform.python_version()}"
    )


def show(figures: Iterable[Figure], *, as_json: bool) -> None:
    """Print the figures."""
    if as_json:
        for figure in figures:
            print(json.dumps(asdict(figure) | {"ratio": _rounded(figure.ratio)}))
        return
    table = Table(title=machine(), title_justify="left")
    for heading in ("measure", "value", "unit", "baseline", "ratio"):
        table.add_column(heading, justify="left" if heading in {"measure", "unit"} else "right")
    for figure in figures:
        table.add_row(
            figure.name,
            _number(figure.value),
            figure.unit,
            _number(figure.baseline),
            _number(figure.ratio),
        )
    Console().print(table)


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 3)


def _number(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.2f}"
