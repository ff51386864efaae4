"""Rules and the dashboard: they work, speak of metrics that exist, and say what to do."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.daemonset.tools import CHART, find_tool, run
from tests.repository import ROOT

RULES = CHART / "files" / "rules" / "toponaut.yaml"
DASHBOARD = CHART / "files" / "dashboards" / "toponaut.json"
EXPECTED = Path(__file__).parent / "rules.test.yaml"
# Golden lists of names and types, made by the tests of the programs.
METRICS = tuple(ROOT.glob("tests/*/**/metrics.txt"))
METRIC = re.compile(r"\btoponaut(?:_[a-z_]+|:[a-z_:]+)")


def exposed() -> set[str]:
    """Return the names of all series that the programs export."""
    found = set()
    for line in "".join(file.read_text() for file in METRICS).splitlines():
        name, kind = line.split(":")[0].split()
        endings = {"counter": ("_total",), "histogram": ("_bucket", "_sum", "_count")}
        found |= {name + ending for ending in endings.get(kind, ("",))}
    return found


def rules() -> list[dict[str, Any]]:
    groups = yaml.safe_load(RULES.read_text())["groups"]
    return [rule for group in groups for rule in group["rules"]]


def expressions() -> Iterator[str]:
    yield from (rule["expr"] for rule in rules())
    panels = json.loads(DASHBOARD.read_text())["panels"]
    yield from (target["expr"] for panel in panels for target in panel["targets"])


@pytest.mark.lab
@pytest.mark.parametrize(
    "asked", [("check", "rules", RULES), ("test", "rules", EXPECTED)], ids=["check", "test"]
)
def test_it_satisfies_promtool(asked: tuple[object, ...], tmp_path: Path) -> None:
    answer = run([find_tool("promtool"), *asked], home=tmp_path)
    assert answer.returncode == 0, answer.stdout + answer.stderr


def test_it_speaks_of_metrics_that_exist() -> None:
    known = exposed() | {rule["record"] for rule in rules() if "record" in rule}
    asked = {name for expression in expressions() for name in METRIC.findall(expression)}
    assert len(asked) > 20
    assert asked <= known


def test_it_tests_every_alert_and_every_record() -> None:
    tests = yaml.safe_load(EXPECTED.read_text())["tests"]
    alerts = {one["alertname"] for test in tests for one in test.get("alert_rule_test", ())}
    asked = " ".join(one["expr"] for test in tests for one in test.get("promql_expr_test", ()))
    assert alerts == {rule["alert"] for rule in rules() if "alert" in rule}
    assert not {rule["record"] for rule in rules() if "record" in rule} - set(METRIC.findall(asked))


def test_it_says_of_every_alert_what_to_do() -> None:
    headings = re.findall(r"^### (\w+)$", (ROOT / "docs/alerts.md").read_text(), re.MULTILINE)
    alerts = [rule for rule in rules() if "alert" in rule]
    assert sorted(headings) == sorted(rule["alert"] for rule in alerts)
    for rule in alerts:
        assert rule["annotations"]["runbook_url"] == f"docs/alerts.md#{rule['alert'].lower()}"


def test_it_draws_panels_that_do_not_overlap() -> None:
    panels = json.loads(DASHBOARD.read_text())["panels"]
    seen: set[tuple[int, int]] = set()
    for panel in panels:
        at = panel["gridPos"]
        cells = {
            (at["x"] + column, at["y"] + row) for column in range(at["w"]) for row in range(at["h"])
        }
        assert not seen & cells, panel["title"]
        assert at["x"] + at["w"] <= 24
        seen |= cells
    assert len({panel["id"] for panel in panels}) == len(panels)
