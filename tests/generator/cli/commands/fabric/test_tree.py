"""What `toponaut tree` prints for people: lines that fit a screen, marks, and parts of the tree."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import pytest

from generator.cli.commands.fabric.tree import (
    MAX_ROWS,
    choose_view,
    count_findings,
    render_tree_text,
)
from generator.cli.exit_codes import ExitCode
from generator.cli.output import CSV, WIDE
from generator.simulation.replay.replay import build_tree_of_shape
from tests.generator.scenes import RAILS, Scene, run
from topology.model.facts import FindingKind, Severity, finding_about
from topology.model.tree import DomainSpec, TopologyTree, Unplaced, build_tree

TREE = build_tree_of_shape("2x2x4")


def text_of(
    tree: TopologyTree,
    *,
    depth: int | None = None,
    output: str = "text",
    chosen: list[int] | None = None,
) -> list[str]:
    view = choose_view(tree, chosen, depth=depth, prints_all=output == WIDE)
    return render_tree_text(tree, view, {}, output).splitlines()


@pytest.fixture(scope="module")
def rails(tmp_path_factory: pytest.TempPathFactory) -> Scene:
    return Scene.of(tmp_path_factory.mktemp("rails"), RAILS)


@pytest.mark.parametrize("shape", ["40x1x8", "39x1x8", "8x5x16", "64x16x4", "1x300x2", "500x1x1"])
def test_a_tree_of_any_shape_fits_a_screen(shape: str) -> None:
    lines = text_of(build_tree_of_shape(shape))
    assert MAX_ROWS / 5 < len(lines) <= MAX_ROWS + 3
    num_nodes = len(build_tree_of_shape(shape).nodes)
    assert lines[0].startswith(f"plane compute: {num_nodes} nodes ")


def test_a_level_that_does_not_fit_shows_the_first_domains_of_each_parent() -> None:
    lines = text_of(build_tree_of_shape("4x32x4"))
    assert [line for line in lines if "more" in line] == ["└─ +24 more"] * 4
    assert sum(line.startswith("spine ") for line in lines) == 4
    assert sum("─ leaf " in line for line in lines) == 32
    assert lines[-1] == "96 domains not shown: --depth 2, --domain NAME or -o wide"


def test_a_folded_domain_has_all_its_nodes_and_says_what_is_inside() -> None:
    lines = text_of(build_tree_of_shape("8x32x16"))
    assert len(lines) == 1 + 8 + 1
    assert "(512 nodes, 32 leaves): " in lines[1]
    assert lines[-1] == "256 domains not shown: --depth 2, --domain NAME or -o wide"


def test_wide_and_depth_show_what_is_folded() -> None:
    tree = build_tree_of_shape("8x32x16")
    wide, deep = text_of(tree, output=WIDE), text_of(tree, depth=2)
    assert len(wide) == len(deep) == 1 + 8 + 256
    assert len(text_of(tree, depth=1)) == 1 + 8 + 1


def test_branches_show_what_is_inside_what() -> None:
    names = [line.split(" (")[0] for line in text_of(TREE)[1:]]
    spines, leaves = TREE.domains[4:], TREE.domains[:4]
    assert names == [
        f"spine {spines[0].name}",
        f"├─ leaf {leaves[0].name}",
        f"└─ leaf {leaves[1].name}",
        f"spine {spines[1].name}",
        f"├─ leaf {leaves[2].name}",
        f"└─ leaf {leaves[3].name}",
    ]


def test_a_domain_is_printed_with_those_around_and_inside_it() -> None:
    spine = next(index for index, row in enumerate(TREE.domains) if row.tier == 2)
    assert len(text_of(TREE, chosen=[spine])) == 1 + 3
    assert len(text_of(TREE, chosen=[0])) == 1 + 2


def test_findings_mark_their_domain_and_those_around_it() -> None:
    node, switch = TREE.domains[0].nodes[0], "sw-1"
    specs = [
        DomainSpec("top", 2, None),
        DomainSpec("low", 1, "top", (node,), switches=(switch,)),
        DomainSpec("other", 1, "top", ("n9",)),
    ]
    tree = build_tree(specs, tiers=("leaf", "spine"))
    severities = [(node, Severity.ERROR), (switch, Severity.WARNING), (node, Severity.INFO)]
    findings = [
        finding_about(FindingKind.DOWN_PORT, (name,), severity=severity, message="m")
        for name, severity in severities
    ]
    marks = count_findings(tree, [*findings, findings[0]])
    lines = render_tree_text(
        tree, choose_view(tree, None, depth=None, prints_all=False), marks
    ).splitlines()
    assert [line.partition("  ! ")[2] for line in lines[1:]] == [
        "2 errors, 1 warning",
        "2 errors, 1 warning",
        "",
    ]


def test_many_unplaced_nodes_are_one_line() -> None:
    names = [f"n-{number:04}" for number in range(2_000)]
    unplaced = [Unplaced(name, f"{name} has no cable") for name in names]
    tree = build_tree([], tiers=(), unplaced=unplaced)
    lines = text_of(tree)
    assert lines[-2:] == [
        "unplaced: 2000",
        "  n-[0000-1999]: 2000 nodes like this: n-0000 has no cable",
    ]


def test_reasons_beyond_the_first_are_counted() -> None:
    unplaced = [Unplaced(f"n{number}", f"reason {number // 2}") for number in range(30)]
    lines = text_of(build_tree([], tiers=(), unplaced=unplaced))
    assert lines[-1] == "  10 nodes with other reasons: -o wide lists them"


def test_a_low_margin_is_shown_and_wide_shows_every_margin() -> None:
    specs = [
        DomainSpec("close", 1, None, ("a",), margin=0.2),
        DomainSpec("safe", 1, None, ("b",), margin=0.9),
    ]
    tree = build_tree(specs, tiers=("leaf",))
    assert ["margin" in line for line in text_of(tree)[1:]] == [True, False]
    assert ["margin" in line for line in text_of(tree, output=WIDE)[1:]] == [True, True]


def test_it_prints_the_part_of_the_tree_that_an_option_names(rails: Scene) -> None:
    tree = run("tree", rails.sweep(), "-o", "json").document
    leaf = tree["tiers"][0]["domains"][0]
    name = {"--node": leaf["nodes"][0], "--domain": leaf["name"], "--switch": leaf["switches"][0]}
    for option, value in name.items():
        found = run("tree", rails.sweep(), option, value, "-o", "json").document
        assert [row["name"] for row in found["tiers"][0]["domains"]] == [leaf["name"]]
        assert all(len(tier["domains"]) == 1 for tier in found["tiers"])
    ran = run("tree", rails.sweep(), "--domain", "no-such")
    assert (ran.code, ran.err) == (
        ExitCode.USAGE,
        "error: --domain: the tree has no 'no-such'\n",
    )


def test_it_says_why_a_node_that_is_asked_for_is_unplaced(tmp_path: Path) -> None:
    scene = Scene.of(tmp_path, RAILS)
    nodes = scene.write("nodes.yaml", scene.nodes().read_text() + "- {name: lost}\n")
    ran = run("tree", scene.sweep(), "--nodes", nodes, "--node", "lost")
    assert ran.code == ExitCode.USAGE
    assert "the tree has no 'lost': it is unplaced: " in ran.err


def test_names_are_one_a_line_and_csv_has_a_row_for_each_domain(rails: Scene) -> None:
    names = run("tree", rails.sweep(), "-o", "name").out.splitlines()
    rows = list(csv.DictReader(io.StringIO(run("tree", rails.sweep(), "-o", CSV).out)))
    assert [row["domain"] for row in rows] == names
    assert sum(int(row["num_nodes"]) for row in rows if row["tier"] == "leaf") == len(rails.hosts)
    assert {row["parent"] for row in rows} - {""} <= set(names)
