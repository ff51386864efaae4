"""Faults in a simulated InfiniBand fabric while an agent sweeps it and a generator runs."""

import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from runtime.clock import utc_now
from tests.generator.folders import StoreFolder
from tests.lab.agents import AGENT
from tests.lab.infiniband import IbFabric
from tests.lab.servers import Generator, serve_command
from tests.lab.test_infiniband import plant_sysfs
from tests.repository import ROOT
from topology.reports.neighbor_report import ReportStatus, build_report
from topology.synthetic import Wiring, build_undamaged, report_claims

pytestmark = [pytest.mark.lab, pytest.mark.timeout(300), pytest.mark.xdist_group("infiniband")]


@pytest.fixture
def running(ib_fabric: IbFabric, ib_wiring: Wiring, tmp_path: Path) -> Iterator[Generator]:
    """A generator, the agent of the first host, which sweeps each second, and 31 reports.

    The other hosts' reports do not change with the cables of switches, so their agents would
    write the same again and again.
    """
    store = tmp_path / "store"
    sweeper, *others = [host.name for host in ib_wiring.hosts]
    observed = ReportStatus(observed_at=utc_now().isoformat())
    for claim in report_claims(build_undamaged(ib_wiring)):
        if claim.report in others:
            StoreFolder(store).write_report(
                build_report(claim.device, name=claim.report, status=observed)
            )
    root = plant_sysfs(ib_wiring, sweeper, tmp_path / "sysfs")
    sweep = str(ib_fabric.sweep_command(start=f"{sweeper} mlx5_0"))
    agent = (
        *(*AGENT, "run", "--publish", str(store / "neighborreports"), "--node-name", sweeper),
        *("--period", "1s", "--jitter", "0s", "--sysfs-root", str(root)),
        *("--sweep", "always", "--sweep-every", "0s", "--sweep-command", sweep),
        *("--lldpcli", str(tmp_path / "none"), "--frames", "never"),
    )
    log = tmp_path / "serve.log"
    with ExitStack() as stack:
        for command, file in ((agent, tmp_path / "agent.log"), (serve_command(store), log)):
            output = stack.enter_context(file.open("wb"))
            program = subprocess.Popen(
                command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=output, stderr=output
            )
            stack.callback(program.wait, timeout=10)
            stack.callback(program.kill)
        # Reports that nobody renews are stale after some seconds.
        yield Generator(store, log, ib_wiring, ignored={"stale-report"})
    assert "Traceback" not in log.read_text()


def test_it_keeps_the_hypernodes_when_a_cable_is_cut(
    running: Generator, ib_fabric: IbFabric, ib_wiring: Wiring
) -> None:
    running.settle()
    before = running.files()
    cut = ib_wiring.cables[5]
    ib_fabric.unlink(cut.high)
    expected = {("missing-link", cut.low.device)}
    running.await_findings(lambda said: said == expected, what="a finding about the cut cable")
    ib_fabric.relink(cut.high)
    running.settle()
    assert running.files() == before


@pytest.mark.long
def test_it_takes_out_a_host_without_cables_and_puts_it_back(
    running: Generator, ib_fabric: IbFabric, ib_wiring: Wiring
) -> None:
    running.settle()
    before = running.files()
    host = ib_wiring.hosts[-1].name
    ports = [cable.high for cable in ib_wiring.cables if cable.low.device == host]
    for port in ports:
        ib_fabric.unlink(port)
    running.settle(but_for=[host])
    for port in ports:
        ib_fabric.relink(port)
    running.settle()
    after = running.files()
    assert {name: raw for name, (_, raw) in after.items()} == {
        name: raw for name, (_, raw) in before.items()
    }
    assert sum(after[name] != before[name] for name in after) == 1  # of the one leaf it is on
