"""Cables of ports whose interfaces pods own: unknown, not missing."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.topology.cables import claims, hosts, infer_cables, of_kind, star
from topology.model.claims import Claim
from topology.model.facts import FindingKind, Port, PortState, Severity
from topology.model.ids import IdKind

RAILS = [*star("leaf1", hosts(1, 6), "eth0"), *star("leaf2", hosts(1, 6), "eth1")]
LEAVES = ("leaf1", "leaf2")


def hide(claim: Claim, *names: str, is_named_by_rdma: bool) -> Claim:
    """Return the report of a host whose ports are known by their RDMA devices, or are just deaf."""
    ports = tuple(
        port
        if port.name not in names
        else Port(
            f"mlx5_{number}/1" if is_named_by_rdma else port.name,
            tuple(id_ for id_ in port.ids if id_.kind is IdKind.MAC),
            state=PortState.UNKNOWN,
            rdma_device=f"mlx5_{number}",
        )
        for number, port in enumerate(claim.device.ports)
    )
    return replace(claim, device=replace(claim.device, ports=ports))


@pytest.mark.parametrize("names", [("eth0", "eth1"), ("eth1",)], ids=["all ports", "one port"])
@pytest.mark.parametrize("is_named_by_rdma", [True, False], ids=["of a pod", "deaf"])
def test_a_missing_link_says_whether_it_is_only_unknown(
    names: tuple[str, ...], *, is_named_by_rdma: bool
) -> None:
    own = [
        hide(claim, *names, is_named_by_rdma=is_named_by_rdma)
        if claim.device.name == "h06"
        else claim
        for claim in claims(RAILS, silent=LEAVES)
    ]
    found = of_kind(infer_cables([], more=own).findings, FindingKind.MISSING_LINK)
    (finding,) = [one for one in found if one.device == "h06"]
    assert ("another network namespace" in finding.message) is is_named_by_rdma
    assert ("Check the cable" in finding.message) is not is_named_by_rdma
    assert finding.severity is (Severity.INFO if is_named_by_rdma else Severity.WARNING)
    assert len(finding.ports) == len(names)
