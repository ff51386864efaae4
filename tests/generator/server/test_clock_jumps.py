"""The clock of the generator is wrong for some rounds and then right: nothing is written early.

The oracle is the same store with a clock that is right: after each round, both have the same
HyperNodes, the same record of decisions and the same Fabric object.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from generator.server import server
from runtime.clock import SteadyTime
from tests.effort import examples
from tests.generator.server.days import FABRIC, MINUTE, NOON, Day
from topology.synthetic import FabricKind, SyntheticSpec

YEARS = timedelta(days=365 * 73)
SWEPT = SyntheticSpec(FabricKind.RAIL, 8, rails=2, radix=8)


class JumpDay(Day):
    """A store whose server has a clock that may be wrong."""

    def __init__(
        self, root: Path, spec: SyntheticSpec = FABRIC, *, ahead: timedelta = timedelta(0)
    ) -> None:
        self.true = NOON
        self.ahead = ahead
        self._time = SteadyTime(lambda: self.true + self.ahead, self._passed_s)
        super().__init__(root, spec)
        self.want(changeBudget={"nodesPercent": 10, "releaseAfterSeconds": 7200})

    def _passed_s(self) -> float:
        return (self.true - NOON).total_seconds()

    @property
    def now(self) -> datetime:
        return self._time()

    @now.setter
    def now(self, now: datetime) -> None:
        self.true = now

    @property
    def latest(self) -> datetime:
        return self._time.latest()

    def contents(self) -> Mapping[str, bytes]:
        """Return every object that the generator writes."""
        folders = (self.store.hypernodes, self.store.records, self.store.fabrics)
        files = [file for folder in folders if folder.exists() for file in folder.iterdir()]
        return {f"{file.parent.name}/{file.name}": file.read_bytes() for file in files}


class Step(NamedTuple):
    """What happens before a round."""

    num_lost: int
    """Hosts that are gone from then on."""
    minutes: int


JUMPS = [YEARS, -timedelta(days=1), timedelta(hours=1), -timedelta(minutes=30)]
STEPS = st.builds(Step, st.integers(0, 4), st.integers(1, 20))


@example([Step(0, 1), Step(3, 1), Step(3, 1), Step(0, 1)], 2, [YEARS])
@example([Step(0, 1), Step(20, 1), Step(0, 1), Step(0, 1)], 2, [YEARS])
@example([Step(0, 1), Step(3, 1), Step(0, 1), Step(3, 1)], 2, [-YEARS])
@settings(max_examples=examples(40))
@given(
    st.lists(STEPS, min_size=3, max_size=6),
    st.integers(1, 5),
    st.lists(st.sampled_from(JUMPS), min_size=1, max_size=2),
)
def test_a_moment_with_a_wrong_clock_changes_nothing(
    steps: list[Step], first: int, jumps: list[timedelta]
) -> None:
    with tempfile.TemporaryDirectory() as root:
        (Path(root) / "right").mkdir()
        (Path(root) / "wrong").mkdir()
        right, wrong = JumpDay(Path(root) / "right"), JumpDay(Path(root) / "wrong")
        num_lost = 0
        for at, step in enumerate(steps):
            num_lost += step.num_lost
            wrong.ahead = jumps[at - first] if 0 <= at - first < len(jumps) else timedelta(0)
            for day in (right, wrong):
                day.lose(day.some(num_lost))
                day.now = day.true + step.minutes * MINUTE
                day.tick()
            assert wrong.contents() == right.contents()


@pytest.mark.parametrize("behind", [timedelta(minutes=10), timedelta(days=1), YEARS])
def test_sweeps_count_once_a_clock_that_was_behind_at_the_start_is_right(
    tmp_path: Path, behind: timedelta
) -> None:
    day = JumpDay(tmp_path, SWEPT, ahead=-behind)
    day.rewrite(_observe_at_noon)
    day.tick()
    assert day.placed() == set(), "the sweep is dated ahead of the clock"
    day.ahead = timedelta(0)
    day.now = NOON + MINUTE
    day.tick()
    assert len(day.placed()) == 8


def _observe_at_noon(text: str) -> str:
    report = json.loads(text)
    report["status"] = {**report.get("status", {}), "observedAt": NOON.isoformat()}
    return json.dumps(report)


def test_the_server_has_no_other_clock() -> None:
    lines = [row for row in Path(server.__file__).read_text().splitlines() if "utc_now" in row]
    known = ("import", "SteadyTime(", "PeriodicJob(")
    assert [row for row in lines if not any(word in row for word in known)] == []
    assert any("SteadyTime(" in row for row in lines)
