"""The rules of writes on a folder, and what a folder has beside them."""

from pathlib import Path

import pytest

from generator.store.fabric_store import FabricStore
from generator.store.folder_store import FolderStore
from generator.store.kinds import HYPERNODES
from generator.store.object_store import StoreFenced
from tests.generator.folders import StoreFolder, parse_fabric_document
from tests.generator.reconcile.cluster import hypernode
from tests.generator.store.store_rules import HASH, OpenStore, StoreRules
from topology.model.errors import StoreError

LEAF, MORE = hypernode("leaf-1", 1, "a"), hypernode("leaf-1", 1, "a", "b")


@pytest.fixture
def store(tmp_path: Path) -> StoreFolder:
    return StoreFolder(tmp_path)


class TestFolderStore(StoreRules):
    """A folder, as commands read and write it."""

    @pytest.fixture
    def open_store(self, tmp_path: Path) -> OpenStore:
        """Opens the store of an empty folder."""

        def opened(*, is_shared: bool = False) -> FabricStore:
            return FabricStore(FolderStore(tmp_path), is_shared=is_shared)

        return opened


def test_an_approval_creates_a_complete_object(store: StoreFolder) -> None:
    store.approve(HASH)
    assert parse_fabric_document(store.read_fabric()).metadata.name == "default"
    store.consume_approval(HASH)
    assert "annotations" not in (store.read_fabric() or {})["metadata"]


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
