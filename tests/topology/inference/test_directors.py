"""Directors, many chips in a chassis with one system-image GUID: leaves, and one other switch."""

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


def inferred(
    cables: Iterable[tuple[End, End]], chips_by_chassis: Mapping[str, Iterable[str]]
) -> Inference:
    """Return the inference of cables; the chips of a chassis share a system-image GUID."""
    image_of = {chip: chassis for chassis, chips in chips_by_chassis.items() for chip in chips}
    reports = []
    for claim in claims(cables):
        image = image_of.get(claim.device.name)
        image_ids = () if image is None else (Id(IdKind.SYSTEM_IMAGE_GUID, image),)
        ids = tuple(sorted((*claim.device.ids, *image_ids)))
        reports.append(replace(claim, device=replace(claim.device, ids=ids)))
    return infer_from(reports)


def chassis_guid(at: int) -> str:
    return f"{0x5442BA0000 + at:016x}"


def test_it_makes_leaves_of_the_lines_of_a_director_and_one_domain_of_the_rest() -> None:
    cables = [
        cable
        for at, line in enumerate(LINES)
        for cable in star(line, hosts(4 * at + 1, 4 * at + 4))
    ]
    inference = inferred([*cables, *mesh(LINES, CHIPS, parallel=2)], {chassis_guid(1): BOX})
    assert [len(tier) for tier in host_partitions(inference.tree)] == [4, 1]
    assert inference.tree.domains[-1].switches == tuple(CHIPS)
    assert inference.findings == ()


def leaves_below(directors: Mapping[str, Iterable[str]]) -> list[tuple[End, End]]:
    """Return four leaves of four hosts, each cabled to two lines of every director."""
    cables = []
    for at in range(4):
        leaf = f"leaf-{at}"
        cables += star(leaf, hosts(4 * at + 1, 4 * at + 4))
        for number, lines in enumerate(directors.values()):
            ordered = list(lines)
            ends = [ordered[(at * (number + 1) + step) % len(ordered)] for step in (0, 1)]
            cables += mesh([leaf], ends, parallel=2)
    return cables


def test_it_treats_a_director_above_leaves_as_one_switch() -> None:
    twin = [name.replace("director", "twin") for name in BOX]
    lines = {chassis_guid(1): LINES, chassis_guid(2): twin[:4]}
    inner = [*mesh(LINES, CHIPS, parallel=2), *mesh(twin[:4], twin[4:], parallel=2)]
    inference = inferred(
        [*leaves_below(lines), *inner], {chassis_guid(1): BOX, chassis_guid(2): twin}
    )
    assert inference.tree.tiers == ("leaf", "spine")
    assert [len(tier) for tier in host_partitions(inference.tree)] == [4, 1]
    assert inference.tree.domains[-1].switches == tuple(sorted([*BOX, *twin]))
    assert of_kind(inference.findings, FindingKind.UNDECIDABLE) == []
    assert of_kind(inference.findings, FindingKind.NOT_A_TREE) == []


def test_it_supports_a_director_with_hosts_on_some_lines_and_leaves_on_others() -> None:
    cables = [*star(LINES[0], hosts(1, 4)), *star(LINES[1], hosts(5, 8))]
    cables += [*star("leaf-x", hosts(9, 12)), *mesh(["leaf-x"], LINES[2:], parallel=2)]
    inference = inferred([*cables, *mesh(LINES, CHIPS, parallel=2)], {chassis_guid(1): BOX})
    assert tiers_of(inference)[0] == {
        "director-l01": hosts(1, 4),
        "director-l02": hosts(5, 8),
        "leaf-x": hosts(9, 12),
    }
    assert [len(tier) for tier in host_partitions(inference.tree)] == [3, 1]


def test_it_keeps_chips_apart_that_share_a_chassis_but_no_cable() -> None:
    leaves = ["leaf-a", "leaf-b"]
    cables: list[tuple[End, End]] = []
    for lane in ("1", "2"):
        ends = [f"{leaf}-u{lane}" for leaf in leaves]
        cables += star(ends[0], hosts(1, 4), f"eth{lane}")
        cables += star(ends[1], hosts(5, 8), f"eth{lane}")
        cables += mesh(ends, [f"spine-u{lane}"], parallel=4)
    spines = ["spine-u1", "spine-u2"]
    boxes = {
        chassis_guid(at): [f"{leaf}-u1", f"{leaf}-u2"] for at, leaf in enumerate([*leaves, "spine"])
    }
    inference = inferred(cables, boxes)
    assert tiers_of(inference)[1] == {"spine-u1-2": hosts(1, 8)}
    assert inference.tree.domains[-1].switches == tuple(spines)
    assert inference.findings == ()


def test_it_joins_no_hosts_by_a_shared_system_image_guid() -> None:
    cables = [*star("leaf-a", hosts(1, 4)), *star("leaf-b", hosts(5, 8))]
    cables += mesh(["leaf-a", "leaf-b"], ["spine"], parallel=4)
    assert inferred(cables, {chassis_guid(1): hosts(1, 8)}).tree == inferred(cables, {}).tree
