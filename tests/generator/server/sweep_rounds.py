"""A served cluster whose agents sweep: rounds of a generator, and what its Fabric object says."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

from msgspec import structs

from generator.observe.freshness import STALE_PERIODS
from generator.server.loop import LoopConfig, ReconcileLoop
from generator.store.fabric_store import FabricStore
from generator.store.folder_store import FolderStore
from tests.generator.folders import StoreFolder
from tests.generator.ingest.swept_fabrics import (
    DEVICES,
    HOSTS,
    exchange,
    host_reports,
    sweep_by,
)
from tests.generator.sweep_reports import NOW, PERIOD
from topology.model.facts import Device
from topology.reports.neighbor_report import NeighborReport

ABLE_NODES = HOSTS[:3]
FIRST, SECOND, THIRD = ABLE_NODES
LIAR = HOSTS[9]
FORGED = exchange(HOSTS[3], HOSTS[12])
"""Two nodes in each other's place: fewer than any budget."""


class AgentFolder(FolderStore):
    """A folder that stands for a cluster: each agent can write the reports of its node only."""

    has_agent_tokens = True


class Sweeps:
    """Rounds of a generator, and the sweeps of its agents."""

    def __init__(self, root: Path, able: Sequence[str] = ABLE_NODES) -> None:
        self.store = StoreFolder(root)
        self.root = root
        for report in host_reports(able):
            self.store.write_report(report)
        self.restart()

    def restart(self) -> None:
        self.rounds = ReconcileLoop(
            FabricStore(AgentFolder(self.root)),
            LoopConfig(period=PERIOD, now=lambda: NOW),
            publish=lambda _snapshot, _pods: None,
        )

    def sweep(
        self, node: str, devices: Sequence[Device] = DEVICES, *, ahead: timedelta = timedelta()
    ) -> None:
        self.write(*sweep_by(node, devices, ahead=ahead))

    def write(self, *reports: NeighborReport) -> None:
        for report in reports:
            self.store.write_report(report)

    def withdraw(self, node: str) -> None:
        for file in self.store.reports.glob(f"{node}.sweep.*"):
            file.unlink()

    def silence(self, node: str) -> None:
        """Let a node's report become old, as when its agent is gone."""
        (report,) = [one for one in host_reports(ABLE_NODES) if one.metadata.name == node]
        old = (NOW - (STALE_PERIODS + 1) * PERIOD).isoformat()
        status = structs.replace(report.status, observed_at=old)
        self.write(structs.replace(report, status=status))

    def come_back(self, node: str) -> None:
        """Let a node report again."""
        self.write(*(one for one in host_reports(ABLE_NODES) if one.metadata.name == node))

    def tick(self, num: int = 1) -> None:
        for _ in range(num):
            self.rounds.tick()

    def settle(self) -> dict[str, bytes]:
        """Run until the HyperNodes follow from two equal sweeps."""
        self.tick()
        self.sweep(FIRST)
        self.sweep(SECOND)
        self.tick(3)
        return self.files()

    def files(self) -> dict[str, bytes]:
        found = self.store.hypernodes.iterdir() if self.store.hypernodes.exists() else ()
        return {file.name: file.read_bytes() for file in found}

    @property
    def status(self) -> dict[str, Any]:
        fabric = self.store.read_fabric()
        assert fabric is not None
        return dict(fabric["status"])

    @property
    def counted(self) -> list[str]:
        return [sweep["node"] for sweep in self.status["sweeps"]]

    @property
    def roles(self) -> list[str]:
        return [sweeper["node"] for sweeper in self.status["sweepers"]]

    @property
    def blocked(self) -> str:
        """The reason why a plan is held; empty if none is."""
        rows = {row["type"]: row for row in self.status["conditions"]}
        blocked = rows.get("ChangeBlocked", {"status": "False"})
        return str(blocked["reason"]) if blocked["status"] == "True" else ""

    @property
    def message(self) -> str:
        rows = {row["type"]: row for row in self.status["conditions"]}
        return str(rows["ChangeBlocked"]["message"])

    @property
    def findings(self) -> set[str]:
        return {row["kind"] for row in self.status["findings"]}
