"""Kills and stops of a generator that writes to a real server, and kills of the server itself.

A watch like a scheduler's is the referee.

After every single event of the watch, and in every list after a restart, no parent names a missing
child, no HyperNode has two parents, and no node is in two leaves. In the end the HyperNodes are
those of a run that nobody interrupted, names included.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, suppress
from http.client import HTTPException
from pathlib import Path
from random import Random
from signal import SIGKILL

import pytest

from generator.cli.exit_codes import ExitCode
from generator.kube.credentials import find_credentials
from generator.kube.lease_record import LEASE_NAME
from generator.kube.resources import LEASES
from generator.kube.transport import KubeTransport
from generator.outputs.hypernode.model import HyperNode
from tests.effort import IS_ALL, first_of
from tests.generator.scenes import Scene
from tests.generator.server.days import Day
from tests.kube.conftest import WRITER, connecting
from tests.kube.observers import Observer
from tests.kube.proxy import Fault, FaultProxy
from tests.kube.servers import Cluster, serving
from tests.lab.api_server import ApiServer
from tests.lab.wait import wait_until
from tests.topology.synthetic.fabrics import swap
from topology.model.errors import KubeUnavailable
from topology.model.facts import Medium
from topology.synthetic import FabricKind, SyntheticSpec

pytestmark = [pytest.mark.lab, pytest.mark.timeout(600), pytest.mark.xdist_group("kube serving")]

FABRIC = SyntheticSpec(FabricKind.DUAL_HOMED, 64, radix=16, medium=Medium.ETHERNET)
"""64 hosts, eight on each pair of leaves."""
ON_LEAF, NUM_MOVED = 8, 3
AFTER_RESTART_S = 240
RETRY_AFTER_S = 1
"""A server that starts asks its clients to wait for up to 30 s, once for each kind."""
BUDGET = {"nodesPercent": 100, "domainsPercent": 100}


@pytest.fixture
def cluster(other_api: ApiServer, tmp_path: Path) -> Iterator[Cluster]:
    made = Cluster(other_api, Scene.of(tmp_path / "scene", FABRIC))
    made.want(changeBudget=BUDGET)
    yield made
    made.clear()


def recabled(scene: Scene) -> Scene:
    """Return the scene with three hosts of every leaf moved, each to another leaf."""
    leaves = [scene.hosts[at : at + ON_LEAF] for at in range(0, len(scene.hosts), ON_LEAF)]
    found = scene.damaged
    for row in range(NUM_MOVED):
        for first, second in zip(
            leaves[::2], leaves[1 + 2 * row :: 2] + leaves[1::2], strict=False
        ):
            for port in ("eth0", "eth1"):
                found = swap(found, (first[row], port), (second[row], port))
    return Scene(scene.root, found)


def write_undisturbed(root: Path, *scenes: Scene) -> dict[str, HyperNode]:
    """Return what a generator writes into a folder for one scene after the other."""
    day = Day(root, FABRIC)
    for scene in scenes:
        scene.store()
        day.want(changeBudget=BUDGET)
        for _ in range(3):
            day.tick()
    return {one.name: one for one in day.store.read_hypernodes().values}


@pytest.mark.parametrize("seed", first_of(range(4)))
def test_kills_at_any_write_leave_a_valid_cluster_and_the_same_end(
    cluster: Cluster, tmp_path: Path, seed: int
) -> None:
    random = Random(seed)  # noqa: S311 - it chooses when to kill
    moved = recabled(cluster.scene)
    with serving(cluster, tmp_path):
        cluster.await_tree()
    before = cluster.hypernodes()
    access = find_credentials(
        kubeconfig=str(cluster.api.kubeconfig(WRITER)), context=None, environ={}
    )
    with closing(KubeTransport(access)) as transport:
        observer = Observer(transport)
        with observer.watching():
            cluster.report(moved)
            kills = kill_until_done(cluster, observer, moved, random, most=99 if IS_ALL else 3)
            cluster.await_tree(moved)
    assert kills > 1
    assert (observer.dangling, observer.doubled) == ([], [])
    root = tmp_path / "folder"
    first, second = (Scene(root, scene.damaged) for scene in (cluster.scene, moved))
    assert write_undisturbed(root, first) == before
    assert write_undisturbed(root, first, second) == cluster.hypernodes()


@pytest.mark.long
def test_a_stop_signal_ends_the_writes_between_two_of_them(
    cluster: Cluster, tmp_path: Path
) -> None:
    moved = recabled(cluster.scene)
    with connecting(cluster.api) as transport, FaultProxy(cluster.api) as proxy:
        with serving(cluster, tmp_path, proxy=proxy) as running:
            cluster.await_tree()
            observer = Observer(transport)
            with observer.watching():
                proxy.plague("^PATCH .*/hypernodes/", Fault(delay_s=1.0))
                cluster.report(moved)
                cluster.await_that(lambda: observer.num_events, "the plan has begun")
                assert running.stop() == ExitCode.OK
                stopped_after = observer.num_events
                assert running.events[-1] == "generator stopped"
                assert "writing hypernodes stopped" in running.events
                assert cluster.holder() == ""
                assert not cluster.is_cabled(moved)
                with serving(cluster, tmp_path):
                    cluster.await_tree(moved)
        assert observer.num_events > stopped_after
        assert (observer.dangling, observer.doubled) == ([], [])


@pytest.mark.parametrize("seed", first_of(range(4)))
def test_kills_of_the_server_at_any_write_leave_a_valid_cluster_and_the_same_end(
    cluster: Cluster, tmp_path: Path, seed: int
) -> None:
    random = Random(seed)  # noqa: S311 - it chooses when to kill
    moved = recabled(cluster.scene)
    with serving(cluster, tmp_path):
        cluster.await_tree()
    cluster.api.request("DELETE", LEASES.path(LEASE_NAME, namespace=cluster.namespace))
    cluster.report(moved)
    with (
        FaultProxy(cluster.api, retry_after_s=RETRY_AFTER_S) as proxy,
        serving(cluster, tmp_path, proxy=proxy) as running,
    ):
        kills = kill_server_until_done(cluster, moved, random, most=4 if IS_ALL else 1)
        wait_until(
            lambda: None if cluster.is_cabled(moved) else cluster.state(),
            deadline_s=AFTER_RESTART_S,
            what="HyperNodes as cabled",
        )
        assert running.program.poll() is None
    assert kills
    root = tmp_path / "folder"
    first, second = (Scene(root, scene.damaged) for scene in (cluster.scene, moved))
    assert write_undisturbed(root, first, second) == cluster.hypernodes()


def await_observer(transport: KubeTransport) -> Observer:
    """Return an observer once the server lists HyperNodes; after a start it first refuses to."""
    found: list[Observer] = []

    def observe() -> str | None:
        try:
            found.append(Observer(transport))
        except KubeUnavailable as error:
            return str(error)
        return None

    wait_until(observe, deadline_s=AFTER_RESTART_S, what="the server lists HyperNodes")
    return found[-1]


def kill_server_until_done(cluster: Cluster, goal: Scene, random: Random, *, most: int) -> int:
    """Kill the server while HyperNodes are written, at most so often; return how often."""
    access = find_credentials(
        kubeconfig=str(cluster.api.kubeconfig(WRITER)), context=None, environ={}
    )
    for kills in range(most):
        due = random.randint(1, 6)
        with closing(KubeTransport(access)) as transport:
            observer = await_observer(transport)

            def kill(num: int, observer: Observer = observer, due: int = due) -> None:
                if num == due:
                    observer.is_server_killed = True
                    cluster.api.stop(SIGKILL)

            observer.on_event = kill
            with observer.watching():
                await_kill(cluster, observer, goal)
            assert (observer.dangling, observer.doubled) == ([], [])
        if not observer.is_server_killed:
            return kills
        cluster.api.restart()
    return most


def await_kill(cluster: Cluster, observer: Observer, goal: Scene) -> None:
    """Wait until the server is killed, or all is written."""

    def is_running() -> bool:
        # The server may be killed while it is asked.
        with suppress(OSError, HTTPException):
            return not (observer.is_server_killed or cluster.is_cabled(goal))
        return True

    wait_until(is_running, deadline_s=AFTER_RESTART_S, what="a kill, or the end")


def kill_until_done(
    cluster: Cluster, observer: Observer, goal: Scene, random: Random, *, most: int
) -> int:
    """Kill generators while they write, until one writes all that is left; return how many."""
    for kills in range(most + 1):
        cluster.api.request("DELETE", LEASES.path(LEASE_NAME, namespace=cluster.namespace))
        due = observer.num_events + random.randint(1, 12) if kills < most else 0
        with serving(cluster, goal.root) as running:

            def kill(num: int, due: int = due) -> None:
                if num == due:
                    running.program.kill()

            observer.on_event = kill
            cluster.await_that(
                lambda: running.program.poll() is not None or cluster.is_cabled(goal),
                "a kill, or the end",
            )
            observer.on_event = lambda _num: None
            if running.program.poll() is None:
                return kills
    raise AssertionError
