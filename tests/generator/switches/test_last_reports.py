"""Reports of switches that are replaced, that swap addresses, or that lose LLDP."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from tests.generator.switches.switchboard import switch_rows
from tests.generator.switches.walks import SILENT, Walking, name, outcome
from topology.model.errors import StoreError
from topology.sources.lldp_mib.tables import LLDP


def test_it_withdraws_the_report_of_a_replaced_switch(tmp_path: Path) -> None:
    walking = Walking(tmp_path, "10.0.0.1", "10.0.0.2")
    walking.tick({"10.0.0.1": switch_rows(1, [(2, "")]), "10.0.0.2": switch_rows(2)})
    walking.tick({"10.0.0.2": switch_rows(2)}, failing={"10.0.0.1": SILENT})
    walking.seconds += 60
    walking.tick({"10.0.0.1": switch_rows(3, [(2, "")]), "10.0.0.2": switch_rows(2)})
    assert set(walking.reports) == {name(2), name(3)}


def test_it_withdraws_the_report_of_a_switch_that_was_replaced_before_its_start(
    tmp_path: Path,
) -> None:
    walking = Walking(tmp_path, "10.0.0.1")
    walking.tick({"10.0.0.1": switch_rows(1)})
    walking.rounds = walking.start()
    walking.tick({"10.0.0.1": switch_rows(2)})
    assert set(walking.reports) == {name(2)}


def test_it_keeps_both_switches_that_swapped_their_addresses(tmp_path: Path) -> None:
    walking = Walking(tmp_path, "10.0.0.1", "10.0.0.2")
    walking.tick({"10.0.0.1": switch_rows(1), "10.0.0.2": switch_rows(2)})
    for _ in range(2):
        walking.tick({"10.0.0.1": switch_rows(2), "10.0.0.2": switch_rows(1)})
    assert set(walking.reports) == {name(1), name(2)}
    assert {outcome(report) for report in walking.reports.values()} == {("ok", "")}


def test_it_withdraws_a_report_once_the_store_accepts_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    walking = Walking(tmp_path, "10.0.0.1")
    walking.tick({"10.0.0.1": switch_rows(1)})

    def refuse(name: str) -> None:
        raise StoreError(f"cannot remove {name}: it is held")

    with monkeypatch.context() as refusing:
        refusing.setattr(walking.store, "withdraw_report", refuse)
        walking.tick({"10.0.0.1": switch_rows(2)})
    assert set(walking.reports) == {name(1), name(2)}
    walking.tick({"10.0.0.1": switch_rows(2)})
    assert set(walking.reports) == {name(2)}
    assert caplog.messages == ["switch problem appeared", "switch problem gone"]


def test_it_keeps_the_neighbors_of_a_switch_while_its_lldp_agent_is_dead(tmp_path: Path) -> None:
    walking = Walking(tmp_path, "10.0.0.1")
    walking.tick({"10.0.0.1": switch_rows(1, [(2, "")])})
    before = walking.reports[name(1)]
    bare = [row for row in switch_rows(1) if row[0][: len(LLDP)] != LLDP]
    assert bare
    for rounds in (walking.rounds, walking.start()):
        walking.rounds = rounds
        walking.tick({"10.0.0.1": bare})
        (after,) = walking.reports.values()
        assert after.spec == before.spec
        assert outcome(after) == ("failed", outcome(after)[1])
        assert "no longer shows its LLDP tables" in outcome(after)[1]
    walking.tick({"10.0.0.1": switch_rows(1)})
    (after,) = walking.reports.values()
    assert outcome(after) == ("ok", "")
    assert not any(port.neighbors for port in after.spec.ports)
