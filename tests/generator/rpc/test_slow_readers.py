"""Streams whose readers are slow, or whose server ends before they do."""

from __future__ import annotations

import logging

import grpc
import pytest
from google.protobuf.message import Message

from generator.placement.cluster.snapshot import build_snapshot
from generator.rpc import calls
from generator.rpc.messages.pages import STREAM_PART_BYTES
from generator.rpc.messages.requests import encode_request
from generator.rpc.published_state import MAX_TREES, PublishedState
from generator.rpc.status_errors import FailureKind
from generator.rpc.toponaut.v1 import placement_pb2 as pb
from generator.rpc.toponaut.v1 import topology_pb2 as tb
from tests.generator.rpc.clusters import place_message, request_for, snapshot_of, tree_of
from tests.generator.rpc.servers import SOON_S, Stubs, failed, serving
from tests.generator.rpc.trees import watch_trees

NUM_NEWER = MAX_TREES - 1
"""As many as a watch may miss: its last one is still stored."""


@pytest.fixture
def published() -> PublishedState:
    return PublishedState(snapshot_of(("a1", "a2"), ("b1", "b2", "b3")))


def test_it_sends_a_slow_reader_the_newest_tree(published: PublishedState) -> None:
    wide = [f"node-{number:0200}" for number in range(1500)]
    no_buffer = (("grpc.http2.bdp_probe", 0), ("grpc.http2.lookahead_bytes", 1 << 16))
    with serving(published) as server, grpc.insecure_channel(server.address, no_buffer) as channel:
        watch = watch_trees(Stubs(channel))
        next(watch)
        for number in range(NUM_NEWER):
            tree = tree_of((*wide, f"last-{number}"), ("b1",))
            published.snapshot = build_snapshot(tree, {})
        told = 0
        for seen in watch:
            told += 1
            if seen.tree == tree_of((*wide, f"last-{NUM_NEWER - 1}"), ("b1",)):
                break
    assert told < NUM_NEWER


def test_a_stream_that_nobody_reads_holds_one_small_message() -> None:
    leaves = [tuple(f"node-{leaf}-{at:0100}" for at in range(32)) for leaf in range(200)]
    published = PublishedState(snapshot_of(*leaves))
    gangs = [encode_request(request_for(8, gang=f"gang-{at}")) for at in range(400)]
    with serving(published) as server, grpc.insecure_channel(server.address) as channel:
        stubs = Stubs(channel)
        watch = stubs.topology.WatchTopology(tb.WatchTopologyRequest(), timeout=SOON_S)
        parts: list[Message] = []
        for part in watch:
            parts.append(part)
            if part.kind == tb.WATCH_KIND_SYNCED:
                break
        batch = iter([pb.PlaceBatchRequest(specs=gangs, explain=True)])
        answers = list(stubs.placement.PlaceBatch(batch, timeout=SOON_S))
    assert [answer.is_last for answer in answers] == [False] * (len(answers) - 1) + [True]
    assert sum(len(answer.placements) for answer in answers) == len(gangs)
    for messages in (parts, answers):
        assert len(messages) > 2
        assert max(message.ByteSize() for message in messages) < 1.2 * STREAM_PART_BYTES


def test_one_caller_that_reads_nothing_leaves_room_for_others(
    published: PublishedState, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(calls, "MAX_UNREAD_BYTES", 64 << 10)
    wide = [f"node-{number:0200}" for number in range(1500)]
    published.snapshot = snapshot_of(tuple(wide[:750]), tuple(wide[750:]))
    with serving(published) as server, grpc.insecure_channel(server.address) as channel:
        code, failure = failed(Stubs(channel).topology.WatchTopology, tb.WatchTopologyRequest())
        assert (code, failure.kind) == (grpc.StatusCode.RESOURCE_EXHAUSTED, FailureKind.OVERLOADED)
        code, failure = failed(Stubs(channel).topology.GetTopology, tb.GetTopologyRequest())
        assert (code, failure.kind) == (grpc.StatusCode.RESOURCE_EXHAUSTED, FailureKind.OVERLOADED)
        small = Stubs(channel).placement.Place(place_message(request_for(1)), timeout=SOON_S)
        assert small.placement.feasible


def test_it_wakes_no_call_after_its_end(
    published: PublishedState, caplog: pytest.LogCaptureFixture
) -> None:
    with serving(published) as server, grpc.insecure_channel(server.address) as channel:
        watch = Stubs(channel).topology.WatchTopology(tb.WatchTopologyRequest(), timeout=SOON_S)
        next(watch)
    with caplog.at_level(logging.WARNING):
        published.snapshot = snapshot_of(("c1",))
    assert not caplog.records
