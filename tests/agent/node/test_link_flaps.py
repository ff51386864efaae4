"""Flapping ports, from the kernel's counters over an hour of rounds."""

from pathlib import Path

import pytest

from agent.loop import ReportLoop
from agent.node.link_flaps import MIN_DOWNS, WINDOW_S, FlapTracker, read_down_counts
from agent.node.sysfs import Sysfs
from agent.publish.directory import ReportFolder
from tests.agent.fakes import FakeRunner
from tests.agent.nodes import card, node_for, plant
from topology.model.facts import Medium, Port

MINUTE = 60.0
ETH = Port(name="eth0")
IB = Port(name="mlx5_0/1", medium=Medium.INFINIBAND)
NVLINK = Port(name="nvlink0", medium=Medium.NVLINK)


def write(root: Path, path: str, text: str) -> None:
    file = root / "class" / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


def flapping(*counts: int, step_s: float = MINUTE) -> list[tuple[str, ...]]:
    """Return the flapping ports after each round, from the counter of one port in each round."""
    flaps = FlapTracker()
    return [flaps.update({"eth0": count}, at * step_s) for at, count in enumerate(counts)]


@pytest.mark.parametrize(
    ("files", "port", "downs"),
    [
        pytest.param({"net/eth0/carrier_down_count": "7\n"}, ETH, 7, id="a count of downs"),
        pytest.param({"net/eth0/carrier_changes": "7\n"}, ETH, 3, id="changes, of which half"),
        pytest.param(
            {"net/eth0/carrier_down_count": "4\n", "net/eth0/carrier_changes": "2\n"},
            ETH,
            4,
            id="the downs before the changes",
        ),
        pytest.param(
            {"infiniband/mlx5_0/ports/1/counters/link_downed": "2\n"}, IB, 2, id="InfiniBand's own"
        ),
    ],
)
def test_it_reads_the_counter_of(
    tmp_path: Path, files: dict[str, str], port: Port, downs: int
) -> None:
    for path, text in files.items():
        write(tmp_path, path, text)
    assert read_down_counts(Sysfs(tmp_path), [port]) == {port.name: downs}


@pytest.mark.parametrize("port", [ETH, IB, NVLINK], ids=lambda port: port.medium.value)
def test_it_leaves_out_ports_without_a_counter(tmp_path: Path, port: Port) -> None:
    write(tmp_path, "net/eth0/address", "02:00:00:00:00:01\n")
    assert read_down_counts(Sysfs(tmp_path), [port]) == {}


def test_it_counts_nothing_from_before_the_first_round() -> None:
    assert flapping(200, 200) == [(), ()]


def test_it_names_a_port_that_went_down_often_enough() -> None:
    counts = range(10, 10 + MIN_DOWNS + 1)
    assert flapping(*counts) == [*[()] * MIN_DOWNS, ("eth0",)]


def test_it_sees_what_happened_between_two_rounds() -> None:
    assert flapping(0, MIN_DOWNS) == [(), ("eth0",)]


def test_it_forgets_after_an_hour() -> None:
    assert flapping(0, MIN_DOWNS, MIN_DOWNS, MIN_DOWNS, step_s=WINDOW_S / 2) == [
        (),
        ("eth0",),
        ("eth0",),
        (),
    ]


def test_it_takes_a_smaller_counter_as_reset() -> None:
    assert flapping(100, 1, 1 + MIN_DOWNS) == [(), (), ("eth0",)]


def test_it_remembers_a_port_that_is_missing_for_a_round() -> None:
    flaps = FlapTracker()
    flaps.update({"eth0": 0}, 0)
    flaps.update({"eth0": MIN_DOWNS}, MINUTE)
    assert flaps.update({}, 2 * MINUTE) == ("eth0",)


def test_it_sorts_the_names() -> None:
    flaps = FlapTracker()
    flaps.update({"b": 0, "a": 0}, 0)
    assert flaps.update({"b": MIN_DOWNS, "a": MIN_DOWNS}, MINUTE) == ("a", "b")


def test_a_running_agent_reports_flapping_ports_and_keeps_its_facts(tmp_path: Path) -> None:
    sysfs = plant(tmp_path / "sys", card("eth0", "0000:03:00.0", "b8:ce:f6:00:00:01"))
    folder = ReportFolder(tmp_path / "reports", "node01")
    folder.prepare()
    rounds = ReportLoop(node_for(sysfs, FakeRunner({})), folder)
    seen = []
    for downs in (5, 5, 5 + MIN_DOWNS):
        write(sysfs, "net/eth0/carrier_down_count", f"{downs}\n")
        rounds.tick()
        seen.append(folder.last_report())
    specs, told = {repr(one.spec) for one in seen if one}, [one and one.status for one in seen]
    assert [status and status.flapping for status in told] == [(), (), ("eth0",)]
    assert len(specs) == 1
