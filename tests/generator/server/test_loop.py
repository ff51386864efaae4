"""The reconcile loop on a folder: what it writes, keeps, publishes and logs."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from generator.objects.plane_config import DEFAULT_PLANES, PlaneChoice
from generator.outputs.hypernode.forest import render_hypernodes
from generator.placement.cluster.snapshot import Snapshot
from generator.server.loop import LoopConfig, ReconcileLoop
from generator.store.object_folders import read_hypernodes
from tests.generator.folders import StoreFolder
from tests.generator.scenes import PAIRS, RAILS, Scene
from tests.topology.synthetic.fabrics import swap
from topology.model.errors import ConfigError, KubeUnavailable
from topology.reports.neighbor_report import ReportStatus, build_report
from topology.reports.sweep_parts import split_sweep
from topology.synthetic import report_claims

NOON = datetime(2026, 7, 1, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)


class Loop:
    """Rounds on a scene, with a fixed clock and a list of published snapshots."""

    def __init__(
        self,
        scene: Scene,
        *,
        nodes: Path | None = None,
        planes: PlaneChoice | None = DEFAULT_PLANES,
    ) -> None:
        self.root = scene.root / "store"
        self.now = NOON
        self.snapshots: list[Snapshot] = []
        self.rounds = ReconcileLoop(
            StoreFolder(self.root, nodes),
            LoopConfig(period=MINUTE, now=lambda: self.now, planes=planes),
            publish=lambda snapshot, _: self.snapshots.append(snapshot),
        )

    def tick(self) -> None:
        self.rounds.tick()

    def files(self) -> Mapping[str, tuple[int, bytes]]:
        """Return inode and content of every HyperNode: a rewritten file has a new inode."""
        folder = self.root / "hypernodes"
        found = folder.iterdir() if folder.exists() else ()
        return {file.name: (file.stat().st_ino, file.read_bytes()) for file in found}

    def report(self, name: str) -> Path:
        return self.root / "neighborreports" / f"{name}.yaml"


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    made = Scene.of(tmp_path, PAIRS)
    made.store()
    return made


def test_it_writes_the_tree_as_hypernodes_and_publishes_it(scene: Scene) -> None:
    loop = Loop(scene)
    loop.tick()
    (snapshot,) = loop.snapshots
    assert sorted(snapshot.tree.nodes) == sorted(scene.hosts)
    stored = read_hypernodes(loop.root / "hypernodes").values
    assert sorted(stored, key=str) == sorted(render_hypernodes(snapshot.tree), key=str)


def test_it_writes_publishes_and_logs_nothing_without_a_change(
    scene: Scene, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    loop = Loop(scene)
    loop.tick()
    before = loop.files()
    caplog.clear()
    for _ in range(3):
        loop.tick()
    assert loop.files() == before
    assert len(loop.snapshots) == 1
    assert caplog.messages == []


def test_it_gives_a_node_one_slot_or_its_listed_capacity(scene: Scene) -> None:
    plain, listed = Loop(scene), Loop(scene, nodes=scene.nodes())
    for loop in (plain, listed):
        loop.tick()
    assert set(plain.snapshots[0].free[0]) == {1}
    assert set(listed.snapshots[0].free[0]) == {8}


def test_it_reads_the_inventory_again_when_it_changed(scene: Scene) -> None:
    nodes = scene.nodes()
    loop = Loop(scene, nodes=nodes)
    loop.tick()
    nodes.write_text(nodes.read_text().replace("slots: 8", "slots: 77"))
    loop.tick()
    assert set(loop.snapshots[-1].free[0]) == {77}


@pytest.mark.parametrize(
    "damage",
    [
        pytest.param(Path.unlink, id="is gone"),
        pytest.param(lambda file: file.write_bytes(b""), id="is empty"),
        pytest.param(lambda file: file.write_bytes(b"\x00\xff"), id="is binary"),
    ],
)
def test_it_keeps_the_last_inventory_while_the_file(
    scene: Scene, damage: Callable[[Path], object]
) -> None:
    nodes = scene.nodes()
    loop = Loop(scene, nodes=nodes)
    loop.tick()
    before = loop.files()
    damage(nodes)
    loop.tick()
    assert loop.files() == before
    assert len(loop.snapshots) == 1


def test_it_refuses_to_start_without_a_usable_inventory(scene: Scene) -> None:
    with pytest.raises(ConfigError, match="no nodes in this file"):
        Loop(scene, nodes=scene.write("nodes.yaml", b"nodes: []\n"))


def test_it_writes_two_files_when_two_hosts_swap_places(scene: Scene) -> None:
    loop = Loop(scene)
    loop.tick()
    before = loop.files()
    one, other = scene.hosts[0], scene.hosts[-1]
    traded = scene.damaged
    for port in ("eth0", "eth1"):
        traded = swap(traded, (one, port), (other, port))
    Scene(scene.root, traded).store()
    loop.tick()
    after = loop.files()
    assert after.keys() == before.keys()
    changed = [name for name in after if after[name] != before[name]]
    assert len(changed) == 2
    assert all(name.startswith("leaf") for name in changed)
    assert len(loop.snapshots) == 2


@pytest.mark.parametrize("content", [None, b"\x00\x01", b"kind: Other\n"])
def test_it_changes_nothing_when_no_report_is_usable(
    scene: Scene, caplog: pytest.LogCaptureFixture, content: bytes | None
) -> None:
    caplog.set_level(logging.INFO)
    loop = Loop(scene)
    loop.tick()
    before = loop.files()
    for file in (loop.root / "neighborreports").iterdir():
        if content is None:
            file.unlink()
        else:
            file.write_bytes(content)
    caplog.clear()
    for _ in range(3):
        loop.tick()
    assert loop.files() == before
    assert len(loop.snapshots) == 1
    assert caplog.messages.count("fabric unknown, nothing is written") == 1


def test_it_changes_nothing_when_reports_have_no_links(scene: Scene) -> None:
    loop = Loop(scene)
    loop.tick()
    before = loop.files()
    for file in (loop.root / "neighborreports").iterdir():
        document = json.loads(file.read_text())
        for port in document["spec"]["ports"]:
            port.pop("neighbors", None)
        file.write_text(json.dumps(document))
    loop.tick()
    assert loop.files() == before


def test_it_waits_for_the_first_report(tmp_path: Path) -> None:
    scene = Scene.of(tmp_path, PAIRS)
    (tmp_path / "store").mkdir()
    loop = Loop(scene)
    loop.tick()
    assert (loop.snapshots, loop.files()) == ([], {})
    scene.store()
    loop.tick()
    assert len(loop.snapshots) == 1
    assert loop.files()


def test_it_carries_names_over_a_restart(scene: Scene) -> None:
    loop = Loop(scene)
    loop.tick()
    (loop.root / "treerecords" / "default.yaml").unlink()
    folder = loop.root / "hypernodes"
    kept = sorted(file.stem for file in folder.iterdir() if file.stem.startswith("leaf"))
    for file in list(folder.iterdir()):
        renamed = file.read_text().replace(kept[0], "the-old-name")
        file.unlink()
        name = "the-old-name" if file.stem == kept[0] else file.stem
        file.with_name(f"{name}.yaml").write_text(renamed)
    again = Loop(scene)
    before = again.files()
    again.tick()
    assert again.files() == before
    assert "the-old-name" in [domain.name for domain in again.snapshots[0].tree.domains]


def test_it_logs_a_finding_when_it_appears_and_when_it_goes(
    scene: Scene, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    loop = Loop(scene)
    claim = next(iter(report_claims(scene.damaged)))
    status = ReportStatus(observed_at=NOON.isoformat())
    StoreFolder(loop.root).write_report(
        build_report(claim.device, name=claim.report, status=status)
    )
    for minutes in (0, 10, 20, 0):
        loop.now = NOON + minutes * MINUTE
        loop.tick()
    logged = [
        (record.getMessage(), vars(record)["device"])
        for record in caplog.records
        if vars(record).get("kind") == "stale-report" and vars(record)["device"] == claim.report
    ]
    assert logged == [("finding appeared", claim.report), ("finding gone", claim.report)]


def test_it_continues_after_a_failed_round(scene: Scene, caplog: pytest.LogCaptureFixture) -> None:
    loop = Loop(scene)
    reports = loop.root / "neighborreports"
    aside = reports.rename(loop.root / "aside")
    reports.write_text("not a folder")
    loop.tick()
    assert "round failed" in caplog.messages
    reports.unlink()
    aside.rename(reports)
    loop.tick()
    assert len(loop.snapshots) == 1


def test_it_logs_that_no_port_is_in_the_requested_plane(
    scene: Scene, caplog: pytest.LogCaptureFixture
) -> None:
    loop = Loop(scene, planes=PlaneChoice(plane_name="nosuch"))
    loop.tick()
    (unknown,) = (one for one in caplog.records if one.message.startswith("fabric unknown"))
    assert vars(unknown)["reason"] == "no port is in plane nosuch; planes with ports: compute"
    assert not loop.files()


def test_it_publishes_even_if_it_cannot_write(
    scene: Scene, caplog: pytest.LogCaptureFixture
) -> None:
    loop = Loop(scene)
    (loop.root / "treerecords").write_text("")  # a folder cannot take the place of a file
    loop.tick()
    assert len(loop.snapshots) == 1
    assert "writing hypernodes failed" in caplog.messages


def test_it_uses_the_newest_of_two_sweeps_when_only_times_changed(tmp_path: Path) -> None:
    scene = Scene.of(tmp_path, RAILS)
    store = StoreFolder(scene.store())
    traded = scene.damaged
    for rail in range(4):
        port = f"mlx5_{rail}/1"
        traded = swap(traded, (scene.hosts[0], port), (scene.hosts[-1], port))
    sweeps = {
        scene.hosts[0]: scene.sweep_text(),
        scene.hosts[1]: Scene(tmp_path, traded).sweep_text(),
    }

    def publish(minutes_by_host: dict[str, int]) -> None:
        for host, minutes in minutes_by_host.items():
            observed = (NOON + minutes * MINUTE).isoformat()
            for part in split_sweep(sweeps[host], node=host, subnet="fe80" + "0" * 12):
                status = ReportStatus(observed_at=observed)
                store.write_report(structs.replace(part, status=status))

    loop = Loop(scene)
    for minutes in ((1, 2), (3, 2), (3, 3)):
        publish(dict(zip(sweeps, minutes, strict=True)))
        loop.tick()
    homes = [
        next(domain for domain in snapshot.tree.domains if scene.hosts[0] in domain.nodes)
        for snapshot in loop.snapshots
    ]
    assert [scene.hosts[1] in home.nodes for home in homes] == [False, True, False]


class BusyServer(StoreFolder):
    """A store that cannot take the next status."""

    is_busy = False

    def write_status(self, status: Mapping[str, Any]) -> bool:
        """Write it, unless the server is busy."""
        if self.is_busy:
            raise KubeUnavailable("too many requests", status=429)
        return super().write_status(status)


def test_a_status_that_the_server_could_not_take_is_written_in_the_next_round(
    tmp_path: Path,
) -> None:
    store = BusyServer(Scene.of(tmp_path / "scene", PAIRS).store())
    config = LoopConfig(period=MINUTE, now=lambda: NOON, planes=DEFAULT_PLANES)
    rounds = ReconcileLoop(store, config, publish=lambda _snapshot, _pods: None)
    store.is_busy = True
    wait_s = rounds.tick()
    assert wait_s is not None
    assert wait_s < MINUTE.total_seconds(), "no change may come before the next period"
    assert store.read_fabric() is None
    store.is_busy = False
    assert rounds.tick() is None
    fabric = store.read_fabric()
    assert fabric is not None
    assert fabric["status"]["conditions"]
