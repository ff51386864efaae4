"""Hosts that are no nodes, and HCAs that share a GUID, in a sweep."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable
from itertools import product
from typing import NamedTuple

import pytest

from generator.objects.inventory import parse_nodes
from tests.topology.compute_trees import infer_compute_tree
from tests.topology.sources.ibnetdiscover.parsed_dump import parse_ibnetdiscover
from topology.join.fabric_join import build_fabric
from topology.model.claims import ListedClaim, SweptClaims
from topology.model.facts import Finding, FindingKind

HOSTS = [f"n{number} mlx5_0" for number in range(1, 9)]


class Cable(NamedTuple):
    """A cable of a leaf, as the leaf lists it."""

    leaf: int
    port: int
    host: str
    """The node description of its HCA."""
    hca_port: int = 1


LEAVES = [Cable(1 + place // 4, 1 + place % 4, text) for place, text in enumerate(HOSTS)]


def render_sweep(cables: Iterable[Cable]) -> str:
    """Return a sweep of two leaves below two spines; of each HCA port the first cable is listed."""
    guids: dict[str, int] = {}
    switches: dict[int, list[str]] = {number: [] for number in range(1, 5)}
    hcas: dict[str, dict[int, str]] = defaultdict(dict)
    for leaf, port, host, hca_port in cables:
        guid = guids.setdefault(host, (0xB0 << 48) + len(guids) + 1)
        switches[leaf].append(f'[{port}]\t"H-{guid:016x}"[{hca_port}]\t\t# "{host}" lid 1 4xNDR')
        peer = f'"S-{leaf << 32:016x}"[{port}]'
        line = f'[{hca_port}]({guid:x})\t{peer}\t\t# lid 1 lmc 0 "sw{leaf}" lid 1 4xNDR'
        hcas[host].setdefault(hca_port, line)
    for leaf, spine, number in product((1, 2), (3, 4), (0, 1)):  # one cable each would be a ring
        ends = (leaf, 2 * spine + 20 + number), (spine, 2 * leaf + number)
        for (own, port), (far, far_port) in (ends, ends[::-1]):
            text = f'[{port}]\t"S-{far << 32:016x}"[{far_port}]\t\t# "sw{far}" lid 1 4xNDR'
            switches[own].append(text)
    blocks = [
        f'Switch\t40 "S-{number << 32:016x}"\t\t# "sw{number}" base port 0 lid 1 lmc 0\n'
        + "\n".join(lines)
        for number, lines in switches.items()
    ]
    blocks += [
        f'Ca\t2 "H-{guids[host]:016x}"\t\t# "{host}"\n' + "\n".join(lines.values())
        for host, lines in hcas.items()
    ]
    return "\n\n".join(blocks) + "\n"


def find_in(cables: Iterable[Cable], nodes: Collection[str] = ()) -> tuple[Finding, ...]:
    swept = SweptClaims(parse_ibnetdiscover(render_sweep(cables).encode()).devices)
    text = "\n".join(("nodes:", *(f"- name: {node}" for node in nodes), ""))
    rows = parse_nodes(text.encode(), source="nodes").nodes if nodes else ()
    listed = [ListedClaim(row.name, row.ids) for row in rows]
    return infer_compute_tree(build_fabric([*listed, swept])).findings


NODES = [host.split()[0] for host in HOSTS]


@pytest.mark.parametrize(
    "extra",
    [
        pytest.param([], id="none"),
        pytest.param([Cable(1, 9, "st1 mlx5_0"), Cable(2, 9, "st1 mlx5_1")], id="storage"),
        pytest.param(
            [Cable(leaf, 9 + n, f"st{n} mlx5_{leaf}") for n in range(3) for leaf in (1, 2)],
            id="several storage servers",
        ),
        pytest.param(
            [Cable(1, 9, "MF0;gw01:MTX6240/GW1"), Cable(2, 9, "MF0;gw01:MTX6240/GW2")],
            id="a gateway",
        ),
    ],
)
def test_a_host_that_is_no_node_is_no_fault(extra: list[Cable]) -> None:
    assert find_in([*LEAVES, *extra], NODES) == ()


def test_a_node_on_two_leaves_is_undecidable() -> None:
    extra = [Cable(1, 9, "n9 mlx5_0"), Cable(2, 9, "n9 mlx5_1")]
    findings = find_in([*LEAVES, *extra], [*NODES, "n9"])
    assert FindingKind.UNDECIDABLE in {finding.kind for finding in findings}


def test_modules_of_a_gateway_are_devices_of_their_own() -> None:
    cables = [Cable(1, 1, "MF0;gw01:MTX6240/GW1"), Cable(1, 2, "MF0;gw01:MTX6240/GW2")]
    swept = SweptClaims(parse_ibnetdiscover(render_sweep(cables).encode()).devices)
    names = {device.name for device in build_fabric([swept]).devices}
    assert {"gw01/GW1", "gw01/GW2"} <= names


def test_two_hcas_with_one_guid_are_a_duplicate_id() -> None:
    (finding,) = find_in([*LEAVES, Cable(2, 9, "n2 mlx5_0")], NODES)
    assert finding.kind is FindingKind.DUPLICATE_ID
    assert set(finding.ports) == {("n2", "mlx5_0/1"), ("sw1", "2"), ("sw2", "9")}
