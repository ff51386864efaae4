"""A node whose lldpd and sweeps a test controls, and the folder that it publishes to."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from agent.loop import ReportLoop
from agent.publish.directory import ReportFolder
from agent.sweep_schedule import read_fabric_file
from tests.agent.fakes import Answer, FakeClock, FakeRunner, printed
from tests.agent.nodes import SWEEP, card, chassis, heard, node_for, plant
from topology.model.errors import CommandTimeout
from topology.reports.neighbor_report import NeighborReport

MAC = "b8:ce:f6:00:00:01"
LATE = CommandTimeout("lldpcli: late")
NEAR = printed(heard(("eth0", "leaf1", "swp1")))


class Agent:
    """One node with an lldpd and a sweep that a test controls, and a folder."""

    def __init__(self, root: Path) -> None:
        self.sysfs = plant(root / "sys", card("eth0", "0000:03:00.0", MAC))
        self.reports = root / "reports"
        self.answers: dict[str, Answer] = {}
        self.hear(NEAR)
        self.folder = ReportFolder(self.reports, "node01")
        self.folder.prepare()

    def hear(self, answer: Answer) -> None:
        own = answer if isinstance(answer, CommandTimeout) else printed(chassis(MAC))
        self.answers |= {"neighbors": answer, "chassis": own}

    def start(
        self,
        *,
        is_sweeping: bool = False,
        store: Path | None = None,
        clock: FakeClock | None = None,
        **changes: Any,  # noqa: ANN401 - any of the sweep's settings
    ) -> ReportLoop:
        sweep = SWEEP._replace(**changes) if is_sweeping else None
        node = node_for(self.sysfs, FakeRunner(self.answers), clock, sweep=sweep)
        return ReportLoop(node, self.folder, read_fabric_file(store) if store else None)

    @property
    def swept(self) -> dict[int, str]:
        """Return the subnets of published parts by their numbers."""
        return {number: part.subnet for number, part in self.folder.read_parts().items() if part}

    def observed_at(self, number: int) -> str:
        part = json.loads((self.reports / f"node01.sweep.{number}.yaml").read_text())
        return str(part["status"]["observedAt"])

    @property
    def report(self) -> NeighborReport:
        report = self.folder.last_report()
        assert report is not None
        return report

    @property
    def files(self) -> list[str]:
        return sorted(file.name for file in self.reports.iterdir())

    @property
    def heard(self) -> list[str]:
        return [one.name for port in self.report.spec.ports for one in port.neighbors]

    @property
    def outcomes(self) -> dict[str, str]:
        return {one.name: one.outcome for one in self.report.status.collectors}
