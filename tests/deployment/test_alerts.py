"""The alerts: on metrics that exist, and with an entry in the runbook."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from prometheus_client import CollectorRegistry
from tests.deployment.compose import ROOT
from tests.support.services import missing

from approvaltrail.consumers.metrics import SinkMetrics
from approvaltrail.producer.metrics import ProducerMetrics

RULES = ROOT / "deploy" / "prometheus-rules.yaml"
RUNBOOK = ROOT / "docs" / "operations.md"
SUFFIXES = {
    "counter": ("_total",),
    "gauge": ("",),
    "histogram": ("_bucket", "_count", "_sum"),
}


def alerts() -> list[dict[str, Any]]:
    groups = yaml.safe_load(RULES.read_text("utf-8"))["groups"]
    return [rule for group in groups for rule in group["rules"]]


def exported(registry: CollectorRegistry) -> dict[str, set[str]]:
    """Return the series that a registry will export, each with its labels."""
    found = {}
    for collector in list(registry._collector_to_names):
        labels = set(collector._labelnames)
        for family in collector.describe():
            for suffix in SUFFIXES[family.type]:
                found[family.name + suffix] = labels
    return found


@pytest.fixture(scope="module")
def series() -> dict[str, set[str]]:
    """Give all series of producers and sinks."""
    return exported(SinkMetrics().registry) | exported(ProducerMetrics().registry)


def test_an_alert_asks_for_series_that_exist(series: dict[str, set[str]]) -> None:
    """Every metric in a rule is exported, and has the labels that the rule names."""
    for rule in alerts():
        text = rule["expr"] + rule["annotations"]["summary"]
        names = set(re.findall(r"approvaltrail_\w+", rule["expr"]))
        assert names, rule["alert"]
        assert names <= series.keys(), rule["alert"]
        known = {"instance", "le", "job"}.union(*(series[name] for name in names))
        used = set(re.findall(r"\$labels\.(\w+)", text)) | set(re.findall(r"(\w+)!?=~?\"", text))
        for group in re.findall(r"(?:by|on) \(([^)]*)\)", text):
            used |= {label.strip() for label in group.split(",")}
        assert used <= known, rule["alert"]


def test_every_metric_that_says_worry_at_once_has_an_alert(series: dict[str, set[str]]) -> None:
    """A metric whose comment says to worry at once, or at the first, is in a rule."""
    urgent = re.compile(
        r"# Worry (?:at once|at the first|about any|above 0)\b.*?\"([a-z_]+)\"", re.DOTALL
    )
    asked = RULES.read_text("utf-8")
    for component, prefix in (("producer", ""), ("consumers", "approvaltrail_sink_")):
        file = ROOT / component / "src" / "approvaltrail" / component / "metrics.py"
        names = urgent.findall(file.read_text("utf-8"))
        assert names, file
        for name in names:
            full = name if name.startswith("approvaltrail_") else prefix + name
            assert full in asked, full


def test_every_alert_has_an_entry_in_the_runbook() -> None:
    """Alerts and the runbook's headings are the same, and each alert links to its own."""
    headings = re.findall(r"^### (ApprovalTrail\w+)$", RUNBOOK.read_text("utf-8"), re.MULTILINE)
    names = [rule["alert"] for rule in alerts()]
    assert sorted(names) == sorted(headings)
    for rule in alerts():
        assert rule["annotations"]["runbook"] == f"docs/operations.md#{rule['alert'].lower()}"
        assert rule["labels"]["severity"] in ("critical", "warning")


def test_links_within_the_documents_lead_somewhere() -> None:
    """Each anchor and each file that operations.md links to exists."""
    text = RUNBOOK.read_text("utf-8")
    anchors = {
        re.sub(r"[^\w -]", "", heading).strip().lower().replace(" ", "-")
        for heading in re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    }
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        file, _, anchor = target.partition("#")
        if not file:
            assert anchor in anchors, target
        elif not file.startswith("http"):
            assert (RUNBOOK.parent / file).exists(), target


def test_the_rules_do_what_they_say() -> None:
    """Prometheus's own checker finds the rules sound and sees them fire and rest as written."""
    promtool = shutil.which("promtool")
    if promtool is None:
        missing("promtool", FileNotFoundError("apt-get install prometheus"))
    tests = Path(__file__).with_name("prometheus_rules_test.yaml")
    for command in (["check", "rules", str(RULES)], ["test", "rules", str(tests)]):
        done = subprocess.run(
            [promtool, *command], capture_output=True, text=True, timeout=60, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
