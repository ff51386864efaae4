"""The rules of writes, on a folder; tests/kube has them on a cluster."""

from pathlib import Path

import pytest

from generator.objects.fabric import parse_fabric_document
from generator.objects.tree_record import TreeRecord
from generator.objects.write_policy import parse_write_policy
from generator.store.fabric_store import FabricStore
from generator.store.folder_store import FolderStore
from generator.store.kinds import HYPERNODES
from generator.store.object_store import ForeignObject, StoreConflict, StoreFenced
from tests.generator.folders import StoreFolder
from tests.generator.reconcile.cluster import hypernode, tree_of
from topology.model.errors import StoreError

HASH = "0123456789abcdef"
LEAF, MORE = hypernode("leaf-1", 1, "a"), hypernode("leaf-1", 1, "a", "b")


@pytest.fixture
def store(tmp_path: Path) -> StoreFolder:
    return StoreFolder(tmp_path)


def test_an_approval_changes_no_other_field(store: StoreFolder) -> None:
    document = {
        "apiVersion": "toponaut.io/v1alpha1",
        "kind": "Fabric",
        "metadata": {"name": "default", "labels": {"a": "b"}, "annotations": {"team": "x"}},
        "spec": {"paused": True},
        "status": {"sweepers": []},
    }
    store.write_fabric(document)
    store.approve(HASH)
    assert parse_write_policy(store.read_fabric()).is_approved(HASH)
    assert not store.consume_approval(HASH[::-1])
    assert store.consume_approval(HASH)
    assert store.read_fabric() == document
    assert not store.consume_approval(HASH), "it is for one time"


def test_an_approval_creates_a_complete_object(store: StoreFolder) -> None:
    store.approve(HASH)
    assert parse_fabric_document(store.read_fabric()).metadata.name == "default"
    store.consume_approval(HASH)
    assert "annotations" not in (store.read_fabric() or {})["metadata"]


def test_a_status_is_replaced_and_the_rest_stays(store: StoreFolder) -> None:
    assert store.write_status({"generation": 1, "unplaced": 2})
    store.approve(HASH)
    assert store.write_status({"generation": 2})
    assert not store.write_status({"generation": 2})
    document = store.read_fabric() or {}
    assert document["status"] == {"generation": 2}
    assert parse_write_policy(document).is_approved(HASH)


def test_two_programs_do_not_decide_from_one_record(tmp_path: Path) -> None:
    first, second = StoreFolder(tmp_path), StoreFolder(tmp_path)
    assert first.read_record() == second.read_record()
    assert first.write_record(TreeRecord(tree_of([LEAF])))
    with pytest.raises(ForeignObject, match="another program decided"):
        second.write_record(TreeRecord(tree_of([MORE])))
    second.read_record()
    assert second.write_record(TreeRecord(tree_of([MORE])))
    assert not second.write_record(TreeRecord(tree_of([MORE])))


def test_a_shared_store_writes_nothing_once_another_program_has_decided(tmp_path: Path) -> None:
    first = FabricStore(FolderStore(tmp_path), is_shared=True)
    first.read_record()
    first.write_record(TreeRecord(tree_of([LEAF])))
    assert first.put(LEAF)
    second = StoreFolder(tmp_path)
    second.read_record()
    second.write_record(TreeRecord(tree_of([MORE])))
    with pytest.raises(ForeignObject, match="another program has decided"):
        first.put(MORE)
    with pytest.raises(ForeignObject, match="another program has decided"):
        first.remove("leaf-1")
    assert second.read_hypernodes().hypernodes == (LEAF,)


def test_a_write_of_an_object_that_has_changed_is_a_conflict(store: StoreFolder) -> None:
    store.put(LEAF)
    seen = store.objects.get(HYPERNODES, "leaf-1")
    assert seen is not None
    store.put(MORE)
    with pytest.raises(StoreConflict, match="has changed since it was read"):
        store.objects.apply(HYPERNODES, seen.value, seen=seen)
    with pytest.raises(StoreConflict):
        store.objects.delete(HYPERNODES, seen)
    assert store.read_hypernodes().hypernodes == (MORE,)


def test_a_server_that_was_replaced_writes_nothing(tmp_path: Path) -> None:
    first, second = FolderStore(tmp_path), FolderStore(tmp_path)
    first.begin_epoch()
    assert FabricStore(first).put(LEAF)
    second.begin_epoch()
    with pytest.raises(StoreFenced, match="another server has begun to write it since"):
        FabricStore(first).put(MORE)
    assert FabricStore(second).put(MORE)
    assert (first.epoch, second.epoch) == (1, 2)


def test_a_lease_that_cannot_be_read_stops_a_server(tmp_path: Path) -> None:
    FolderStore(tmp_path).begin_epoch()
    (tmp_path / "leases" / "toponaut-generator.yaml").write_text("spec: [")
    with pytest.raises(StoreError, match=r"toponaut-generator\.yaml"):
        FolderStore(tmp_path).begin_epoch()


def test_a_listing_is_the_same_value_until_a_file_changes(store: StoreFolder) -> None:
    store.put(LEAF)
    before = store.objects.read(HYPERNODES)
    assert store.objects.read(HYPERNODES) is before
    file = store.hypernodes / "leaf-1.yaml"
    file.write_text(file.read_text() + "# a note\n")
    assert store.objects.read(HYPERNODES) is not before


def test_the_last_good_inventory_counts_while_the_file_is_unreadable(tmp_path: Path) -> None:
    nodes = tmp_path / "nodes.yaml"
    nodes.write_text("nodes: [{name: n1}]\n")
    store = StoreFolder(tmp_path / "store", nodes)
    good = store.read_inventory()
    assert good is not None
    nodes.write_text("nodes: []\n\n")
    for _ in range(2):
        found = store.read_inventory()
        assert found is not None
        assert found.nodes == good.nodes
        assert "no nodes in this file" in str(found.problems[0])
    nodes.write_text("nodes: [{name: n1}, {name: n2}]\n")
    found = store.read_inventory()
    assert found is not None
    assert [node.name for node in found.nodes] == ["n1", "n2"]
    assert not found.problems
