"""A fabric with faults, gangs, a held plan and a history, and the page that serves it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from generator.history.history_file import FILE_NAME, HistoryWriter
from generator.history.recorder import HistoryRecorder
from generator.objects.pod_ranks import PodRank
from generator.objects.pods import BoundPod
from generator.placement.cluster.nodes import RunningGang, RunningPods
from generator.placement.cluster.snapshot import Snapshot, with_running
from generator.reconcile.round_results import RoundOutcome
from generator.rpc.auth.authentication import TokenCheck
from generator.rpc.auth.tls import TlsFiles
from generator.server.loop import LoopConfig, ReconcileLoop
from generator.server.page_port import PagePort, build_page_sources
from tests.generator.folders import StoreFolder
from tests.generator.scenes import Scene
from tests.topology.synthetic.fabrics import cut, cut_all, swap
from topology.model.facts import Medium
from topology.reports.neighbor_report import ReportStatus, build_report
from topology.synthetic import (
    DamagedFabric,
    FabricKind,
    SyntheticSpec,
    build_undamaged,
    build_wiring,
    report_claims,
)

GPU: Final = "nvidia.com/gpu"
SPEC: Final = SyntheticSpec(FabricKind.RAIL, 64, rails=4, radix=16, medium=Medium.ETHERNET)
NOON: Final = datetime(2026, 11, 2, 12, tzinfo=UTC)
NUM_LOST: Final = 12
"""Hosts that lose all cables before the second round; more than the change budget allows."""
GANGS: Final = {"ml/llm-pretrain": range(16, 32), "ml/vision": range(36, 40), "ml/eval": (43, 60)}
"""Numbers of the hosts of each gang."""


def _deal(numbers: Sequence[int]) -> list[int]:
    """Return hosts in the order in which a scheduler binds pods to two leaves in turn."""
    half = len(numbers) // 2
    return [number for pair in zip(numbers[:half], numbers[half:], strict=True) for number in pair]


class PageScene:
    """Two rounds of a reconcile loop: the second one holds its plan."""

    def __init__(self, root: Path) -> None:
        whole = build_undamaged(build_wiring(SPEC))
        hosts = [host.name for host in whole.wiring.hosts]
        low = [cable.low for cable in whole.cables]
        port_of = {name: [end.port for end in low if end.device == name] for name in hosts}
        self.swapped = (hosts[20], hosts[41])
        """Hosts whose cables of one rail are exchanged."""
        damaged = swap(whole, *((name, port_of[name][1]) for name in self.swapped))
        damaged = cut(damaged, (hosts[45], port_of[hosts[45]][2]))
        root.mkdir(parents=True, exist_ok=True)
        self.scene = Scene(root, damaged)
        self.hosts = hosts
        self.now = NOON
        self.outcomes: list[RoundOutcome] = []
        self.snapshot: Snapshot | None = None
        self.history = root / FILE_NAME
        recorder = HistoryRecorder(HistoryWriter(self.history), lambda: self.now)

        def on_round(outcome: RoundOutcome) -> None:
            self.outcomes.append(outcome)
            recorder.record(outcome.tree, outcome.findings)

        self.pods = [
            BoundPod(gang, hosts[number], None, {GPU: 8}, f"{gang}-{rank}", PodRank("w", (rank,)))
            for gang, numbers in GANGS.items()
            for rank, number in enumerate(_deal(numbers))
        ]
        self._store = StoreFolder(root / "store")
        self._write(damaged)
        self.loop = ReconcileLoop(
            StoreFolder(root / "store", self.scene.kube_nodes()),
            LoopConfig(timedelta(minutes=1), lambda: self.now, round_listeners=(on_round,)),
            publish=self._publish,
        )
        self.loop.tick()
        self.now += timedelta(hours=2)
        for host in hosts[-NUM_LOST:]:
            damaged = cut_all(damaged, host)
        self._write(damaged)
        self.loop.tick()
        recorder.close()

    def _write(self, damaged: DamagedFabric) -> None:
        """Write the reports of all devices, as of now."""
        for file in self._store.reports.glob("*"):
            file.unlink()
        status = ReportStatus(observed_at=self.now.isoformat())
        for claim in report_claims(damaged):
            self._store.write_report(build_report(claim.device, name=claim.report, status=status))

    def _publish(self, snapshot: Snapshot, pods: Sequence[BoundPod]) -> None:
        """Add the gangs, which a folder does not know."""
        assert not pods
        gangs = {
            gang: tuple(RunningPods(self.hosts[number], {GPU: 8}, 1) for number in numbers)
            for gang, numbers in GANGS.items()
        }
        running = [RunningGang(gang, pods) for gang, pods in gangs.items()]
        self.snapshot = with_running(snapshot, *running)

    @contextmanager
    def serve(
        self, *, tls: TlsFiles | None = None, tokens: TokenCheck | None = None
    ) -> Iterator[str]:
        """Serve the page, and yield its address."""
        sources = build_page_sources(
            self.loop.find_planes,
            lambda: self.snapshot,
            self.history,
            approve_command="toponaut approve --kube",
        )
        port = PagePort("127.0.0.1:0", sources, tls=tls, tokens=tokens)
        port.document.on_round(self.outcomes[-1])
        port.document.set_pods(self.pods)
        try:
            yield f"{'https' if tls else 'http'}://{port.address}/"
        finally:
            port.stop()
