"""One host that reports any number of cables changes no rank and no group."""

import pytest

from tests.topology.cables import End, hosts, infer_cables, mesh, star, tiers_of

LEAVES = [f"leaf{number}" for number in range(1, 5)]
POD = [
    *(
        cable
        for at, leaf in enumerate(LEAVES)
        for cable in star(leaf, hosts(4 * at + 1, 4 * at + 4))
    ),
    *mesh(LEAVES[:2], ["s1", "s2"], 2),
    *mesh(LEAVES[2:], ["s3", "s4"], 2),
    *mesh(["s1", "s2", "s3", "s4"], ["core1", "core2"]),
]


def flood(*switches: str, each: int) -> list[tuple[End, End]]:
    """Return cables from one more host to switches."""
    return [
        (("h99", f"flood-{switch}-{number}"), (switch, f"to-h99-{number}"))
        for switch in switches
        for number in range(each)
    ]


@pytest.mark.parametrize("each", [1, 40])
@pytest.mark.parametrize(
    "switches",
    [
        ("leaf1", "s1"),
        ("leaf1", "leaf2"),
        ("leaf1", *LEAVES, "s1", "s2", "s3", "s4"),
        ("leaf1", "s1", "core1", "core2"),
        ("leaf1", *(f"x{number}" for number in range(60)), "s1"),
    ],
    ids=["a spine", "two leaves", "leaves and spines", "cores", "many unknown switches"],
)
def test_a_host_with_many_cables_moves_no_other_host(switches: tuple[str, ...], each: int) -> None:
    found = [
        {frozenset(set(nodes) - {"h99"}) for nodes in tier.values()} - {frozenset()}
        for tier in tiers_of(infer_cables([*POD, *flood(*switches, each=each)]))
    ]
    assert found == [set(map(frozenset, tier.values())) for tier in tiers_of(infer_cables(POD))]
