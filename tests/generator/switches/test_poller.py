"""Periodic walks: what is written, kept, checked again, delayed and logged."""

from __future__ import annotations

import logging
import threading
from collections.abc import AsyncIterator, Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from generator.ingest.inputs import Inputs
from generator.observe.freshness import Periods, derive_report_findings
from generator.switches.poller import MAX_UNCHANGED
from generator.switches.targets import Target
from tests.generator.switches.switchboard import FakeSession, switch_rows
from tests.generator.switches.walks import NOON, PERIOD, SILENT, Walking, name, outcome
from tests.packed_reports import packed
from topology.model.errors import ConfigError
from topology.model.facts import FindingKind
from topology.sources.lldp_mib.tables import (
    BASE_SPANS,
    REMOTE_STATS,
    STATS_SPAN,
    SYS_UP_TIME,
    SYSTEM_SPAN,
    ColumnSpan,
    WalkRow,
)


def counting(rows: list[WalkRow], *, changed: int = 500, up_time: int = 9000) -> list[WalkRow]:
    """Return the tables of a switch that also counts changes of its neighbors."""
    stats = [((*column, 0), changed) for column in REMOTE_STATS]
    return sorted([*rows, ((*SYS_UP_TIME, 0), up_time), *stats], key=lambda row: row[0])


@pytest.fixture
def quiet(caplog: pytest.LogCaptureFixture) -> Iterator[pytest.LogCaptureFixture]:
    caplog.set_level(logging.INFO)
    yield caplog
    assert not [row for row in caplog.records if row.exc_info]


def test_it_keeps_a_report_per_switch_in_the_store(
    tmp_path: Path, quiet: pytest.LogCaptureFixture
) -> None:
    walking = Walking(tmp_path, "10.0.0.1", "10.0.0.2")
    tables = {"10.0.0.1": switch_rows(1, [(2, "")]), "10.0.0.2": switch_rows(2)}
    walking.tick(tables)
    before = walking.reports
    assert set(before) == {name(1), name(2)}
    assert {outcome(report) for report in before.values()} == {("ok", "")}
    walking.tick(tables)
    assert walking.reports[name(1)].spec == before[name(1)].spec
    assert walking.reports[name(1)].status.observed_at == "2026-07-01T12:01:00Z"
    assert quiet.messages == []


def test_it_only_queries_the_change_counters_of_a_switch_that_has_them(tmp_path: Path) -> None:
    walking = Walking(tmp_path, "10.0.0.1")
    walking.tick({"10.0.0.1": counting(switch_rows(1, [(2, "")]))})
    first = walking.reports[name(1)]
    walking.tick({"10.0.0.1": counting(switch_rows(1, [(3, "")]), up_time=9500)})
    assert [span for _, span in walking.session.spans] == [SYSTEM_SPAN, STATS_SPAN]
    again = walking.reports[name(1)]
    assert again.spec == first.spec
    assert again.status.observed_at == "2026-07-01T12:01:00Z"


@pytest.mark.parametrize(
    ("later", "up_time"),
    [
        (counting(switch_rows(1, [(3, "")]), changed=501, up_time=9500), 9000),
        (counting(switch_rows(1, [(3, "")]), up_time=100), 9000),
        (switch_rows(1, [(3, "")]), 9000),
    ],
    ids=["it counts another change", "it restarted", "it stopped counting"],
)
def test_it_walks_a_switch_again_once(later: list[WalkRow], up_time: int, tmp_path: Path) -> None:
    walking = Walking(tmp_path, "10.0.0.1")
    walking.tick({"10.0.0.1": counting(switch_rows(1, [(2, "")]), up_time=up_time)})
    walking.tick({"10.0.0.1": later})
    (port,) = walking.reports[name(1)].spec.ports
    assert [heard.name for heard in port.neighbors] == ["switch-3"]


def test_it_walks_a_switch_again_after_some_rounds_without_a_change(tmp_path: Path) -> None:
    walking = Walking(tmp_path, "10.0.0.1")
    tables = {"10.0.0.1": counting(switch_rows(1, [(2, "")]))}
    num_spans = []
    for _ in range(MAX_UNCHANGED + 2):
        walking.tick(tables)
        num_spans.append(len(walking.session.spans))
    whole = 3 + len(BASE_SPANS)  # the system, the counters, and the bridge ports
    assert num_spans == [whole, *[2] * MAX_UNCHANGED, whole]


def test_it_keeps_the_report_of_a_silent_switch(
    tmp_path: Path, quiet: pytest.LogCaptureFixture
) -> None:
    walking = Walking(tmp_path, "10.0.0.1", "10.0.0.2")
    tables = {"10.0.0.1": switch_rows(1, [(2, "")]), "10.0.0.2": switch_rows(2)}
    walking.tick(tables)
    before = walking.reports
    asked = walking.tick({"10.0.0.2": tables["10.0.0.2"]}, failing={"10.0.0.1": SILENT})
    assert asked == ["10.0.0.1", "10.0.0.2"]
    after = walking.reports
    assert after[name(1)].spec == before[name(1)].spec
    assert after[name(1)].status.observed_at == before[name(1)].status.observed_at
    assert outcome(after[name(1)]) == ("failed", "no answer")
    assert outcome(after[name(2)]) == ("ok", "")
    assert quiet.messages == ["switch failure appeared"]
    assert walking.findings() == []  # its report shows the failure
    walking.seconds += 60
    walking.tick(tables)
    assert outcome(walking.reports[name(1)]) == ("ok", "")
    assert quiet.messages == ["switch failure appeared", "switch failure gone"]


def test_it_waits_longer_for_a_switch_at_each_failure(tmp_path: Path) -> None:
    walking = Walking(tmp_path, "10.0.0.1", "10.0.0.2")
    tables = {"10.0.0.2": switch_rows(2)}
    asked = [walking.tick(tables, failing={"10.0.0.1": SILENT}) for _ in range(8)]
    assert [index for index, walked in enumerate(asked) if "10.0.0.1" in walked] == [0, 2, 6]
    assert all("10.0.0.2" in walked for walked in asked)


def test_it_reports_listed_switches_that_never_answered_and_no_other_addresses(
    tmp_path: Path,
) -> None:
    walking = Walking(tmp_path, "10.0.0.1", "10.0.0.2", "10.0.1.0/30")
    walking.tick(
        {"10.0.0.2": switch_rows(2)},
        failing=dict.fromkeys(("10.0.0.1", "10.0.1.1", "10.0.1.2"), SILENT),
    )
    assert walking.findings() == [(FindingKind.SILENT_NODE, "10.0.0.1")]


def test_it_notes_a_failure_in_the_report_from_before_its_start(tmp_path: Path) -> None:
    walking = Walking(tmp_path, "10.0.0.1")
    walking.tick({"10.0.0.1": switch_rows(1, [(2, "")])})
    before = walking.reports[name(1)]
    walking.rounds = walking.start()
    walking.tick({}, failing={"10.0.0.1": SILENT})
    after = walking.reports[name(1)]
    assert outcome(after) == ("failed", "no answer")
    assert (after.spec, after.status.observed_at) == (before.spec, before.status.observed_at)


def test_it_uses_a_partial_walk_only_without_a_complete_one(tmp_path: Path) -> None:
    walking = Walking(tmp_path, "10.0.0.1")
    part = {"10.0.0.1": switch_rows(1)}
    walking.tick(part, failing={"10.0.0.1": SILENT})
    assert not walking.reports[name(1)].spec.ports
    assert outcome(walking.reports[name(1)])[0] == "failed"
    walking.tick({"10.0.0.1": switch_rows(1, [(2, "")])})
    walking.tick(part, failing={"10.0.0.1": SILENT})
    assert len(walking.reports[name(1)].spec.ports) == 1
    assert outcome(walking.reports[name(1)])[0] == "failed"


def test_it_keeps_walking_discovered_switches(tmp_path: Path) -> None:
    walking = Walking(tmp_path, "10.0.0.1", discover={"networks": ["10.0.0.0/24"]})
    tables = {
        "10.0.0.1": counting(switch_rows(1, [(2, "10.0.0.2")])),
        "10.0.0.2": switch_rows(2, [(3, "10.0.0.3"), (9, "10.9.9.9")]),
    }
    assert walking.tick(tables, failing={"10.0.0.3": SILENT}) == [
        "10.0.0.1",
        "10.0.0.2",
        "10.0.0.3",
    ]
    assert walking.tick(tables) == ["10.0.0.1", "10.0.0.2"]
    assert walking.findings() == []


def test_it_writes_one_switch_at_two_addresses_once(tmp_path: Path) -> None:
    walking = Walking(tmp_path, "10.0.0.1", "10.0.0.2")
    tables = {"10.0.0.1": switch_rows(1), "10.0.0.2": switch_rows(1)}
    walking.tick(tables)
    before = walking.reports[name(1)].spec
    walking.tick(tables)
    assert walking.reports[name(1)].spec == before
    walking.tick({"10.0.0.2": tables["10.0.0.2"]}, failing={"10.0.0.1": SILENT})
    walking.tick({"10.0.0.2": tables["10.0.0.2"]})
    assert outcome(walking.reports[name(1)]) == ("ok", "")


def test_it_loads_a_changed_list_and_keeps_the_last_good_one(
    tmp_path: Path, quiet: pytest.LogCaptureFixture
) -> None:
    walking = Walking(tmp_path, "10.0.0.1")
    tables = {f"10.0.0.{at}": switch_rows(at) for at in (1, 2)}
    assert walking.tick(tables) == ["10.0.0.1"]
    (tmp_path / "switches.yaml").write_text("switches: []")
    assert walking.tick(tables) == ["10.0.0.1"]
    walking.write("10.0.0.2")
    assert walking.tick(tables) == ["10.0.0.2"]
    assert quiet.messages == ["switch problem appeared", "switches listed", "switch problem gone"]


def test_it_tries_a_switch_at_once_when_its_secret_changed(tmp_path: Path) -> None:
    walking = Walking(tmp_path, "10.0.0.1")
    assert walking.tick({}, failing={"10.0.0.1": SILENT}) == ["10.0.0.1"]
    assert walking.tick({}, failing={"10.0.0.1": SILENT}) == []
    (tmp_path / "community").write_text("another\n")
    assert walking.tick({"10.0.0.1": switch_rows(1)}) == ["10.0.0.1"]


def test_it_refuses_to_start_without_a_list(tmp_path: Path) -> None:
    walking = Walking(tmp_path, "10.0.0.1")
    (tmp_path / "community").unlink()
    with pytest.raises(ConfigError, match="cannot be read"):
        walking.start()


def test_it_logs_once_that_reports_cannot_be_written(
    tmp_path: Path, quiet: pytest.LogCaptureFixture
) -> None:
    walking = Walking(tmp_path, "10.0.0.1")
    (tmp_path / "store").write_text("no folder")
    for _ in range(2):
        walking.tick({"10.0.0.1": switch_rows(1)})
    assert quiet.messages == ["switch problem appeared"]


def test_it_stops_during_a_round(tmp_path: Path, quiet: pytest.LogCaptureFixture) -> None:
    walking = Walking(tmp_path, "10.0.0.1")
    asked = threading.Event()

    class Hanging(FakeSession):
        def fetch_rows(self, target: Target, span: ColumnSpan) -> AsyncIterator[WalkRow]:
            asked.set()
            return super().fetch_rows(target, span)

    walking.session = Hanging({}, hanging=frozenset({"10.0.0.1"}))
    thread = threading.Thread(target=walking.rounds.tick)
    thread.start()
    assert asked.wait(5)
    walking.rounds.stop()
    thread.join(5)
    assert not thread.is_alive()
    assert quiet.messages == ["switch walks stopped"]
    walking.rounds.stop()  # nothing runs: nothing to end


def test_it_finds_switches_that_fail_and_reports_that_no_walk_renews(tmp_path: Path) -> None:
    walking = Walking(tmp_path, "10.0.0.1", "10.0.0.2")
    tables = {"10.0.0.1": switch_rows(1), "10.0.0.2": switch_rows(2)}
    walking.tick(tables)
    walking.tick({"10.0.0.2": tables["10.0.0.2"]}, failing={"10.0.0.1": SILENT})
    inputs = Inputs(reports=tuple(packed(walking.reports.values())))

    def found(minutes: int, ages: Periods | None) -> list[tuple[str, str]]:
        now = NOON + timedelta(minutes=minutes)
        rows = derive_report_findings(inputs, now=now, periods=ages)
        assert {one.kind for one in rows} <= {FindingKind.STALE_REPORT}
        return [(one.device, one.message) for one in rows]

    (failed,) = found(99, None)
    assert failed[0] == name(1)
    assert failed[1].startswith("The walk of switch switch-1 is incomplete: no answer.")
    assert found(99, Periods(PERIOD)) == [failed]
    assert found(4, Periods(PERIOD, 2 * PERIOD)) == [failed]
    assert [device for device, _ in found(8, Periods(PERIOD, 2 * PERIOD))] == [name(1), name(2)]
