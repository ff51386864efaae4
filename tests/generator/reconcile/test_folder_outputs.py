"""Outputs as files: what a reader cannot hold is named, and no empty file replaces a good one."""

from pathlib import Path

import pytest

from generator.objects.outputs import Output, OutputState, OutputType
from generator.reconcile.folder_outputs import FOLDER, FolderPublisher
from generator.reconcile.output_outcomes import OutputsOutcome
from generator.reconcile.outputs import PublishRequest
from generator.reconcile.rendered import KINDS, render_outputs
from generator.store import object_files
from topology.model.tree import DomainSpec, TopologyTree, build_tree

LONG = "gpu-node-0000.cluster-a.building-1.prod.internal.operator-net.example"
OF_SLURM = (OutputType.SLURM_TREE, OutputType.SLURM_BLOCK, OutputType.SLURM_YAML)
EVERY = tuple(Output(type=kind) for kind in KINDS)


def build(**leaves: tuple[str, ...]) -> TopologyTree:
    specs = [DomainSpec(name, 1, "spine-1", nodes) for name, nodes in leaves.items()]
    return build_tree([DomainSpec("spine-1", 2, None), *specs], tiers=("leaf", "spine"))


def update(folder: Path, tree: TopologyTree) -> OutputsOutcome:
    publisher = FolderPublisher(folder, namespace="ns")
    return publisher.update(PublishRequest(tree, EVERY))


def files(folder: Path) -> dict[str, str]:
    root = folder / FOLDER
    return {
        str(path.relative_to(root)): path.read_text()
        for path in sorted(root.rglob("*"))
        if path.is_file()
    }


def test_each_output_is_one_file(tmp_path: Path) -> None:
    outcome = update(tmp_path, build(a=("n1",), b=("n2",)))
    assert len(files(tmp_path)) == len(KINDS)
    assert all(row.state is OutputState.WRITTEN for row in outcome.rows)


def test_a_domain_without_a_usable_node_is_left_out_and_its_nodes_are_named(
    tmp_path: Path,
) -> None:
    outcome = update(tmp_path, build(a=(LONG,), b=("n2",)))
    written = files(tmp_path)
    assert "SwitchName=spine-1 Switches=b\n" in written["slurm-tree/topology.conf"]
    assert "children: b\n" in written["slurm-yaml/topology.yaml"]
    for row in outcome.outputs:
        is_named = row.type in {*OF_SLURM, OutputType.SLINKY, OutputType.NFD}
        assert (f"names that cannot be written: {LONG}" in row.problem) is is_named
        assert row.num_current == 1
        assert row.state is (OutputState.REFUSED if is_named else OutputState.WRITTEN)


def test_a_file_above_the_limit_of_objects_is_written_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(object_files, "MAX_FILE_BYTES", 10)
    tree = build(a=("n1",), b=("n2",))
    update(tmp_path, tree)
    before = [(path, path.stat().st_ino) for path in sorted((tmp_path / FOLDER).rglob("*.*"))]
    outcome = update(tmp_path, tree)
    after = [(path, path.stat().st_ino) for path in sorted((tmp_path / FOLDER).rglob("*.*"))]
    assert after == before, "the same files, not equal ones"
    assert all(row.state is OutputState.WRITTEN for row in outcome.rows)


def test_an_empty_file_never_replaces_a_good_one(tmp_path: Path) -> None:
    update(tmp_path, build(a=("n1",), b=("n2",)))
    before = files(tmp_path)
    outcome = update(tmp_path, build(a=(LONG,)))
    after = files(tmp_path)
    for row in outcome.outputs:
        (name,) = (name for name in before if name.startswith(f"{row.type}/"))
        if row.type in {*OF_SLURM, OutputType.SLINKY, OutputType.NFD}:
            assert "what exists stays" in row.problem
            assert after[name] == before[name]
        else:
            assert row.problem == ""


@pytest.mark.parametrize("kind", [*OF_SLURM, OutputType.SLINKY, OutputType.NFD])
def test_objects_in_a_cluster_stay_as_well(kind: OutputType) -> None:
    (row,) = render_outputs(build(a=(LONG,)), [Output(type=kind)], namespace="ns")
    assert row.sets == ()
    assert LONG in row.problem
    assert "what exists stays" in row.problem
