"""Cables to tree on InfiniBand: the real ibnetdiscover on a simulated fabric, read by agents."""

import json
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.lab.agents import AGENT, toponaut, write_objects
from tests.lab.infiniband import IbFabric
from tests.repository import ROOT
from topology.synthetic import Wiring, derive_truth, sysfs_files, undamaged
from topology.tree import host_partitions, parse_tree

pytestmark = [pytest.mark.lab, pytest.mark.timeout(120), pytest.mark.xdist_group("infiniband")]


def plant_sysfs(wiring: Wiring, host: str, root: Path) -> Path:
    """Write the part of sysfs that tells a host's HCAs."""
    (root / "class" / "net").mkdir(parents=True)
    for path, text in sysfs_files(undamaged(wiring), host).items():
        place = root / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)
    return root


def collect(host: str, root: Path, *more: str) -> list[dict[str, Any]]:
    """Return the reports of one run of a host's agent."""
    # This machine's own lldpd, should it have one, has no say here.
    where = ("--node-name", host, "--sysfs-root", str(root), "--lldpcli", str(root / "none"))
    done = subprocess.run(
        [*AGENT, "once", "-o", "json", *where, *more],
        cwd=ROOT,
        check=False,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    items: list[dict[str, Any]] = json.loads(done.stdout)["items"]
    return items


def test_it_finds_the_tree_and_survives_a_cut_cable(
    ib_fabric: IbFabric, ib_wiring: Wiring, tmp_path: Path
) -> None:
    sweeper, *others = [host.name for host in ib_wiring.hosts]
    roots = {host.name: tmp_path / host.name for host in ib_wiring.hosts}
    for host, root in roots.items():
        plant_sysfs(ib_wiring, host, root)
    reports = tmp_path / "reports"
    program = str(ib_fabric.sweep_command(start=f"{sweeper} mlx5_0"))
    sweep = ("--sweep", "always", "--sweep-command", program)
    with ThreadPoolExecutor(max_workers=2) as pool:
        for items in pool.map(lambda host: collect(host, roots[host]), others):
            write_objects(reports, items)
    write_objects(reports, collect(sweeper, roots[sweeper], *sweep))

    healthy = toponaut("tree", "--reports", str(reports))
    found, truth = parse_tree(healthy), derive_truth(undamaged(ib_wiring))
    assert host_partitions(found) == host_partitions(truth)
    assert not found.unplaced
    assert toponaut("findings", "--reports", str(reports)) == []

    cut = ib_wiring.cables[5]
    ib_fabric.unlink(cut.high)
    write_objects(reports, collect(sweeper, roots[sweeper], *sweep))
    assert toponaut("tree", "--reports", str(reports)) == healthy
    (finding,) = toponaut("findings", "--reports", str(reports))
    assert finding["kind"] == "missing-link"
    assert finding["subject"]["device"] == cut.low.device
