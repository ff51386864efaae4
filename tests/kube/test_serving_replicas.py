"""Replicas and a server that come and go: one replica writes, all answer, nothing is lost."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from generator.cli.exit_codes import ExitCode
from generator.kube.resources import HYPERNODES
from generator.rpc.client import PlacementClient
from tests.generator.rpc.clusters import request_for
from tests.generator.scenes import PAIRS, Scene
from tests.kube.conftest import connecting
from tests.kube.observers import Observer
from tests.kube.proxy import Fault, FaultProxy
from tests.kube.servers import DEADLINE_S, Cluster, Generator, serving
from tests.lab.api_server import ApiServer

pytestmark = [pytest.mark.lab, pytest.mark.timeout(300), pytest.mark.xdist_group("kube serving")]

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
MANY = replace(PAIRS, num_hosts=48)


@pytest.fixture
def cluster(other_api: ApiServer, tmp_path: Path) -> Iterator[Cluster]:
    made = Cluster(other_api, Scene.of(tmp_path / "scene", PAIRS))
    yield made
    other_api.revive()
    made.clear()


def can_place(generator: Generator) -> bool:
    with PlacementClient(generator.address, DEADLINE_S) as client:
        group = {"name": "w", "count": 2, "required": "leaf", "request": {"nvidia.com/gpu": 8}}
        return client.place(request_for(2, groups=[group])).is_feasible


def test_it_answers_from_every_replica_and_passes_leadership_on(
    cluster: Cluster, tmp_path: Path
) -> None:
    with serving(cluster, tmp_path) as first:
        cluster.await_tree()
        with serving(cluster, tmp_path) as second:
            second.await_event("tree published")
            assert can_place(first)
            assert can_place(second)
            assert "leadership gained" not in second.events
            before = cluster.num_writes()
            assert cluster.holder().startswith(first.name)
            assert first.stop() == ExitCode.OK
            assert not cluster.holder().startswith(first.name), "the lease is released"
            second.await_event("leadership gained")
            assert cluster.writes(before) == []
            cluster.api.expect("DELETE", HYPERNODES.path(min(cluster.hypernodes())))
            cluster.await_tree()
            assert second.stop() == ExitCode.OK
    assert cluster.holder() == ""


@pytest.mark.long
def test_a_successor_finishes_the_plan_of_a_killed_leader(
    other_api: ApiServer, tmp_path: Path
) -> None:
    small = Scene.of(tmp_path / "small", MANY)
    large = Scene.of(tmp_path / "large", replace(MANY, radix=16))
    assert small.hosts == large.hosts
    cluster = Cluster(other_api, small)
    cluster.want(changeBudget={"nodesPercent": 100, "domainsPercent": 100})
    with (
        connecting(other_api) as transport,
        FaultProxy(other_api) as proxy,
        serving(cluster, tmp_path, proxy=proxy) as first,
        serving(cluster, tmp_path, proxy=proxy) as second,
    ):
        cluster.await_tree()
        before = cluster.versions()
        leader = first if cluster.holder().startswith(first.name) else second
        observer = Observer(transport)
        with observer.watching():
            proxy.plague("^(PATCH|DELETE) .*/hypernodes/", Fault(delay_s=0.4))
            cluster.report(large)
            cluster.await_that(lambda: observer.num_events >= 3, "the plan has begun")
            leader.kill()
            begun = observer.num_events
            assert cluster.versions() != before
            proxy.relent()
            cluster.await_tree(large)
            assert observer.num_events > begun + 3, "most was left to the successor"
        assert observer.dangling == []
    cluster.clear()
