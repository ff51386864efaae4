from dataclasses import replace

import pytest

from generator.outputs.hypernode.model import (
    PLACEHOLDER,
    SOURCE_LABEL,
    HyperNode,
    Member,
    MemberType,
    parse_manifest,
)
from generator.reconcile.conflicts import (
    Conflict,
    ConflictKind,
    Overlap,
    find_conflicts,
    find_overlaps,
)
from generator.reconcile.hypernode_plan import (
    Action,
    NodeMove,
    Op,
    find_moves,
    plan_changes,
    render_action,
)
from tests.generator.reconcile.cluster import hypernode
from topology.model.errors import InvariantError

FOREIGN = ((SOURCE_LABEL, "ufm"),)
DEPTH_2 = [
    hypernode("leaf-1", 1, "a", "b"),
    hypernode("leaf-2", 1, "c", "d"),
    hypernode("pod", 2, "leaf-1", "leaf-2"),
]


def steps(desired: list[HyperNode], observed: list[HyperNode]) -> list[str]:
    """Return one line per action: op, name, its members after the write."""
    return [
        " ".join(
            [
                action.op,
                action.name,
                *(member.name for member in (action.object.members if action.object else ())),
            ]
        )
        for action in plan_changes(desired, observed)
    ]


@pytest.mark.parametrize(
    ("desired", "observed", "expected"),
    [
        pytest.param(
            DEPTH_2,
            [],
            ["create leaf-1 a b", "create leaf-2 c d", "create pod leaf-1 leaf-2"],
            id="a new tree is created bottom-up",
        ),
        pytest.param(
            [],
            DEPTH_2,
            [
                "delete pod",
                "delete leaf-1",
                "delete leaf-2",
            ],
            id="a tree is deleted top-down",
        ),
        pytest.param(
            [hypernode("leaf-1", 1, "a"), hypernode("leaf-2", 1, "b", "c", "d"), DEPTH_2[2]],
            DEPTH_2,
            ["update leaf-1 a", "update leaf-2 b c d"],
            id="a moved node touches two objects, the shrinking one first",
        ),
        pytest.param(
            [hypernode("leaf-1", 1, "a", "c"), hypernode("leaf-2", 1, "b", "d"), DEPTH_2[2]],
            DEPTH_2,
            ["update leaf-1 a", "update leaf-2 b d", "update leaf-1 a c"],
            id="a swapped pair takes three writes, and one node at a time is in no leaf",
        ),
        pytest.param(
            [hypernode("leaf-1", 1, "c", "d"), hypernode("leaf-2", 1, "a", "b"), DEPTH_2[2]],
            DEPTH_2,
            [f"update leaf-1 {PLACEHOLDER}", "update leaf-2 a b", "update leaf-1 c d"],
            id="two leaves exchange all of their nodes in three writes",
        ),
        pytest.param(
            [hypernode("leaf-1", 1, "a", "b", "c"), hypernode("leaf-2", 1, "d"), DEPTH_2[2]],
            [hypernode("leaf-1", 1, "a", "b"), hypernode("leaf-2", 1, "b", "c", "d"), DEPTH_2[2]],
            ["update leaf-2 c d", "update leaf-2 d", "update leaf-1 a b c"],
            id="a node in two leaves leaves the wrong one before anything else moves",
        ),
        pytest.param(
            [DEPTH_2[0], hypernode("new", 1, "c", "d"), hypernode("pod", 2, "leaf-1", "new")],
            DEPTH_2,
            [
                f"update leaf-2 {PLACEHOLDER}",
                "create new c d",
                "update pod leaf-1 new",
                "delete leaf-2",
            ],
            id="a leaf is replaced by release, create, swap in the parent, delete",
        ),
        pytest.param(
            [*DEPTH_2[:2], hypernode("new", 2, "leaf-1", "leaf-2"), hypernode("top", 3, "new")],
            [*DEPTH_2, hypernode("top", 3, "pod")],
            [
                f"update pod {PLACEHOLDER}",
                "create new leaf-1 leaf-2",
                "update top new",
                "delete pod",
            ],
            id="an inner domain is replaced by release, create, swap, delete",
        ),
        pytest.param(
            [*DEPTH_2[:2], hypernode("p", 2, "leaf-1"), hypernode("q", 2, "leaf-2")],
            [
                *DEPTH_2[:2],
                hypernode("leaf-3", 1, "e"),
                hypernode("p", 2, "leaf-1", "leaf-2"),
                hypernode("q", 2, "leaf-3"),
            ],
            ["update p leaf-1", "update q leaf-2", "delete leaf-3"],
            id="a re-parented leaf is released before the new parent takes it",
        ),
        pytest.param(
            DEPTH_2[:2],
            DEPTH_2,
            [f"update pod {PLACEHOLDER}", "delete pod"],
            id="children that become roots are released before their parent is deleted",
        ),
        pytest.param(
            DEPTH_2,
            [*DEPTH_2[:2], hypernode("pod", 2, PLACEHOLDER)],
            ["update pod leaf-1 leaf-2"],
            id="a placeholder of an interrupted plan is replaced",
        ),
        pytest.param(
            DEPTH_2,
            [DEPTH_2[0], DEPTH_2[2]],
            ["update pod leaf-1", "create leaf-2 c d", "update pod leaf-1 leaf-2"],
            id="a missing child is dropped before anything else",
        ),
        pytest.param(
            [
                hypernode("nv-1", 1, "a", "b"),
                hypernode("leaf-1", 2, "nv-1"),
                hypernode("pod", 3, "leaf-1"),
            ],
            [hypernode("leaf-1", 1, "a", "b"), hypernode("pod", 2, "leaf-1")],
            [
                f"update leaf-1 {PLACEHOLDER}",
                "create nv-1 a b",
                "update pod leaf-1",
                "update leaf-1 nv-1",
            ],
            id="a new lowest tier raises the others in place, top-down",
        ),
        pytest.param(
            [hypernode("leaf-1", 1, "a", "b"), hypernode("pod", 2, "leaf-1")],
            [
                hypernode("nv-1", 1, "a", "b"),
                hypernode("leaf-1", 2, "nv-1"),
                hypernode("pod", 3, "leaf-1"),
            ],
            [
                f"update nv-1 {PLACEHOLDER}",
                "update leaf-1 a b",
                "update pod leaf-1",
                "delete nv-1",
            ],
            id="a lost lowest tier lowers the others in place, bottom-up",
        ),
        pytest.param(
            [hypernode("a", 1, "n")],
            [hypernode("a", 1, "n"), hypernode("x", 2, "y"), hypernode("y", 2, "x")],
            [f"update x {PLACEHOLDER}", f"update y {PLACEHOLDER}", "delete x", "delete y"],
            id="a cycle of obsolete domains is broken before they are deleted",
        ),
    ],
)
def test_it_orders_writes_so_that_each_leaves_a_valid_cluster(
    desired: list[HyperNode], observed: list[HyperNode], expected: list[str]
) -> None:
    assert steps(desired, observed) == expected


@pytest.mark.parametrize(
    "observed",
    [
        pytest.param(list(reversed(DEPTH_2)), id="in another order"),
        pytest.param(
            [replace(found, members=found.members[::-1]) for found in DEPTH_2],
            id="with members in another order",
        ),
        pytest.param(
            [replace(found, labels=(*found.labels, ("team", "a"))) for found in DEPTH_2],
            id="with foreign labels",
        ),
        pytest.param(
            [*DEPTH_2, HyperNode("ufm-1", 0, "", (), FOREIGN)], id="beside a foreign object"
        ),
    ],
)
def test_it_plans_nothing_for_the_same_set(observed: list[HyperNode]) -> None:
    assert plan_changes(DEPTH_2, observed) == ()


@pytest.mark.parametrize(
    ("before", "reason"),
    [
        (hypernode("leaf-1", 1, "a", "x", "y"), "members changed: +1 -2"),
        (replace(DEPTH_2[0], num_inexact_members=1), "members changed: +0 -1"),
        (replace(DEPTH_2[0], tier_name="rack"), "tier name changed"),
        (replace(DEPTH_2[0], labels=(*DEPTH_2[0].labels[1:],)), "labels changed"),
        (replace(DEPTH_2[0], members=DEPTH_2[0].members * 2), "members listed twice"),
        (hypernode("leaf-1", 2, "leaf-9"), "drop missing children: -1"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_it_describes_what_an_update_changes(before: HyperNode, reason: str) -> None:
    actions = plan_changes(DEPTH_2[:1], [before])
    assert actions[0].reason == reason
    assert actions[-1].object == DEPTH_2[0]


def test_it_gives_the_reason_of_each_action() -> None:
    desired = [hypernode("b", 1, "n"), hypernode("c", 2, "b")]
    observed = [hypernode("b", 1, "n"), hypernode("a", 3, "b")]
    assert [action.reason for action in plan_changes(desired, observed)] == [
        "release children before they move: -1",
        "new domain",
        "no longer in the tree",
    ]
    assert [action.tier for action in plan_changes(desired, observed)] == [3, 2, 3]


def test_it_does_not_overwrite_a_foreign_object_of_a_desired_name() -> None:
    foreign = HyperNode("leaf-1", 1, "", (Member(MemberType.NODE, "a"),), FOREIGN)
    assert steps(DEPTH_2, [foreign]) == ["create leaf-2 c d", "create pod leaf-2"]
    assert find_conflicts(DEPTH_2, [foreign]) == (Conflict("leaf-1", ConflictKind.NAME, "leaf-1"),)


def test_it_leaves_out_parents_whose_children_foreign_objects_list() -> None:
    foreign = HyperNode("leaf-1", 1, "", (), FOREIGN)
    desired = [DEPTH_2[0], hypernode("pod", 2, "leaf-1"), hypernode("top", 3, "pod")]
    assert steps(desired, [foreign]) == []


def test_it_gives_no_second_parent_to_a_child_of_a_foreign_object() -> None:
    foreign = HyperNode("spine-hn", 2, "", (Member(MemberType.HYPERNODE, "leaf-1"),), FOREIGN)
    assert steps(DEPTH_2, [foreign]) == [
        "create leaf-1 a b",
        "create leaf-2 c d",
        "create pod leaf-2",
    ]
    assert find_conflicts(DEPTH_2, [foreign]) == (
        Conflict("leaf-1", ConflictKind.CHILD, "spine-hn"),
    )


@pytest.mark.parametrize(
    ("foreign", "expected"),
    [
        pytest.param(
            HyperNode("rack", 1, "", (Member(MemberType.NODE, "a"),), FOREIGN),
            (Overlap("rack", ("a",)),),
            id="by name",
        ),
        pytest.param(
            HyperNode("rack", 1, "", (), FOREIGN, num_inexact_members=1),
            (Overlap("rack", ()),),
            id="possibly, by a pattern",
        ),
        pytest.param(
            HyperNode("rack", 1, "", (Member(MemberType.NODE, "x"),), FOREIGN), (), id="never"
        ),
    ],
)
def test_it_reports_a_foreign_object_that_contains_our_nodes(
    foreign: HyperNode, expected: tuple[Overlap, ...]
) -> None:
    assert find_overlaps(DEPTH_2, [*DEPTH_2, foreign]) == expected
    assert steps(DEPTH_2, [*DEPTH_2, foreign]) == []


def test_it_empties_but_does_not_delete_a_child_of_a_foreign_object() -> None:
    foreign = HyperNode("spine-hn", 2, "", (Member(MemberType.HYPERNODE, "leaf-1"),), FOREIGN)
    assert steps([], [DEPTH_2[0], foreign]) == [f"update leaf-1 {PLACEHOLDER}"]
    assert steps([], [hypernode("leaf-1", 1, PLACEHOLDER), foreign]) == []


@pytest.mark.parametrize(
    "desired",
    [
        pytest.param([hypernode("pod", 2, "leaf-1")], id="a child is missing"),
        pytest.param([HyperNode("a", 1, "", ())], id="a list is empty"),
        pytest.param([hypernode("a", 2, "b"), hypernode("b", 2, "a")], id="it has a cycle"),
        pytest.param([hypernode("a", 1, "n"), hypernode("a", 1, "m")], id="a name comes twice"),
    ],
)
def test_it_refuses_a_desired_set_that_is_no_forest(desired: list[HyperNode]) -> None:
    with pytest.raises(InvariantError, match="desired HyperNodes: "):
        plan_changes(desired, [])


def test_it_renders_rows_that_name_the_whole_object() -> None:
    rows = [render_action(action) for action in plan_changes([DEPTH_2[0]], [DEPTH_2[1]])]
    assert [(row["op"], row["name"], row["tier"], row["reason"]) for row in rows] == [
        ("create", "leaf-1", 1, "new domain"),
        ("delete", "leaf-2", 1, "no longer in the tree"),
    ]
    assert parse_manifest(rows[0]["object"]) == DEPTH_2[0]
    assert rows[1]["object"] is None


def test_it_writes_two_of_thousands_of_objects_when_one_node_moves() -> None:
    def tree(moved_to: int) -> list[HyperNode]:
        leaves = {number: [f"n{number}-{at}" for at in range(8)] for number in range(1000)}
        leaves[moved_to].append(leaves[0].pop())
        made = [hypernode(f"leaf-{number}", 1, *nodes) for number, nodes in leaves.items()]
        return [*made, hypernode("pod", 2, *(found.name for found in made))]

    assert [action.name for action in plan_changes(tree(7), tree(5))] == ["leaf-5", "leaf-7"]


@pytest.mark.parametrize(
    ("desired", "observed", "moves"),
    [
        pytest.param(DEPTH_2, DEPTH_2, [], id="nothing changes"),
        pytest.param(
            DEPTH_2,
            [],
            [("", "leaf-1", "ab"), ("", "leaf-2", "cd")],
            id="nodes of a new tree come from outside",
        ),
        pytest.param(
            [],
            DEPTH_2,
            [("leaf-1", "", "ab"), ("leaf-2", "", "cd")],
            id="nodes of a removed tree go outside",
        ),
        pytest.param(
            [hypernode("leaf-1", 1, "a", "d"), hypernode("leaf-2", 1, "c", "b")],
            DEPTH_2[:2],
            [("leaf-1", "leaf-2", "b"), ("leaf-2", "leaf-1", "d")],
            id="two leaves exchange nodes, whatever the steps are",
        ),
        pytest.param(
            [hypernode("leaf-9", 1, "a", "b"), DEPTH_2[1], hypernode("pod", 2, "leaf-9", "leaf-2")],
            DEPTH_2,
            [("leaf-1", "leaf-9", "ab")],
            id="a leaf gets another name",
        ),
        pytest.param(
            [hypernode("leaf-1", 1, "a", "b")],
            [hypernode("leaf-1", 1, "a", PLACEHOLDER)],
            [("", "leaf-1", "b")],
            id="the placeholder is no node",
        ),
    ],
)
def test_the_moves_of_a_plan_go_from_leaf_to_leaf(
    desired: list[HyperNode], observed: list[HyperNode], moves: list[tuple[str, str, str]]
) -> None:
    assert find_moves(plan_changes(desired, observed), observed) == [
        NodeMove(source, target, frozenset(nodes)) for source, target, nodes in moves
    ]


def test_the_nodes_of_a_hypernode_that_is_taken_over_stay() -> None:
    foreign = replace(DEPTH_2[0], labels=FOREIGN)
    claim = Action(Op.UPDATE, "leaf-1", 1, "taken over", DEPTH_2[0], taken=foreign)
    assert find_moves([claim], [foreign]) == []
