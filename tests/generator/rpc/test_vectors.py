"""A vector has the same answer over a real connection as in process."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import pytest

from generator.placement.cluster.nodes import RunningGang
from generator.placement.cluster.snapshot import Snapshot, without_running
from generator.placement.engine import place
from generator.placement.request import parse_request
from generator.rpc.client import PlacementClient
from generator.rpc.published_state import PublishedState
from generator.rpc.server import PlacementServer
from tests.vectors.scenes import document_of, snapshot_of
from tests.vectors.test_vectors import VECTORS

SOON_S = 60.0
PUBLISHED = PublishedState()


@pytest.fixture(scope="module")
def client() -> Iterator[PlacementClient]:
    server = PlacementServer("127.0.0.1:0", PUBLISHED)
    with PlacementClient(server.address, SOON_S) as made:
        yield made
    server.stop(deadline_s=0)


SENT = {vector["request"]["preset"]: vector for vector in VECTORS}
"""One for each preset: `tests/vectors` judges all of them, and the laws of messages every field."""


@pytest.mark.parametrize("vector", SENT.values(), ids=lambda vector: vector["id"])
def test_it_answers_as_in_process(client: PlacementClient, vector: dict[str, Any]) -> None:
    PUBLISHED.snapshot = snapshot = snapshot_of(vector)
    expected = place(snapshot, parse_request(document_of(vector))).render()
    assert client.place(document_of(vector)).render() == expected


GROWING = [
    vector
    for vector in VECTORS
    for gang in vector.get("running", ())
    if gang["gang"] == vector["request"].get("gang", "self")
]


@pytest.mark.parametrize("vector", GROWING, ids=lambda vector: vector["id"])
def test_it_places_new_pods_near_reported_running_pods(
    client: PlacementClient, vector: dict[str, Any]
) -> None:
    request = parse_request(document_of(vector))
    whole = snapshot_of(vector)
    gang = whole.running[request.gang]
    PUBLISHED.snapshot = without_running(whole, request.gang)
    expected = place(whole, request).render()
    document = document_of(vector)
    assert client.place(document, gang, take_running=True).render() == expected
    PUBLISHED.snapshot = replace(whole, running=MappingProxyType(_others(whole, request.gang)))
    assert client.place(document, gang).render() == expected


def _others(snapshot: Snapshot, gang: str) -> dict[str, RunningGang]:
    return {name: row for name, row in snapshot.running.items() if name != gang}
