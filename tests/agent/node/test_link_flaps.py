"""Flapping ports, from the kernel's counters over an hour of rounds.

A read of `link_downed` has effects: where the firmware refuses it, the kernel logs an error. So a
reader that counts stands in for the firmware.
"""

from __future__ import annotations

import errno
import os
from collections import Counter as Tally
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from agent.loop import ReportLoop
from agent.node.link_flaps import (
    MIN_DOWNS,
    READ_EVERY_S,
    WINDOW_S,
    Counter,
    DownCounters,
    FlapTracker,
)
from agent.node.sysfs import Sysfs
from agent.publish.directory import ReportFolder
from tests.agent.fakes import FakeRunner
from tests.agent.nodes import card, node_for, plant
from topology.model.facts import Medium, Port, PortState

MINUTE = 60.0
ETH = Port(name="eth0")
IB = Port(name="mlx5_0/1", medium=Medium.INFINIBAND, state=PortState.UP)
NVLINK = Port(name="nvlink0", medium=Medium.NVLINK)
LINK_DOWNED = "infiniband/mlx5_0/ports/1/counters/link_downed"
IPOIB = {
    "infiniband/mlx5_0/device/net/ib0": "",
    "net/ib0/type": "32\n",
    "net/ib0/carrier": "1\n",
    "net/ib0/dev_port": "0\n",
    "net/ib0/carrier_down_count": "9\n",
}


def write(root: Path, path: str, text: str) -> None:
    file = root / "class" / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


def flapping(*counts: int, step_s: float = MINUTE) -> list[tuple[str, ...]]:
    """Return the flapping ports after each round, from the counter of one port in each round."""
    flaps = FlapTracker()
    return [
        flaps.update({Counter("eth0", "f"): count}, at * step_s) for at, count in enumerate(counts)
    ]


@dataclass
class Firmware:
    """Answers reads of counters, and counts them."""

    answers: Mapping[str, str | int]
    """By path: the text, or the number of the error."""
    reads: Tally[str] = field(default_factory=Tally)

    def __call__(self, path: str) -> str:
        """Return the text of a counter, or raise its error."""
        self.reads[path] += 1
        answer = self.answers[path]
        if isinstance(answer, int):
            raise OSError(answer, os.strerror(answer), path)
        return answer


def hours(counters: DownCounters, *ports: Port, rounds: int = 60) -> list[dict[Counter, int]]:
    """Return what each of so many rounds of a minute reads."""
    return [counters.read(ports, at * MINUTE) for at in range(rounds)]


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
        pytest.param({LINK_DOWNED: "2\n"}, IB, 2, id="InfiniBand's own"),
        pytest.param(
            {LINK_DOWNED: "2\n", **IPOIB}, IB, 2, id="InfiniBand's own before that of IPoIB"
        ),
        pytest.param({LINK_DOWNED: "N/A (no PMA)\n", **IPOIB}, IB, 9, id="IPoIB without a PMA"),
        pytest.param(IPOIB, IB, 9, id="IPoIB without counters"),
        pytest.param(IPOIB | {"net/ib0/dev_port": "1\n"}, IB, 0, id="no IPoIB of another port"),
        pytest.param(IPOIB | {"net/ib0/type": "1\n"}, IB, 0, id="no Ethernet of the same card"),
        pytest.param(IPOIB | {"net/ib0/carrier": ""}, IB, 0, id="no IPoIB that is switched off"),
    ],
)
def test_it_reads_the_counter_of(
    tmp_path: Path, files: dict[str, str], port: Port, downs: int
) -> None:
    for path, text in files.items():
        write(tmp_path, path, text)
    ((counter, count),) = DownCounters(Sysfs(tmp_path)).read([port], 0).items()
    assert (counter.port, count) == (port.name, downs)


@pytest.mark.parametrize("port", [ETH, NVLINK], ids=lambda port: port.medium.value)
def test_it_leaves_out_ports_without_a_counter(tmp_path: Path, port: Port) -> None:
    write(tmp_path, "net/eth0/address", "02:00:00:00:00:01\n")
    assert DownCounters(Sysfs(tmp_path)).read([port], 0) == {}


@pytest.mark.parametrize(
    "code",
    [
        errno.EINVAL,
        errno.EOPNOTSUPP,
        errno.EIO,
        errno.EACCES,
        errno.EREMOTEIO,
        errno.ENODATA,
        errno.ETIMEDOUT,
        errno.EBUSY,
    ],
    ids=errno.errorcode.__getitem__,
)
def test_it_reads_a_refused_counter_once_in_all_rounds(tmp_path: Path, code: int) -> None:
    write(tmp_path, LINK_DOWNED, "0\n")
    firmware = Firmware({f"class/{LINK_DOWNED}": code})
    counters = DownCounters(Sysfs(tmp_path), firmware)
    hours(counters, IB, rounds=600)
    assert firmware.reads == {f"class/{LINK_DOWNED}": 1}
    assert counters.refused == (f"class/{LINK_DOWNED}",)


def test_it_reads_a_refused_counter_again_after_the_driver_was_bound_again(tmp_path: Path) -> None:
    write(tmp_path, LINK_DOWNED, "0\n")
    firmware = Firmware({f"class/{LINK_DOWNED}": errno.EINVAL})
    counters = DownCounters(Sysfs(tmp_path), firmware)
    hours(counters, IB)
    old = tmp_path / "class" / LINK_DOWNED
    old.rename(old.with_name("kept"))  # so that the new file cannot have its inode
    assert counters.read([IB], 3600.0) == {Counter(IB.name, "state"): 0}
    write(tmp_path, LINK_DOWNED, "0\n")
    firmware.answers = {f"class/{LINK_DOWNED}": "200"}
    assert counters.read([IB], 3660.0) == {Counter(IB.name, f"class/{LINK_DOWNED}"): 200}
    assert counters.refused == ()


def test_it_asks_the_firmware_every_few_minutes_and_answers_from_memory_between(
    tmp_path: Path,
) -> None:
    write(tmp_path, LINK_DOWNED, "4\n")
    firmware = Firmware({f"class/{LINK_DOWNED}": "4"})
    found = hours(DownCounters(Sysfs(tmp_path), firmware), IB)
    assert [set(row.values()) for row in found] == [{4}] * 60
    assert firmware.reads.total() == 60 * MINUTE / READ_EVERY_S


def test_a_refusal_of_one_port_does_not_concern_the_others(tmp_path: Path) -> None:
    other = IB._replace(name="mlx5_9/1")
    free = LINK_DOWNED.replace("mlx5_0", "mlx5_9")
    for path in (LINK_DOWNED, free):
        write(tmp_path, path, "0\n")
    firmware = Firmware({f"class/{LINK_DOWNED}": errno.EINVAL, f"class/{free}": "1"})
    counters = DownCounters(Sysfs(tmp_path), firmware)
    assert [set(row.values()) for row in hours(counters, IB, other)] == [{0, 1}] * 60
    assert counters.refused == (f"class/{LINK_DOWNED}",)


def test_a_port_with_a_refused_counter_flaps_by_its_state(tmp_path: Path) -> None:
    write(tmp_path, LINK_DOWNED, "0\n")
    counters = DownCounters(Sysfs(tmp_path), Firmware({f"class/{LINK_DOWNED}": errno.EINVAL}))
    flaps = FlapTracker()
    states = [PortState.UP, PortState.DOWN, PortState.UNKNOWN, PortState.UP] * MIN_DOWNS
    seen = [
        flaps.update(counters.read([IB._replace(state=state)], at * MINUTE), at * MINUTE)
        for at, state in enumerate(states)
    ]
    assert seen[0] == ()
    assert seen[-1] == (IB.name,)


def test_a_counter_that_replaces_another_is_no_loss() -> None:
    flaps = FlapTracker()
    flaps.update({Counter("eth0", "state"): 0}, 0)
    assert flaps.update({Counter("eth0", "file"): 200}, MINUTE) == ()


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
    flaps.update({Counter("eth0", "f"): 0}, 0)
    flaps.update({Counter("eth0", "f"): MIN_DOWNS}, MINUTE)
    assert flaps.update({}, 2 * MINUTE) == ("eth0",)


def test_it_sorts_the_names() -> None:
    flaps = FlapTracker()
    flaps.update({Counter("b", "f"): 0, Counter("a", "f"): 0}, 0)
    lost = {Counter("b", "f"): MIN_DOWNS, Counter("a", "f"): MIN_DOWNS}
    assert flaps.update(lost, MINUTE) == ("a", "b")


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


def test_a_running_agent_logs_a_refused_counter_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    device = "infiniband/mlx5_0"
    for file, text in (("node_guid", "b83f:d203:0000:0001"), ("ports/1/link_layer", "InfiniBand")):
        write(tmp_path, f"{device}/{file}", text)
    (tmp_path / "class" / LINK_DOWNED).mkdir(parents=True)  # answers a read with EISDIR
    folder = ReportFolder(tmp_path / "reports", "node01")
    folder.prepare()
    rounds = ReportLoop(node_for(tmp_path, FakeRunner({})), folder)
    with caplog.at_level("INFO"):
        for _ in range(3):
            rounds.tick()
    told = [row for row in caplog.records if row.message.startswith("counter refused")]
    assert [getattr(row, "file", None) for row in told] == [f"class/{LINK_DOWNED}"]
