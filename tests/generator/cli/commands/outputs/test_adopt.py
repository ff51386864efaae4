"""`toponaut adopt`: names that stay, approval, valid states between writes, and refusals."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from generator.cli.exit_codes import ExitCode
from generator.outputs.hypernode.adoption import adopt_hypernodes, select_named
from generator.outputs.hypernode.lint import ProblemKind, find_set_problems
from generator.outputs.hypernode.model import HyperNode, parse_manifest
from tests.effort import examples
from tests.generator.folders import StoreFolder
from tests.generator.scenes import RAILS, Ran, Scene, run
from topology.model.tree import parse_tree
from topology.reports.fabric_status import fabric_head

HARMLESS = {ProblemKind.UNLISTED_NODES, ProblemKind.PLACEHOLDER, ProblemKind.TIER_NAME}
"""What may be said of a set between two writes; the last two never stop the scheduler."""
HARMLESS |= {ProblemKind.INEXACT_MEMBERS, ProblemKind.EMPTY_SELECTION, ProblemKind.TIER_GAP}


def exact(name: str) -> dict[str, Any]:
    return {"exactMatch": {"name": name}}


def regex(*names: str) -> dict[str, Any]:
    return {"regexMatch": {"pattern": f"^({'|'.join(map(re.escape, names))})$"}}


def manifest(name: str, tier: int, kind: str, *selectors: object, **labels: str) -> dict[str, Any]:
    return {
        "apiVersion": "topology.volcano.sh/v1alpha1",
        "kind": "HyperNode",
        "metadata": {"name": name, "labels": labels},
        "spec": {
            "tier": tier,
            "members": [{"type": kind, "selector": selector} for selector in selectors],
        },
    }


class Admin:
    """A folder with HyperNodes that an admin wrote, beside the reports of a fabric."""

    def __init__(self, root: Path) -> None:
        self.scene = Scene.of(root, RAILS)
        self.sweep, self.nodes = self.scene.sweep(), self.scene.nodes()
        self.store = root / "admin"
        tree = parse_tree(run("tree", self.sweep, "-o", "json").document)
        self.leaves = [domain.nodes for domain in tree.domains if domain.nodes]

    def write(self, *manifests: Mapping[str, Any]) -> None:
        folder = self.store / "hypernodes"
        folder.mkdir(parents=True, exist_ok=True)
        for file in folder.iterdir():
            file.unlink()
        for row in manifests:
            (folder / f"{row['metadata']['name']}.yaml").write_text(json.dumps(row) + "\n")

    def write_racks(self, leaves: list[tuple[str, ...]]) -> None:
        racks = [
            manifest(f"rack-{at}", 1, "Node", regex(*leaf))
            for at, leaf in enumerate(leaves)
            if leaf
        ]
        names = [row["metadata"]["name"] for row in racks]
        self.write(*racks, manifest("hall", 2, "HyperNode", *map(exact, names)))

    def adopt(self, *words: object) -> Ran:
        return run("adopt", self.sweep, "--nodes", self.nodes, "--store", self.store, *words)


@pytest.fixture
def admin(tmp_path: Path) -> Admin:
    return Admin(tmp_path)


def hypernodes_of(admin: Admin) -> dict[str, HyperNode]:
    return {row.name: row for row in StoreFolder(admin.store).read_hypernodes().values}


def test_it_takes_over_only_what_is_approved_and_keeps_the_names(admin: Admin) -> None:
    first, second, *rest = admin.leaves
    admin.write_racks([(*first, second[0]), second[1:], *rest])
    before = hypernodes_of(admin)
    held = admin.adopt("-o", "json")
    assert held.code == ExitCode.CHECK_FAILED
    assert hypernodes_of(admin) == before
    plan = held.document
    assert {f"rack-{at}" for at in range(len(admin.leaves))} <= set(plan["namesKept"])
    assert [(row["kind"], row["node"]) for row in plan["differences"]] == [
        ("other-domain", second[0])
    ]
    assert admin.adopt("--approve", "0" * 16).code == ExitCode.CHECK_FAILED
    assert hypernodes_of(admin) == before
    assert run("approve", plan["hash"], "--store", admin.store).code == ExitCode.OK
    assert admin.adopt().code == ExitCode.OK
    after = hypernodes_of(admin)
    assert all(row.is_ours and not row.num_inexact_members for row in after.values())
    assert [after[f"rack-{at}"].nodes for at in range(len(admin.leaves))] == admin.leaves
    again = run("apply", admin.sweep, "--nodes", admin.nodes, "--store", admin.store)
    assert again.out == "nothing to change\n"
    assert admin.adopt() == Ran(ExitCode.OK, "there is no HyperNode of others to take over\n", "")
    wrong = admin.adopt("--plane", "TYPO")
    assert (wrong.code, wrong.out) == (ExitCode.USAGE, "")
    assert "--plane: 'TYPO' has no ports; planes with ports: compute" in wrong.err


def test_it_refuses_what_the_fabric_does_not_want(admin: Admin) -> None:
    admin.write_racks(admin.leaves)
    before = hypernodes_of(admin)
    spec = {"outputs": [{"type": "labels"}]}
    StoreFolder(admin.store).write_fabric(fabric_head() | {"spec": spec})
    refused = admin.adopt("--approve", "0" * 16)
    assert refused.code == ExitCode.USAGE
    assert "spec.outputs of the Fabric object has no entry of type hypernode" in refused.err
    assert hypernodes_of(admin) == before


@settings(
    max_examples=examples(60),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(st.data())
def test_the_set_is_valid_after_every_write(admin: Admin, data: st.DataObject) -> None:
    nodes = [node for leaf in admin.leaves for node in leaf]
    racks = data.draw(st.lists(st.integers(0, 3), min_size=len(nodes), max_size=len(nodes)))
    leaves = [
        tuple(node for node, rack in zip(nodes, racks, strict=True) if rack == at)
        for at in range(4)
    ]
    admin.write_racks(leaves)
    state = hypernodes_of(admin)
    labels: dict[str, dict[str, str]] = {node: {} for node in nodes}
    assert not {row.kind for row in find_set_problems([*state.values()], labels)} - HARMLESS
    for action in admin.adopt("-o", "json").document["actions"]:
        if action["object"] is None:
            del state[action["name"]]
        else:
            state[action["name"]] = parse_manifest(action["object"])
        found = find_set_problems([*state.values()], labels)
        assert not {row.kind for row in found} - HARMLESS, (action, found)
    assert all(row.is_ours for row in state.values())


def test_it_keeps_the_names_in_labels(admin: Admin) -> None:
    admin.write_racks(admin.leaves)
    items = [
        {"name": node, "labels": {"x.io/hall": "h1", "x.io/rack": f"r{at}"}}
        for at, leaf in enumerate(admin.leaves)
        for node in leaf
    ]
    admin.nodes.write_text(json.dumps({"nodes": items}) + "\n")
    plan = admin.adopt("-o", "json", "--names-in", "x.io/hall,x.io/rack").document
    assert {f"r{at}" for at in range(len(admin.leaves))} <= set(plan["namesKept"])


def test_it_names_what_stays_foreign(admin: Admin) -> None:
    first, *_ = admin.leaves
    source = {"volcano.sh/network-topology-source": "ufm"}
    admin.write(
        manifest("leaf-hn-0", 1, "Node", exact(first[0]), **source),
        manifest("rack", 1, "Node", exact(first[1])),
    )
    ran = admin.adopt("-o", "json")
    assert ran.document["takenOver"] == ["rack"]
    assert "leaf-hn-0: stays as it is: disable the source ufm" in ran.err


def test_patterns_need_nodes() -> None:
    rows = [parse_manifest(manifest("rack", 1, "Node", regex("n1")))]
    adoption = adopt_hypernodes(rows, None)
    assert (adoption.taken, len(adoption.problems)) == ((), 1)
    assert adopt_hypernodes(rows, {"n1": {}}).claimed[0].nodes == ("n1",)


def test_names_that_toponaut_may_not_write_are_not_kept() -> None:
    rows = [
        parse_manifest(manifest(name, 0, "Node", exact("n1")))
        for name in ("leaf-hn-1", "x" * 100, "rack")
    ]
    claimed = adopt_hypernodes(rows, {}).claimed
    assert [(row.name, row.tier) for row in select_named(claimed)] == [("rack", 1)]


def test_a_hypernode_that_changed_since_is_not_taken_over(admin: Admin) -> None:
    admin.write_racks(admin.leaves)
    opened = StoreFolder(admin.store)
    seen = hypernodes_of(admin)["rack-0"]
    (claimed,) = adopt_hypernodes([seen], {node: {} for node in admin.leaves[0]}).claimed
    admin.write(manifest("rack-0", 1, "Node", exact("other")))
    with pytest.raises(Exception, match="was changed; plan again"):
        opened.put(claimed, seen)
    assert hypernodes_of(admin)["rack-0"].nodes == ("other",)
