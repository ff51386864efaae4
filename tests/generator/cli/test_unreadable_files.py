"""What cannot be read, or is not ours, is never written: it is a conflict that is named."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from generator.cli.exit_codes import ExitCode
from tests.generator.folders import StoreFolder
from tests.generator.reconcile.cluster import hypernode
from tests.generator.scenes import Scene, run
from topology.model.errors import StoreError
from topology.synthetic import FabricKind, SyntheticSpec

SMALL = SyntheticSpec(FabricKind.FAT_TREE, 8, radix=4)
OTHER = {
    "apiVersion": "topology.volcano.sh/v1alpha1",
    "kind": "HyperNode",
    "metadata": {"name": "another-name"},
    "spec": {"tier": 1, "members": []},
}
CONTENTS = {
    "a typo": b"apiVersion: topology.volcano.sh/v1alpha1\nkind: HyperNode\nmetadata: {name: leaf",
    "a wrong field": yaml.safe_dump(
        OTHER | {"metadata": {"name": "leaf-g01"}, "spec": {"tier": "one"}}
    ).encode(),
    "another kind": b"kind: ConfigMap\napiVersion: v1\nmetadata: {name: leaf-g01}\n",
    "another name": yaml.safe_dump(OTHER).encode(),
    "two objects": yaml.safe_dump_all([OTHER, OTHER]).encode(),
    "no label of ours": yaml.safe_dump(OTHER | {"metadata": {"name": "leaf-g01"}}).encode(),
    "nothing": b"",
    "bytes that are no text": b"\xff\xfe\x00kind",
}


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return Scene.of(tmp_path, SMALL).store()


@pytest.mark.parametrize("content", CONTENTS.values(), ids=CONTENTS.keys())
def test_it_keeps_a_file_that_is_not_its_own(store: Path, content: bytes) -> None:
    file = store / "hypernodes" / "leaf-g01.yaml"
    file.parent.mkdir(exist_ok=True)
    file.write_bytes(content)
    ran = run("apply", "--store", store)
    assert ran.code == ExitCode.SKIPPED
    assert file.read_bytes() == content
    assert "HyperNode leaf-g01 is left out: the foreign HyperNode leaf-g01 " in ran.err
    others = {one.name for one in StoreFolder(store).read_hypernodes().values if one.is_ours}
    assert "leaf-g02" in others, "all others are written"
    assert run("plan", "--store", store, "-o", "json").document == []


def test_it_writes_its_own_file_again_once_the_bad_one_is_gone(store: Path) -> None:
    assert run("apply", "--store", store).code == ExitCode.OK
    file = store / "hypernodes" / "leaf-g01.yaml"
    before = file.read_bytes()
    file.write_bytes(CONTENTS["a typo"])
    assert run("apply", "--store", store).code == ExitCode.SKIPPED
    file.unlink()
    assert run("apply", "--store", store).code == ExitCode.OK
    assert file.read_bytes() == before


@pytest.mark.parametrize("content", CONTENTS.values(), ids=CONTENTS.keys())
def test_it_refuses_to_write_or_delete_such_a_file_that_appears_late(
    tmp_path: Path, content: bytes
) -> None:
    folder = StoreFolder(tmp_path)
    file = folder.hypernodes / "leaf-g01.yaml"
    file.parent.mkdir()
    file.write_bytes(content)
    with pytest.raises(StoreError, match="stays unchanged"):
        folder.put(hypernode("leaf-g01", 1, "a"))
    with pytest.raises(StoreError, match="stays unchanged"):
        folder.remove("leaf-g01")
    assert file.read_bytes() == content


def test_it_keeps_a_link_and_its_target(store: Path, tmp_path: Path) -> None:
    target = tmp_path / "precious"
    target.write_text("keep")
    file = store / "hypernodes" / "leaf-g01.yaml"
    file.parent.mkdir()
    file.symlink_to(target)
    assert run("apply", "--store", store).code == ExitCode.SKIPPED
    assert file.is_symlink()
    assert target.read_text() == "keep"
