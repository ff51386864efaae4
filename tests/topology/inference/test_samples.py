"""Outputs of real tools for complete fabrics, and the known trees of these fabrics."""

import csv
from collections import Counter

import pytest

from generator.ingest.captures import read_captures
from tests.shared_samples import SAMPLES, needs_samples
from tests.topology.cables import of_kind
from tests.topology.sources.ibnetdiscover.parsed_dump import parse_ibnetdiscover
from tests.topology.verdicts import infer_from
from topology.inference.tree_inference import Inference
from topology.join.fabric_join import build_fabric
from topology.model.claims import Claim, Origin
from topology.model.facts import FindingKind
from topology.model.tree import host_partitions

pytestmark = needs_samples


def inferred(*names: str) -> Inference:
    """Return the inference of several dumps together."""
    return infer_from(
        Claim(device, Origin.SWEEP)
        for name in names
        for device in parse_ibnetdiscover(
            (SAMPLES / "ibnetdiscover" / name).read_bytes(), source=name
        ).devices
    )


@pytest.mark.parametrize(
    ("name", "num_domains", "num_nodes"),
    [
        pytest.param("stage_fdr10.txt", [6, 1], 142, id="six leaves under one spine group"),
        pytest.param("superpod-dgxa100_hdr.txt", [7, 1, 1], 140, id="seven groups of rails"),
        pytest.param("selene-storage_hdr-edr.txt", [38, 4, 1], 628, id="three tiers"),
        pytest.param("topograph_ndr_dgx.txt", [8, 1], 120, id="eight leaf groups"),
        pytest.param("ompi-list-2009_no-rates.txt", [1], 24, id="one switch without rates"),
        pytest.param("topograph_no-link.txt", [], 0, id="a host without a link"),
    ],
)
def test_it_finds_the_tiers_of_a_real_fabric(
    name: str, num_domains: list[int], num_nodes: int
) -> None:
    tree = inferred(name).tree
    domains_by_tier = Counter(domain.tier for domain in tree.domains)
    assert [domains_by_tier[tier] for tier in range(1, len(tree.tiers) + 1)] == num_domains
    assert len(tree.nodes) == num_nodes


@pytest.mark.parametrize(
    ("name", "kinds"),
    [
        pytest.param(
            "psmn-x5_qdr-ddr.txt",
            {
                FindingKind.UNRESOLVED_HOST: 89,
                FindingKind.MISSING_LINK: 4,
                FindingKind.SLOW_LINK: 2,
                FindingKind.AUX_SWITCH: 1,
            },
            id="useless names, and a third level of one switch that adds no path",
        ),
        pytest.param(
            "stage_fdr10.txt",
            {FindingKind.HOST_ON_SPINE: 2, FindingKind.MISSING_LINK: 1},
            id="two hosts on the core",
        ),
        pytest.param(
            "topograph_ndr_dgx.txt",
            {
                FindingKind.UNRESOLVED_HOST: 74,
                FindingKind.MISSING_LINK: 6,
                FindingKind.WRONG_RAIL: 1,
            },
            id="factory names, hosts of one and of four links, and two NICs on each other's rail",
        ),
        pytest.param(
            "superpod-dgxa100_hdr.txt",
            {
                FindingKind.HOST_ON_SPINE: 10,
                FindingKind.MISSING_LINK: 4,
                FindingKind.WRONG_RAIL: 1,
                FindingKind.UNDECIDABLE: 1,
            },
            id="management hosts on spines, and super spines that join what spines join",
        ),
        pytest.param(
            "selene-storage_hdr-edr.txt",
            {
                FindingKind.MISSING_LINK: 13,
                FindingKind.AUX_SWITCH: 1,
                FindingKind.UNRESOLVED_HOST: 1,
            },
            id="four leaves without hosts of their own",
        ),
        pytest.param(
            "ufm_small_hdr-fdr.txt",
            {FindingKind.AUX_SWITCH: 1, FindingKind.UNDECIDABLE: 1},
            id="a host between two switches",
        ),
        pytest.param(
            "hdr-60sw_default-names.txt",
            {FindingKind.MISSING_LINK: 14, FindingKind.SLOW_LINK: 2, FindingKind.UNDECIDABLE: 1},
            id="two links that came up low, and leaves without hosts, which look like a tier",
        ),
        pytest.param(
            "edr-ring_4sw.txt",
            {FindingKind.UNRESOLVED_HOST: 3, FindingKind.NOT_A_TREE: 1},
            id="a ring of four",
        ),
    ],
)
def test_it_finds_exactly_the_problems_of_a_real_fabric(
    name: str, kinds: dict[FindingKind, int]
) -> None:
    assert Counter(finding.kind for finding in inferred(name).findings) == kinds


@pytest.mark.parametrize(
    "others",
    [
        pytest.param(["stage_fdr10.txt"], id="itself"),
        pytest.param(["own_ibsim_stage_p-form.txt"], id="its port rows, which have no node GUIDs"),
    ],
)
def test_it_finds_one_fabric_in_several_dumps_of_it(others: list[str]) -> None:
    alone, together = inferred("stage_fdr10.txt"), inferred("stage_fdr10.txt", *others)
    assert host_partitions(together.tree) == host_partitions(alone.tree)
    assert together.tree.unplaced == alone.tree.unplaced


def test_it_leaves_two_hosts_on_the_core_unplaced() -> None:
    found = inferred("stage_fdr10.txt")
    assert len(of_kind(found.findings, FindingKind.HOST_ON_SPINE)) == 2
    assert len(found.tree.unplaced) == 2


def test_it_makes_one_domain_of_eight_rails_and_finds_hosts_on_spines() -> None:
    found = inferred("superpod-dgxa100_hdr.txt")
    sizes = {len(domain.switches) for domain in found.tree.domains if domain.tier == 1}
    assert sizes == {8}
    assert len(of_kind(found.findings, FindingKind.HOST_ON_SPINE)) == 10


def test_it_finds_the_tiers_that_the_switch_names_show() -> None:
    tree = inferred("selene-storage_hdr-edr.txt").tree
    ranks = {"slg": 1, "sspine": 2, "score": 3}
    wrong = [
        name
        for domain in tree.domains
        for name in domain.switches
        for prefix, tier in ranks.items()
        if name.lower().startswith(prefix) and tier != domain.tier
    ]
    assert wrong == []


def test_it_finds_the_two_swapped_nics_of_a_real_host() -> None:
    found = inferred("topograph_ndr_dgx.txt")
    (finding,) = of_kind(found.findings, FindingKind.WRONG_RAIL)
    assert "b08-p1-dgx-08-c01" in finding.message
    assert {"HCA-5", "HCA-6"} <= {end.port.partition("/")[0] for end in finding.ports}
    assert len(of_kind(found.findings, FindingKind.UNRESOLVED_HOST)) == 74


def test_it_links_exactly_the_cables_of_captured_devices() -> None:
    folder = SAMPLES / "fabric" / "own16"
    claims, problems = read_captures(folder)
    assert problems == []
    fabric = build_fabric(claims)
    with (folder / "cabling.csv").open(encoding="utf-8") as stream:
        cabling = {
            frozenset({(row["device_a"], row["port_a"]), (row["device_b"], row["port_b"])})
            for row in csv.DictReader(stream)
        }
    links = {
        frozenset({tuple(fabric.port_name(link.a)), tuple(fabric.port_name(link.b))})
        for link in fabric.links
    }
    assert links == cabling
    assert len(fabric.links) == len(cabling)
    assert not any(link.is_one_sided for link in fabric.links)
