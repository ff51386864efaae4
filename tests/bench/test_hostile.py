"""Every hostile sweep stays below the bar, and a real one beside it still counts."""

import pytest

from generator.observe.observer import FabricObserver, TreeInputs
from tests.bench.hostile import BAR_BYTES, TEXTS, observe_alone, real_sweep, several_reports
from topology.model.facts import FindingKind

QUICK = ["one long line", "tiny lines", "tiny lines of a small sweep", "one switch again and again"]
LONG = sorted(TEXTS.keys() - {*QUICK, "real, 200,000 HCAs"})
"""Making the sweep of the largest fabric takes minutes: `make bench` measures it too."""


@pytest.mark.timeout(120)
def test_bombs_stay_below_the_bar() -> None:
    assert observe_alone(QUICK) < BAR_BYTES


@pytest.mark.long
@pytest.mark.timeout(300)
@pytest.mark.parametrize("name", LONG)
def test_it_stays_below_the_bar(name: str) -> None:
    assert observe_alone([name]) < BAR_BYTES


@pytest.mark.timeout(120)
def test_a_bomb_costs_its_sender_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(TEXTS, "honest", lambda: real_sweep(512))
    observer = FabricObserver()
    observer.update(TreeInputs(several_reports(["honest", *QUICK]), None), None)
    assert observer.observation is not None
    assert len(observer.observation.tree.nodes) == 64
    unusable = [one for one in observer.sweep_findings if one.kind is FindingKind.UNUSABLE_REPORT]
    assert {finding.device for finding in unusable} >= {"n1", "n2", "n4"}
    assert all(finding.device != "n0" for finding in unusable)
