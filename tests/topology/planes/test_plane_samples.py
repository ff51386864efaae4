"""What the default makes of networks that real devices told of.

| sample | networks in it |
|---|---|
| superpod | compute alone: the management hosts are on its spines, not on a network of their own |
| selene | one network, which is storage's; alone it is what there is |
| ufm_small | two switches of two generations, cabled to each other: one network |
| own16 | one network of captures, without rates |

So the default finds one network in each, and where people know better a policy says it.
"""

import pytest

from generator.ingest.sources import read_captures
from tests.shared_samples import SAMPLES, needs_samples
from topology.inference.tree_inference import infer_tree
from topology.join.fabric_join import build_fabric
from topology.model.claims import Claim, Origin
from topology.model.facts import FindingKind
from topology.planes.plane import PlaneSplit, split_planes
from topology.planes.policy import COMPUTE, PlanePolicy, PortRule, PlaneReason
from topology.sources.ibnetdiscover.parser import parse_ibnetdiscover

pytestmark = needs_samples

SUPERPOD, SELENE = "superpod-dgxa100_hdr.txt", "selene-storage_hdr-edr.txt"
MANAGED = PlanePolicy("management", (PortRule(hosts=("*-mgmt*", "*-ufm*")),))
STAGE, ONE_SWITCH = "stage_fdr10.txt", "ompi-list-2009_no-rates.txt"
OF_STAGE = PlanePolicy("storage", (PortRule(switches=("ib?",)),))


def split_dump(*names: str, policies: tuple[PlanePolicy, ...] = ()) -> PlaneSplit:
    claims = [
        Claim(device, Origin.SWEEP)
        for name in names
        for device in parse_ibnetdiscover(
            (SAMPLES / "ibnetdiscover" / name).read_bytes(), source=name
        ).devices
    ]
    return split_planes(build_fabric(claims), policies)


@pytest.mark.parametrize(
    ("name", "num_hosts", "num_ports"),
    [
        pytest.param(SUPERPOD, 150, 1130, id="with management hosts on its spines"),
        pytest.param(SELENE, 629, 1247, id="of storage alone"),
        pytest.param("ufm_small_hdr-fdr.txt", 5, 12, id="of two generations"),
        pytest.param("topograph_ndr_dgx.txt", 194, 542, id="with hosts that nobody named"),
    ],
)
def test_it_finds_one_network_in_a_fabric(name: str, num_hosts: int, num_ports: int) -> None:
    split = split_dump(name)
    assert split.names == (COMPUTE,)
    plane = split.plane(COMPUTE)
    assert len(plane.ports) == num_ports
    assert len({edge.a for edge in plane.host_edges}) == num_hosts
    assert {share.reason for share in split.port_planes.values()} == {PlaneReason.RDMA}


def test_it_finds_one_network_in_captures_without_rates() -> None:
    claims, _ = read_captures(SAMPLES / "fabric" / "own16")
    split = split_planes(build_fabric(claims))
    assert split.names == (COMPUTE,)
    assert len(split.plane(COMPUTE).switches) == 4


def test_it_sets_management_hosts_apart_where_a_policy_names_them() -> None:
    split = split_dump(SUPERPOD, policies=(MANAGED,))
    assert split.names == (COMPUTE, "management")
    assert len({edge.a for edge in split.plane("management").host_edges}) == 10
    found = infer_tree(split.fabric, plane=split.plane(COMPUTE))
    assert len(found.tree.nodes) == 140
    assert not [one for one in found.findings if one.kind is FindingKind.HOST_ON_SPINE]


def test_it_gives_two_fabrics_the_trees_that_each_has_alone() -> None:
    both = split_dump(STAGE, ONE_SWITCH, policies=(OF_STAGE,))
    assert both.names == (COMPUTE, "storage")
    for plane, name in ((COMPUTE, ONE_SWITCH), ("storage", STAGE)):
        alone = split_dump(name)
        expected = infer_tree(alone.fabric, plane=alone.plane(COMPUTE)).tree
        tree = infer_tree(both.fabric, plane=both.plane(plane)).tree
        assert tree.plane == plane
        assert [(one.tier, one.nodes) for one in tree.domains if one.nodes] == [
            (one.tier, one.nodes) for one in expected.domains if one.nodes
        ]
