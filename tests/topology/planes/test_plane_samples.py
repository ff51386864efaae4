"""The planes of the default policy in networks of real devices.

| sample | networks in it |
|---|---|
| superpod | only compute: the management hosts are on its spines, not on a separate network |
| selene | only storage; without another network it counts as compute |
| ufm_small | two switches of two generations, cabled to each other: one network |
| own16 | one network of captures, without rates |

The default finds one network in each sample. A policy can assign ports otherwise.
"""

import pytest

from generator.ingest.captures import read_captures
from tests.shared_samples import SAMPLES, needs_samples
from tests.topology.sources.ibnetdiscover.parsed_dump import parse_ibnetdiscover
from topology.inference.tree_inference import infer_tree
from topology.join.fabric_join import build_fabric
from topology.model.claims import Claim, Origin
from topology.model.facts import FindingKind
from topology.planes.plane_split import PlaneSplit, split_planes
from topology.planes.policy import COMPUTE, PlanePolicy, PlaneReason, PortRule

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
        pytest.param(SELENE, 629, 1247, id="for storage only"),
        pytest.param("ufm_small_hdr-fdr.txt", 5, 12, id="of two generations"),
        pytest.param("topograph_ndr_dgx.txt", 194, 542, id="with unnamed hosts"),
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


def test_it_separates_management_hosts_by_a_policy() -> None:
    split = split_dump(SUPERPOD, policies=(MANAGED,))
    assert split.names == (COMPUTE, "management")
    assert len({edge.a for edge in split.plane("management").host_edges}) == 10
    inference = infer_tree(split.fabric, split.plane(COMPUTE))
    assert len(inference.tree.nodes) == 140
    assert not [
        finding for finding in inference.findings if finding.kind is FindingKind.HOST_ON_SPINE
    ]


def test_it_gives_two_fabrics_the_same_trees_as_each_alone() -> None:
    both = split_dump(STAGE, ONE_SWITCH, policies=(OF_STAGE,))
    assert both.names == (COMPUTE, "storage")
    for plane, name in ((COMPUTE, ONE_SWITCH), ("storage", STAGE)):
        alone = split_dump(name)
        expected = infer_tree(alone.fabric, alone.plane(COMPUTE)).tree
        tree = infer_tree(both.fabric, both.plane(plane)).tree
        assert tree.plane == plane
        assert [(domain.tier, domain.nodes) for domain in tree.domains if domain.nodes] == [
            (domain.tier, domain.nodes) for domain in expected.domains if domain.nodes
        ]
