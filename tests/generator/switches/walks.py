"""Rounds of walks of simulated switches, for tests of the reports in the store."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

from generator.switches.poller import SwitchPoller
from tests.generator.folders import StoreFolder
from tests.generator.switches.switchboard import FakeSession, mac
from topology.model.errors import SwitchSilent
from topology.model.facts import FindingKind
from topology.reports.neighbor_report import NeighborReport
from topology.reports.packed_reports import unpack_report
from topology.sources.lldp_mib.tables import WalkRow

NOON = datetime(2026, 7, 1, 12, tzinfo=UTC)
PERIOD = timedelta(seconds=60)
SILENT = SwitchSilent("no answer")


class Walking:
    """Rounds on simulated switches, a minute apart."""

    def __init__(self, root: Path, *addresses: str, **config: object) -> None:
        self.root = root
        self.seconds = 0.0
        self.session = FakeSession({})
        self.store = StoreFolder(root / "store")
        self.write(*addresses, **config)
        self.rounds = self.start()

    def write(self, *addresses: str, **config: object) -> None:
        secret = self.root / "community"
        secret.write_text("cables\n")
        secret.chmod(0o600)
        group = {"addresses": addresses, "communityFile": "community"}
        (self.root / "switches.yaml").write_text(json.dumps({"switches": [group], **config}))

    def start(self) -> SwitchPoller:
        @asynccontextmanager
        async def opened() -> AsyncIterator[FakeSession]:
            yield self.session

        return SwitchPoller(
            self.root / "switches.yaml",
            store=self.store,
            period=PERIOD,
            deadline=timedelta(seconds=20),
            now=lambda: NOON + timedelta(seconds=self.seconds),
            clock=lambda: self.seconds,
            open_session=opened,
        )

    def tick(
        self,
        tables: Mapping[str, list[WalkRow]],
        *,
        failing: Mapping[str, SwitchSilent] | None = None,
    ) -> list[str]:
        """Run a round and return the addresses that were asked anything."""
        self.session = FakeSession(tables, failures=failing or {})
        self.rounds.tick()
        self.seconds += PERIOD.total_seconds()
        return self.session.walked

    @property
    def reports(self) -> dict[str, NeighborReport]:
        read = self.store.read_reports()
        assert not read.all_problems
        return {report.name: unpack_report(report) for report in read.values}

    def findings(self) -> list[tuple[FindingKind, str]]:
        return [(one.kind, one.device) for one in self.rounds.derive_findings()]


def name(number: int) -> str:
    return f"switch-{mac(number).hex()}"


def outcome(report: NeighborReport) -> tuple[str, str]:
    (row,) = report.status.collectors
    return row.outcome, row.message
