"""Frames from the wire: the agent's own ears against real lldpd, and against crafted frames."""

import json
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from tests.lab.agents import AGENT
from tests.lab.lldp import LldpFabric
from tests.lab.sandbox import Sandbox
from tests.lab.tools import require_tools
from tests.lab.wait import wait_until
from tests.topology.sources.lldp.frames import CASES, read_frame
from tests.topology.sources.plain import case_id
from topology.model.facts import PortName
from topology.sources.lldp.lldpdu import GROUPS, parse_frame
from topology.synthetic.wiring import Cable

pytestmark = [pytest.mark.lab, pytest.mark.timeout(300), pytest.mark.xdist_group("frames")]

DEADLINE_S = 20
CABLES = {"eth0": "leaf1", "eth1": "leaf2"}
BOTH = {port: {leaf} for port, leaf in CABLES.items()}
SEND = """
import socket, sys
with socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as wire:
    wire.bind((sys.argv[1], 0))
    for frame in sys.argv[2:]:
        wire.send(bytes.fromhex(frame).ljust(60, b"\\0"))
"""
# Of these lldpd drops the frame: damaged behind what matters, or tagged twice.
MORE_TOLERANT = {"end-with-a-value", "short-optional-tlvs", "truncated-name", "vlan-tagged"}
TTL = re.compile(rb"\x06\x02\x00[\x78\x79]")
FIXED_MAC = bytes.fromhex("02aa00000011")
WITHOUT_RIGHT = ("setpriv", "--bounding-set", "-net_raw", "--inh-caps", "-net_raw")


@pytest.fixture(scope="module")
def fabric() -> Iterator[LldpFabric]:
    """Return a host on two leaves, with real daemons on all three."""
    require_tools("unshare", "nsenter", "ip", "lldpd", "lldpcli", is_root_needed=True)
    cables = [Cable(PortName("n1", port), PortName(leaf, "swp1")) for port, leaf in CABLES.items()]
    with TemporaryDirectory(prefix="lldp-") as folder, Sandbox() as sandbox:
        yield LldpFabric(sandbox, cables, switches=frozenset(CABLES.values()), folder=Path(folder))


def options(*more: str, listen: str = "2s") -> tuple[str, ...]:
    return ("--node-name", "n1", "--interfaces", "eth*", "--listen-for", listen, *more)


def once(fabric: LldpFabric, *more: str, before: tuple[str, ...] = ()) -> dict[str, Any]:
    """Return the report of one run on the host."""
    command = (*before, *AGENT, "once", "-o", "json", *options(*more))
    done = fabric.sandbox.run("sh", "-c", '"$@" || [ $? = 3 ]', "sh", *command, namespace="n1")
    report: dict[str, Any] = json.loads(done)["items"][0]
    return report


def told_by_lldpd(fabric: LldpFabric) -> dict[str, list[Any]]:
    socket = ("--lldpd-socket", str(fabric.socket("n1")))
    return neighbors_of(once(fabric, *socket, "--frames", "never"))


def neighbors_of(report: dict[str, Any]) -> dict[str, list[Any]]:
    return {port["name"]: port.get("neighbors", []) for port in report["spec"]["ports"]}


def names_of(report: dict[str, Any]) -> dict[str, set[str]]:
    found = neighbors_of(report)
    return {port: {one.get("name", "") for one in heard} for port, heard in found.items()}


def outcomes_of(report: dict[str, Any]) -> dict[str, str]:
    return {row["name"]: row["outcome"] for row in report["status"]["collectors"]}


@contextmanager
def sending(
    fabric: LldpFabric, port: PortName, frames: Iterable[bytes]
) -> Iterator[Callable[[], object]]:
    """Yield what sends frames from a port; their senders take their leave in the end."""
    frames = list(frames)

    def send(sent: list[bytes]) -> None:
        words = (sys.executable, "-c", SEND, port.port, *(frame.hex() for frame in sent))
        fabric.sandbox.run(*words, namespace=port.device)

    try:
        yield lambda: send(frames)
    finally:
        send([TTL.sub(b"\x06\x02\x00\x00", frame) for frame in frames])


def once_during(fabric: LldpFabric, send: Callable[[], object]) -> dict[str, Any]:
    """Return the report of one run on the host, during which frames are sent again and again."""
    with ThreadPoolExecutor(max_workers=1) as pool:
        running: Future[dict[str, Any]] = pool.submit(once, fabric, "--lldpcli", "/nowhere")
        while wait([running], timeout=0.3).not_done:
            send()
        return running.result()


def crafted() -> dict[str, bytes]:
    """Return the fixtures' frames, each of a sender of its own."""
    raw = {case_id(path): read_frame(path) for path in CASES}
    return {
        name: frame.replace(FIXED_MAC, FIXED_MAC[:-1] + bytes((0x80 + number,)))
        for number, (name, frame) in enumerate(raw.items())
        if frame[:6] in GROUPS and len(frame) > len(GROUPS[0]) * 3
    }


def test_it_hears_what_lldpd_hears(fabric: LldpFabric) -> None:
    heard = once(fabric, "--lldpcli", "/nowhere")
    assert names_of(heard) == BOTH
    assert neighbors_of(heard) == told_by_lldpd(fabric)
    assert outcomes_of(heard)["frames"] == "ok"


def test_it_hears_of_odd_frames_what_lldpd_hears(fabric: LldpFabric) -> None:
    frames = crafted()
    with sending(fabric, PortName("leaf1", "swp1"), frames.values()) as send:
        report = once_during(fabric, send)
        told = {json.dumps(one) for one in told_by_lldpd(fabric)["eth0"]}
    heard = {json.dumps(one) for one in neighbors_of(report)["eth0"]}
    pdus = {name: parse_frame(frame).pdu for name, frame in frames.items()}
    readable = {name for name, pdu in pdus.items() if pdu is not None and pdu.ttl_s}
    assert told <= heard
    assert len(heard - told) == len(MORE_TOLERANT)
    assert len(heard) == len(readable) + 1
    assert readable >= MORE_TOLERANT


@pytest.mark.long
def test_it_does_not_hear_what_its_own_node_sends(fabric: LldpFabric) -> None:
    own = crafted()["well-formed"].replace(b"leaf1", b"echo1")
    with sending(fabric, PortName("n1", "eth0"), [own]) as send:
        report = once_during(fabric, send)
    assert names_of(report)["eth0"] == {"leaf1"}


@pytest.mark.long
def test_it_hears_a_port_whose_bridge_takes_the_frames(fabric: LldpFabric) -> None:
    def ip(words: str) -> None:
        fabric.sandbox.run("ip", "-n", "n1", *words.split())

    ip("link add br0 type bridge group_fwd_mask 16384")
    ip("link set br0 up")
    ip("link set eth1 master br0")
    try:
        assert names_of(once(fabric, "--lldpcli", "/nowhere"))["eth1"] == {"leaf2"}
    finally:
        ip("link del br0")


def test_it_says_that_it_may_not_listen(fabric: LldpFabric) -> None:
    report = once(fabric, "--lldpcli", "/nowhere", before=WITHOUT_RIGHT)
    (row,) = (one for one in report["status"]["collectors"] if one["name"] == "frames")
    assert (row["outcome"], row["message"]) == (
        "no-data",
        "not allowed to capture frames: needs CAP_NET_RAW",
    )


class RunningAgent:
    """An agent on the host that publishes each second."""

    def __init__(self, fabric: LldpFabric, folder: Path, *more: str) -> None:
        self._path = folder / "reports" / "n1.yaml"
        words = ("--publish", str(folder / "reports"), "--period", "1s", "--jitter", "0s")
        command = (*AGENT, "run", *words, *options(*more, listen="1500ms"))
        fabric.sandbox.start(*command, namespace="n1", log=folder / "n1.log")

    def await_report(self, names: dict[str, set[str]], *, frames: str | None) -> None:
        """Wait until the report has these neighbors, and frames had this outcome."""

        def wrong() -> object:
            if not self._path.exists():
                return "no report"
            report = json.loads(self._path.read_text())
            seen = names_of(report), outcomes_of(report).get("frames")
            return None if seen == (names, frames) else seen

        wait_until(wrong, deadline_s=DEADLINE_S, what="the report follows")


@pytest.mark.long
def test_it_follows_cables_and_daemons(fabric: LldpFabric, tmp_path: Path) -> None:
    running = RunningAgent(fabric, tmp_path, "--lldpcli", "/nowhere")
    running.await_report(BOTH, frames="ok")
    with fabric.cutting(PortName("leaf2", "swp1")):
        running.await_report(BOTH | {"eth1": set()}, frames="ok")
    running.await_report(BOTH, frames="ok")
    with fabric.stopping("leaf1"):
        running.await_report(BOTH | {"eth0": set()}, frames="ok")
    running.await_report(BOTH, frames="ok")


@pytest.mark.long
def test_it_stands_in_for_lldpd_and_says_nothing_itself(fabric: LldpFabric, tmp_path: Path) -> None:
    running = RunningAgent(fabric, tmp_path, "--lldpd-socket", str(fabric.socket("n1")))
    running.await_report(BOTH, frames=None)
    with fabric.stopping("n1"):  # which settles: no leaf hears the host any more
        running.await_report(BOTH, frames="ok")
        fabric.settle()
    running.await_report(BOTH, frames=None)
