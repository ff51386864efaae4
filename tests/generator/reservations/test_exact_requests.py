"""Reservations of pods that request millicores: what is stored, hashed and held."""

from __future__ import annotations

import json
from typing import Any

import pytest

from generator.placement.cluster.nodes import NodeSpec
from generator.placement.cluster.snapshot import build_snapshot
from generator.placement.engine import place
from generator.reservations.phases import hash_request
from generator.reservations.records import (
    Reservation,
    ReservationRequest,
    parse_stored_reservation,
    render_reservation,
)
from tests.generator.placement.documents import racks, request, workers
from tests.generator.reservations.worlds import World, request_of
from topology.model.errors import ConfigError


def made(**need: Any) -> tuple[World, Reservation]:  # noqa: ANN401 - quantities
    nodes = {name: NodeSpec(name, {"slots": 1, "cpu": 63_850}) for name in ("n0", "n1")}
    world = World(build_snapshot(racks(2), nodes))
    return world, world.made(groups=[{"name": "w", "count": 8, "request": need}], required="node")


def stored(reservation: Reservation) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(json.dumps(render_reservation(reservation)))
    return document


@pytest.mark.parametrize(
    ("quantity", "row"),
    [
        pytest.param(7, {"request": {"cpu": 7}}, id="whole cores as before"),
        pytest.param(
            "7900m",
            {"request": {"cpu": 8}, "exactRequest": {"cpu": "7900m"}},
            id="millicores, rounded up for readers of earlier versions",
        ),
    ],
)
def test_it_stores(quantity: int | str, row: dict[str, Any]) -> None:
    _, reservation = made(cpu=quantity)
    document = stored(reservation)
    (group,) = document["spec"]["groups"]
    assert {key: group[key] for key in group if "equest" in key} == row
    assert parse_stored_reservation(document) == reservation


def test_it_reads_a_reservation_of_an_earlier_version_in_cores() -> None:
    _, reservation = made(cpu="7900m")
    document = stored(reservation)
    del document["spec"]["groups"][0]["exactRequest"]
    found = parse_stored_reservation(document)
    assert found is not None
    assert found.groups[0].request == (("cpu", 8000),)


@pytest.mark.parametrize("row", [{"cpu": "7.9"}, {"cpu": "9" * 16 + "m"}], ids=repr)
def test_it_refuses_a_stored_quantity(row: dict[str, str]) -> None:
    _, reservation = made(cpu="7900m")
    document = stored(reservation)
    document["spec"]["groups"][0]["exactRequest"] = row
    with pytest.raises(ConfigError):
        parse_stored_reservation(document)


def test_it_holds_what_the_pods_request_and_no_more() -> None:
    world, _ = made(cpu="7900m")
    (left, lacking) = (
        request_of("ns/b", groups=[{"name": "w", "count": 1, "request": {"cpu": f"{rest}m"}}])
        for rest in (650, 651)
    )
    snapshot = world.ledger.snapshot
    assert snapshot is not None
    one_node = build_snapshot(
        racks(1), {"n0": snapshot.specs[0]}, nominated=tuple(snapshot.nominated.values())
    )
    assert place(one_node, left).is_feasible
    assert not place(one_node, lacking).is_feasible


@pytest.mark.parametrize(
    ("row", "digest"),
    [
        (
            {"request": {"slots": 2}},
            "20dee476e96bb9a74a9af27db2c2a67ccd510a81fc7d01644a0ee7a320f109f2",
        ),
        (
            {"request": {"cpu": 8, "memory": 1024}},
            "5e1458d166bc7fff6e0b0028745ec4847633f1143ed5a04a3e90b4a1a92b2ecc",
        ),
        (
            {"tolerations": ["gpu=yes", "gpu"]},
            "452e4c2b2487485223ae2ac4c5257cd0a3ea8c05aa78237b2e755d62d6c14303",
        ),
    ],
    ids=["slots", "whole cores", "tolerations as text"],
)
def test_a_repeated_request_of_an_earlier_version_has_the_same_hash(
    row: dict[str, Any], digest: str
) -> None:
    asked = request(groups=workers(2, **row))
    reservation_id = "4a0e1b52-7c1d-4f6e-9b8a-000000000001"
    assert hash_request(ReservationRequest(reservation_id, "me", asked, 60)) == digest


def test_requests_that_differ_by_a_millicore_have_different_hashes() -> None:
    hashes = {
        hash_request(
            ReservationRequest("x", "me", request(groups=workers(2, request={"cpu": text})), 60)
        )
        for text in ("7900m", "7901m", "8")
    }
    assert len(hashes) == 3
