"""Cables to tree on InfiniBand: the real ibnetdiscover on a simulated fabric, read by agents."""

import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from generator.store.object_folders import read_reports
from tests.lab.agents import AGENT, toponaut, write_objects
from tests.lab.infiniband import IbFabric
from tests.lab.tools import require_tools
from tests.lab.wait import wait_until
from tests.repository import ROOT
from topology.model.tree import host_partitions, parse_tree
from topology.synthetic import Wiring, build_undamaged, derive_truth, sysfs_files

pytestmark = [pytest.mark.lab, pytest.mark.timeout(300), pytest.mark.xdist_group("infiniband")]


def plant_sysfs(wiring: Wiring, host: str, root: Path) -> Path:
    """Write the part of sysfs that describes a host's HCAs."""
    (root / "class" / "net").mkdir(parents=True)
    for path, text in sysfs_files(build_undamaged(wiring), host).items():
        place = root / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)
    return root


def collect(host: str, root: Path, *more: str, code: int = 0) -> list[dict[str, Any]]:
    """Return the reports of one run of a host's agent, which ends with a code."""
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
    assert done.returncode == code, done.stderr[-2000:]
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
    found, truth = parse_tree(healthy), derive_truth(build_undamaged(ib_wiring))
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


def test_it_finds_the_same_tree_in_what_opensm_writes(
    ib_fabric: IbFabric, ib_wiring: Wiring, tmp_path: Path
) -> None:
    require_tools("opensm")
    dump = ib_fabric.run_opensm(start=f"{ib_wiring.hosts[0].name} mlx5_0")
    found = parse_tree(toponaut("tree", "--ibnetdiscover", str(dump)))
    assert host_partitions(found) == host_partitions(derive_truth(build_undamaged(ib_wiring)))
    (inspected,) = toponaut("inspect", "--strict", str(dump))
    assert inspected["format"] == "subnet-lst"
    assert inspected["counts"]["links"] == len(ib_wiring.cables)
    swept = tmp_path / "sweep.txt"
    sweep = ib_fabric.sweep_command(start=f"{ib_wiring.hosts[0].name} mlx5_0")
    swept.write_bytes(subprocess.run([sweep], check=True, capture_output=True, timeout=60).stdout)
    assert toponaut("tree", str(swept)) == toponaut("tree", str(dump))
    assert toponaut("findings", str(swept)) == toponaut("findings", str(dump))


@pytest.mark.long
def test_it_takes_a_fabric_that_refuses_for_an_unknown_one(
    ib_fabric: IbFabric, ib_wiring: Wiring, tmp_path: Path
) -> None:
    reports, sweeper = tmp_path / "reports", ib_wiring.hosts[0].name
    root = plant_sysfs(ib_wiring, sweeper, tmp_path / sweeper)
    program = str(ib_fabric.sweep_command(start=f"{sweeper} mlx5_0"))
    sweep = ("--sweep", "always", "--sweep-command", program)
    ib_fabric.set_refusing(is_refusing=True)
    (report,) = collect(sweeper, root, *sweep, code=3)
    (subnet,) = report["status"]["sweeping"]["refused"]
    outcomes = {one["name"]: one for one in report["status"]["collectors"]}
    assert outcomes["ib_sweep"]["outcome"] == "failed"
    assert "every query" in outcomes["ib_sweep"]["message"]
    write_objects(reports, [report])
    findings = toponaut("findings", "--reports", str(reports), "--kind", "sweep-refused")
    assert [(one["severity"], one["subject"]) for one in findings] == [
        ("error", {"device": sweeper, "port": "mlx5_0/1"})
    ]
    assert subnet in findings[0]["message"]

    ib_fabric.set_refusing(is_refusing=False)
    write_objects(reports, collect(sweeper, root, *sweep))
    found = parse_tree(toponaut("tree", "--reports", str(reports)))
    assert host_partitions(found) == host_partitions(derive_truth(build_undamaged(ib_wiring)))
    ib_fabric.set_refusing(is_refusing=True)
    write_objects(reports, collect(sweeper, root, *sweep, code=3))
    assert parse_tree(toponaut("tree", "--reports", str(reports))) == found
    (finding,) = toponaut("findings", "--reports", str(reports), "--kind", "sweep-refused")
    assert finding["severity"] == "warning"


@pytest.mark.long
def test_it_sweeps_from_both_nodes_that_the_generator_elects(
    ib_fabric: IbFabric, ib_wiring: Wiring, tmp_path: Path
) -> None:
    store = tmp_path / "store"
    (store / "neighborreports").mkdir(parents=True)
    names = [host.name for host in ib_wiring.hosts[:3]]
    with ExitStack() as running:

        def start(log: str, *words: str) -> subprocess.Popen[bytes]:
            output = running.enter_context((tmp_path / log).open("wb"))
            process = subprocess.Popen(words, cwd=ROOT, stdout=output, stderr=output)
            running.callback(process.wait)
            running.callback(process.kill)
            return process

        serve = ("-m", "generator", "serve", "--store", str(store), "--period", "1s")
        start("serve.log", sys.executable, *serve, "--listen", "127.0.0.1:0", "--insecure-loopback")
        agents = {
            name: start(
                f"{name}.log",
                *(*AGENT, "run", "--store", str(store), "--period", "1s", "--jitter", "0s"),
                *("--node-name", name, "--lldpcli", "none", "--frames", "never"),
                *("--sysfs-root", str(plant_sysfs(ib_wiring, name, tmp_path / name))),
                *("--sweep-command", str(ib_fabric.sweep_command(start=f"{name} mlx5_0"))),
            )
            for name in names
        }
        parts = store / "neighborreports"

        def sweepers() -> list[str]:
            return sorted({part.name.split(".")[0] for part in parts.glob("*.sweep.*.yaml")})

        def are_two() -> object:
            return "" if len(sweepers()) == 2 else sweepers() or "nobody"

        wait_until(are_two, deadline_s=60, what="the elected node and its spare sweep")
        first, second = sweepers()
        ids = {one.sweep.sweep_id for one in read_reports(parts).values if one.sweep}
        assert len(ids) == 1, "both see the same, from different HCAs"
        agents[first].kill()
        agents[first].wait()

        def not_another() -> object:
            return "" if set(sweepers()) - {first, second} else f"{first} and {second}"

        wait_until(not_another, deadline_s=60, what="another spare sweeps")
    found = parse_tree(toponaut("tree", "--reports", str(parts)))
    truth = host_partitions(derive_truth(build_undamaged(ib_wiring)))
    assert host_partitions(found) == truth
