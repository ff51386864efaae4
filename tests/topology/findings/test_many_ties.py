"""In a random graph of leaves and spines many groups are tied, and their cables are named."""

import random  # noqa: TID251 - seeded

import pytest

from tests.topology.compute_trees import infer_compute_tree
from tests.topology.sources.ibnetdiscover.parsed_dump import parse_ibnetdiscover
from topology.join.fabric_join import build_fabric
from topology.model.claims import SweptClaims
from topology.model.fabric import Fabric
from topology.model.facts import FindingKind

Cable = tuple[str, int, str, int]


def draw_cables(num_switches: int, num_hosts: int, num_uplinks: int, seed: int) -> list[Cable]:
    """Return cables of hosts to random leaves, and of leaves to random spines."""
    rng = random.Random(seed)  # noqa: S311 - no secret
    num_leaves, used = num_switches // 2, dict[str, int]()

    def port_of(device: str) -> int:
        used[device] = used.get(device, 0) + 1
        return used[device]

    pairs = [(f"h{host}", f"s{rng.randrange(num_leaves)}") for host in range(num_hosts)]
    pairs += [
        (f"s{leaf}", f"s{rng.randrange(num_leaves, num_switches)}")
        for leaf in range(num_leaves)
        for _ in range(num_uplinks)
    ]
    return [(near, port_of(near), far, port_of(far)) for near, far in pairs]


def join(cables: list[Cable]) -> Fabric:
    """Return the fabric of a sweep that lists these cables."""
    rows: dict[str, list[str]] = {}
    for near, port, far, far_port in cables:
        rows.setdefault(near, []).append(f'[{port}]\t"{guid(far)}"[{far_port}]\t\t# "{far}"')
        rows.setdefault(far, []).append(f'[{far_port}]\t"{guid(near)}"[{port}]\t\t# "{near}"')
    text = "".join(
        f'{"Ca" if name[0] == "h" else "Switch"}\t{len(lines)} "{guid(name)}"\t\t# "{name}"\n'
        + "".join(f"{line} lid 0 4xNDR\n" for line in lines)
        + "\n"
        for name, lines in rows.items()
    )
    return build_fabric([SweptClaims(parse_ibnetdiscover(text.encode()).devices)])


def guid(name: str) -> str:
    return f"{'H' if name[0] == 'h' else 'S'}-{int(name[1:]) + (name[0] == 'h') * 2**32 + 1:016x}"


@pytest.mark.parametrize("seed", range(8))
def test_a_tied_leaf_names_the_cables_to_the_groups_it_is_tied_between(seed: int) -> None:
    cables = draw_cables(16, 24, 4, seed)
    named = 0
    for finding in infer_compute_tree(join(cables)).findings:
        if finding.kind is not FindingKind.UNDECIDABLE or "is undecided:" not in finding.message:
            continue
        ends = {(port.device, port.port) for port in finding.ports}
        near = {end for end in ends if end[0] == finding.device}
        assert near
        for device, port in near:
            (far,) = (
                (other, str(far_port))
                if (own, own_port) == (device, int(port))
                else (own, str(own_port))
                for own, own_port, other, far_port in cables
                if (device, int(port)) in {(own, own_port), (other, far_port)}
            )
            assert far in ends
        named += 1
    assert named or seed
