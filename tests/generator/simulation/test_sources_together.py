"""The files of one simulated fabric read together: more of them never unplace or move a node."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path

import pytest

from tests.generator.scenes import run

FABRICS = {
    "fat-tree": ("--kind", "fat-tree", "--hosts", "8", "--radix", "4", "--seed", "28"),
    "rail": ("--kind", "rail", "--hosts", "16", "--radix", "8", "--rails", "2"),
    "dual-homed": ("--kind", "dual-homed", "--hosts", "16", "--radix", "8", "--peer-links", "2"),
    "dual-plane": ("--kind", "dual-plane", "--hosts", "16", "--radix", "8", "--rails", "2"),
    "dragonfly-plus": ("--kind", "dragonfly-plus", "--hosts", "16", "--radix", "8"),
}
SILENT = ("--names", "opaque", "--silent", "25%")
LOST = ("--lose-links", "2%", "--shuffle-hosts")
FAULTS = {
    "fat-tree": SILENT,
    "rail": LOST,
    "dual-homed": SILENT,
    "dual-plane": LOST,
    "dragonfly-plus": (),
}


def read_sources(folder: Path) -> dict[str, list[str]]:
    """Return the options of `toponaut tree`, by kind of source."""
    sweeps = sorted((folder / "ibnetdiscover").iterdir())
    return {
        "sweep": [word for file in sweeps for word in ("--ibnetdiscover", str(file))],
        "reports": ["--reports", str(folder / "reports")],
        "captures": ["--lldpcli", str(folder / "lldpcli")],
        "walks": ["--snmpwalk", str(folder / "snmpwalk"), "--nodes", str(folder / "nodes.yaml")],
        "nodes": ["--nodes", str(folder / "nodes.yaml")],
    }


def read_leaves(options: list[str]) -> tuple[set[frozenset[str]], set[str]]:
    """Return the nodes of each leaf, and the nodes outside."""
    ran = run("tree", *options, "-o", "json")
    assert ran.code in {0, 3}, ran.err
    domains = ran.document["tiers"][0]["domains"]
    outside = {row["node"] for row in ran.document.get("unplaced", ())}
    return {frozenset(row["nodes"]) for row in domains}, outside


@pytest.mark.parametrize("medium", ["infiniband", "ethernet"])
@pytest.mark.parametrize("kind", FABRICS)
def test_every_pair_of_sources_gives_the_tree_of_both(
    kind: str, medium: str, tmp_path: Path
) -> None:
    folder = tmp_path / "fabric"
    words = (*FABRICS[kind], *FAULTS[kind], "--medium", medium, "--out", folder)
    assert run("simulate", "fabric", *words).code == 0
    sources = read_sources(folder)
    leaves_alone = {
        name: read_leaves(words)[0] for name, words in sources.items() if name != "nodes"
    }
    for names in combinations(sorted(sources), 2):
        if medium == "ethernet" and set(names) == {"reports", "sweep"}:
            continue  # these reports say that the hosts have no HCA
        together, outside = read_leaves([word for name in names for word in sources[name]])
        for name in set(names) - {"nodes"}:
            alone = leaves_alone[name]
            placed = set().union(*alone)
            assert not outside & placed, (names, name)
            assert {leaf & placed for leaf in together} - {frozenset()} == alone, (names, name)
