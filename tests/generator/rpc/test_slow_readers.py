"""Streams whose readers are slow, or whose server ends before they do."""

from __future__ import annotations

import logging

import grpc
import pytest

from generator.placement.cluster.snapshot import build_snapshot
from generator.rpc.client.typed_client import TopologyClient
from generator.rpc.published_state import PublishedState
from generator.rpc.toponaut.v1 import topology_pb2 as tb
from tests.generator.rpc.clusters import snapshot_of, tree_of
from tests.generator.rpc.servers import SOON_S, Stubs, serving


@pytest.fixture
def published() -> PublishedState:
    return PublishedState(snapshot_of(("a1", "a2"), ("b1", "b2", "b3")))


def test_it_sends_a_slow_reader_the_newest_tree(published: PublishedState) -> None:
    wide = [f"node-{number:0200}" for number in range(1500)]
    with serving(published) as server, TopologyClient(server.address, SOON_S) as client:
        watch = client.watch(SOON_S)
        next(watch)
        for number in range(30):
            tree = tree_of((*wide, f"last-{number}"), ("b1",))
            published.snapshot = build_snapshot(tree, {})
        told = 0
        for seen in watch:
            told += 1
            if seen.tree == tree_of((*wide, "last-29"), ("b1",)):
                break
        watch.close()
    assert told < 30


def test_it_wakes_no_call_after_its_end(
    published: PublishedState, caplog: pytest.LogCaptureFixture
) -> None:
    with serving(published) as server, grpc.insecure_channel(server.address) as channel:
        watch = Stubs(channel).topology.WatchTopology(tb.WatchTopologyRequest(), timeout=SOON_S)
        next(watch)
    with caplog.at_level(logging.WARNING):
        published.snapshot = snapshot_of(("c1",))
    assert not caplog.records
