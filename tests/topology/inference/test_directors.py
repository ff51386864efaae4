"""Directors, boxes of many chips with one system-image GUID: lines with hosts, and the rest."""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from tests.topology.cables import End, claims, hosts, mesh, of_kind, star, tiers_of
from tests.topology.verdicts import infer_from
from topology.inference.tree_inference import Inference
from topology.model.facts import FindingKind
from topology.model.ids import Id, IdKind
from topology.model.tree import host_partitions

LINES = [f"director-L{at:02}" for at in range(1, 5)]
CHIPS = ["director-S01", "director-S02"]
BOX = [*LINES, *CHIPS]


def inferred(cables: Iterable[tuple[End, End]], boxes: Mapping[str, Iterable[str]]) -> Inference:
    """Return the inference of cables, with the system-image GUID that a box's chips share."""
    image_of = {chip: box for box, chips in boxes.items() for chip in chips}
    told = []
    for claim in claims(cables):
        image = image_of.get(claim.device.name)
        own = () if image is None else (Id(IdKind.SYSTEM_IMAGE_GUID, image),)
        ids = tuple(sorted((*claim.device.ids, *own)))
        told.append(replace(claim, device=replace(claim.device, ids=ids)))
    return infer_from(told)


def box(at: int) -> str:
    return f"{0x5442BA0000 + at:016x}"


def test_it_makes_leaves_of_a_director_s_lines_and_one_domain_of_the_rest() -> None:
    cables = [
        cable
        for at, line in enumerate(LINES)
        for cable in star(line, hosts(4 * at + 1, 4 * at + 4))
    ]
    found = inferred([*cables, *mesh(LINES, CHIPS, parallel=2)], {box(1): BOX})
    assert [len(tier) for tier in host_partitions(found.tree)] == [4, 1]
    assert found.tree.domains[-1].switches == tuple(CHIPS)
    assert found.findings == ()


def leaves_below(directors: Mapping[str, Iterable[str]]) -> list[tuple[End, End]]:
    """Return four leaves of four hosts with a cable to a line each of every director in turn."""
    cables = []
    for at in range(4):
        leaf = f"leaf-{at}"
        cables += star(leaf, hosts(4 * at + 1, 4 * at + 4))
        for number, lines in enumerate(directors.values()):
            ordered = list(lines)
            ends = [ordered[(at * (number + 1) + step) % len(ordered)] for step in (0, 1)]
            cables += mesh([leaf], ends, parallel=2)
    return cables


def test_it_takes_a_director_above_leaves_for_one_switch_wherever_cables_end_in_it() -> None:
    twin = [name.replace("director", "twin") for name in BOX]
    lines = {box(1): LINES, box(2): twin[:4]}
    inner = [*mesh(LINES, CHIPS, parallel=2), *mesh(twin[:4], twin[4:], parallel=2)]
    found = inferred([*leaves_below(lines), *inner], {box(1): BOX, box(2): twin})
    assert found.tree.tiers == ("leaf", "spine")
    assert [len(tier) for tier in host_partitions(found.tree)] == [4, 1]
    assert found.tree.domains[-1].switches == tuple(sorted([*BOX, *twin]))
    assert of_kind(found.findings, FindingKind.UNDECIDABLE) == []
    assert of_kind(found.findings, FindingKind.NOT_A_TREE) == []


def test_it_knows_a_director_with_hosts_on_some_lines_and_leaves_on_others() -> None:
    cables = [*star(LINES[0], hosts(1, 4)), *star(LINES[1], hosts(5, 8))]
    cables += [*star("leaf-x", hosts(9, 12)), *mesh(["leaf-x"], LINES[2:], parallel=2)]
    found = inferred([*cables, *mesh(LINES, CHIPS, parallel=2)], {box(1): BOX})
    assert tiers_of(found)[0] == {
        "director-l01": hosts(1, 4),
        "director-l02": hosts(5, 8),
        "leaf-x": hosts(9, 12),
    }
    assert [len(tier) for tier in host_partitions(found.tree)] == [3, 1]


def test_it_leaves_chips_apart_that_share_a_box_but_no_cable() -> None:
    leaves = ["leaf-a", "leaf-b"]
    cables: list[tuple[End, End]] = []
    for lane in ("1", "2"):
        ends = [f"{leaf}-u{lane}" for leaf in leaves]
        cables += star(ends[0], hosts(1, 4), f"eth{lane}")
        cables += star(ends[1], hosts(5, 8), f"eth{lane}")
        cables += mesh(ends, [f"spine-u{lane}"], parallel=4)
    spines = ["spine-u1", "spine-u2"]
    boxes = {box(at): [f"{leaf}-u1", f"{leaf}-u2"] for at, leaf in enumerate([*leaves, "spine"])}
    found = inferred(cables, boxes)
    assert tiers_of(found)[1] == {"spine-u1-2": hosts(1, 8)}
    assert found.tree.domains[-1].switches == tuple(spines)
    assert found.findings == ()


def test_it_joins_no_hosts_by_the_image_that_their_cards_share() -> None:
    cables = [*star("leaf-a", hosts(1, 4)), *star("leaf-b", hosts(5, 8))]
    cables += mesh(["leaf-a", "leaf-b"], ["spine"], parallel=4)
    assert inferred(cables, {box(1): hosts(1, 8)}).tree == inferred(cables, {}).tree
