"""Measurements of the product beside what one would otherwise use; see docs/performance.md.

Each module prints JSON lines `{"name", "value", "unit", "baseline", "ratio"}` with `--json`, and a
table without. Timings are noisy: two things are compared in one interleaved run, by their medians.
"""
