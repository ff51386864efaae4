"""A served store, and the events that may happen to it between two rounds."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

from generator.objects.fabric import FabricDocument
from generator.reconcile.conditions import parse_write_status
from generator.reconcile.folder_outputs import FolderPublisher
from generator.reconcile.settings import WriteSettings
from generator.server.loop import LoopConfig, ReconcileLoop
from tests.generator.folders import StoreFolder, parse_fabric_document
from tests.generator.scenes import Scene
from topology.model.facts import Medium
from topology.reports.fabric_status import fabric_head
from topology.synthetic import FabricKind, SyntheticSpec

NOON: Final = datetime(2026, 7, 1, 12, tzinfo=UTC)
MINUTE: Final = timedelta(minutes=1)
FABRIC: Final = SyntheticSpec(FabricKind.DUAL_HOMED, 32, radix=16, medium=Medium.ETHERNET)
"""32 hosts, eight on each pair of leaves."""
SMALL: Final = SyntheticSpec(FabricKind.DUAL_HOMED, 8, radix=8, medium=Medium.ETHERNET)


class Day:
    """A served store, with methods that change it."""

    def __init__(
        self, root: Path, spec: SyntheticSpec = FABRIC, *, is_listed: bool = False
    ) -> None:
        self.scene = Scene.of(root, spec)
        self.root = self.scene.store(NOON.isoformat() if is_listed else None)
        self.store = StoreFolder(self.root)
        self.nodes = self.scene.nodes() if is_listed else None
        self.now = NOON
        self.now_s = 0.0
        self.restart()

    @property
    def latest(self) -> datetime:
        """Return the latest time that may be right."""
        return self.now

    def restart(self, writing: WriteSettings | None = None) -> None:
        self.rounds = ReconcileLoop(
            StoreFolder(self.root, self.nodes),
            LoopConfig(
                period=MINUTE,
                now=lambda: self.now,
                latest=lambda: self.latest,
                writing=writing or WriteSettings(),
                publisher=FolderPublisher(self.root, namespace="toponaut"),
            ),
            publish=lambda _snapshot, _pods: None,
        )

    def tick(self) -> float | None:
        return self.rounds.tick()

    def files(self) -> Mapping[str, tuple[int, bytes]]:
        """Return inode and content of every HyperNode."""
        found = self.store.hypernodes.iterdir() if self.store.hypernodes.exists() else ()
        return {file.name: (file.stat().st_ino, file.read_bytes()) for file in found}

    def placed(self) -> set[str]:
        """Return the nodes that are in a HyperNode."""
        return {node for one in self.store.read_hypernodes().values for node in one.nodes}

    def some(self, num: int) -> list[str]:
        """Return the first hosts."""
        return self.scene.hosts[:num]

    def rewrite(self, change: Callable[[str], str]) -> None:
        """Change the text of every report; its file is named after it."""
        for file in list(self.store.reports.iterdir()):
            text = change(file.read_text())
            file.unlink()
            name = json.loads(text)["metadata"]["name"]
            file.with_name(f"{name}.yaml").write_text(text)

    def lose(self, hosts: Collection[str]) -> None:
        """Remove hosts: their reports, and the neighbors that switches report of them."""
        for file in list(self.store.reports.iterdir()):
            if file.stem in hosts:
                file.unlink()
                continue
            report = json.loads(file.read_text())
            for port in report["spec"]["ports"]:
                near = port.get("neighbors", [])
                port["neighbors"] = [one for one in near if not _names(one, hosts)]
            file.write_text(json.dumps(report))

    def fabric(self) -> FabricDocument:
        document = self.store.read_fabric()
        assert document is not None
        return parse_fabric_document(document)

    def conditions(self) -> dict[str, str]:
        """Return the reason of each condition, with a minus where it is false."""
        return {
            one.type.value: one.reason if one.status == "True" else f"-{one.reason}"
            for one in self.fabric().status.conditions
        }

    def held(self) -> str:
        """Return the hash of the plan that is held."""
        held = parse_write_status(self.store.read_fabric()).held
        assert held is not None
        return held.hash

    def want(self, **spec: object) -> None:
        """Write what people want into the Fabric object."""
        document = self.store.read_fabric() or fabric_head()
        self.store.write_fabric(document | {"spec": spec})


def _names(neighbor: Mapping[str, Any], hosts: Collection[str]) -> bool:
    return neighbor.get("name") in hosts


def hold(day: Day, num: int = 16) -> str:
    """Remove hosts, and return the hash of the plan that is held as a result."""
    before = day.files()
    day.lose(day.some(num))
    day.tick()
    assert day.files() == before
    return day.held()
