"""The rules of writes that hold in a folder and in a cluster: one suite, run on each."""

from typing import Protocol

import pytest

from generator.objects.tree_record import RecentChanges, TreeRecord
from generator.objects.write_policy import parse_write_policy
from generator.outputs.hypernode.model import OWN_LABELS, HyperNode, Member, MemberType
from generator.store.fabric_store import FabricStore
from generator.store.kinds import FABRICS, HYPERNODES
from generator.store.object_store import ForeignObject, StoreConflict
from tests.generator.reconcile.cluster import tree_of
from topology.model.errors import KubeConflict
from topology.reports.fabric_status import fabric_head

HASH = "0123456789abcdef"
LEAF = HyperNode("rules-leaf", 1, "leaf", (Member(MemberType.NODE, "n1"),), OWN_LABELS)
MORE = HyperNode(
    "rules-leaf", 1, "leaf", (*LEAF.members, Member(MemberType.NODE, "n2")), OWN_LABELS
)


class OpenStore(Protocol):
    """Opens the same store as another program."""

    def __call__(self, *, is_shared: bool = False) -> FabricStore:
        """Return a store that has read nothing yet."""
        ...


class StoreRules:
    """Tests of any store; a subclass has the fixture `open_store`, of a store without objects."""

    def test_it_writes_replaces_and_removes_a_hypernode(self, open_store: OpenStore) -> None:
        store = open_store()
        assert [store.put(LEAF), store.put(LEAF), store.put(MORE)] == [True, False, True]
        assert MORE in open_store().read_hypernodes().values
        assert [store.remove(LEAF.name), store.remove(LEAF.name)] == [True, False]

    def test_it_touches_no_hypernode_of_others(self, open_store: OpenStore) -> None:
        store = open_store()
        document = {
            "apiVersion": "topology.volcano.sh/v1alpha1",
            "kind": "HyperNode",
            "metadata": {"name": LEAF.name},
            "spec": {
                "tier": 1,
                "members": [{"type": "Node", "selector": {"exactMatch": {"name": "n1"}}}],
            },
        }
        seen = store.objects.create(HYPERNODES, document)
        with pytest.raises(ForeignObject, match=f"{LEAF.name} stays unchanged: it is not managed"):
            store.put(LEAF)
        with pytest.raises(ForeignObject, match=f"{LEAF.name} stays unchanged: it is not managed"):
            store.remove(LEAF.name)
        with pytest.raises((StoreConflict, KubeConflict)):
            store.objects.create(HYPERNODES, document)
        (theirs,) = store.read_hypernodes().values
        with pytest.raises(ForeignObject, match="was changed; plan again"):
            store.put(LEAF, MORE)
        assert store.put(LEAF, theirs)
        assert store.objects.delete(HYPERNODES, seen._replace(version=""))

    def test_a_write_of_an_object_that_has_changed_is_a_conflict(
        self, open_store: OpenStore
    ) -> None:
        store = open_store()
        store.put(LEAF)
        seen = store.objects.get(HYPERNODES, LEAF.name)
        assert seen is not None
        store.put(MORE)
        with pytest.raises((StoreConflict, KubeConflict)):
            store.objects.patch(
                HYPERNODES, LEAF.name, {"metadata": {"labels": {"a": "b"}}}, seen=seen
            )
        with pytest.raises((StoreConflict, KubeConflict)):
            store.objects.delete(HYPERNODES, seen)
        assert store.read_hypernodes().values == (MORE,)

    def test_a_status_is_replaced_and_the_rest_stays(self, open_store: OpenStore) -> None:
        store = open_store()
        store.objects.create(FABRICS, fabric_head() | {"spec": {"paused": True}})
        assert store.write_status({"generation": 1, "unplaced": 2})
        store.approve(HASH)
        assert store.write_status({"generation": 2})
        assert not store.write_status({"generation": 2})
        document = open_store().read_fabric() or {}
        assert (document["spec"]["paused"], document["status"]) == (True, {"generation": 2})
        assert parse_write_policy(document).is_approved(HASH)

    def test_a_status_creates_the_object(self, open_store: OpenStore) -> None:
        assert open_store().read_fabric() is None
        assert open_store().write_status({"generation": 1})
        assert (open_store().read_fabric() or {})["status"] == {"generation": 1}

    def test_an_approval_is_for_one_time_and_changes_no_other_field(
        self, open_store: OpenStore
    ) -> None:
        store = open_store()
        metadata = {"name": "default", "labels": {"a": "b"}, "annotations": {"team": "x"}}
        store.objects.create(FABRICS, fabric_head() | {"metadata": metadata, "spec": {}})
        store.approve(HASH)
        assert parse_write_policy(store.read_fabric()).is_approved(HASH)
        assert not store.consume_approval(HASH[::-1])
        assert store.consume_approval(HASH)
        assert not store.consume_approval(HASH)
        kept = (store.read_fabric() or {})["metadata"]
        assert (kept["labels"], kept["annotations"]) == ({"a": "b"}, {"team": "x"})

    def test_two_programs_do_not_decide_from_one_record(self, open_store: OpenStore) -> None:
        """Otherwise the second would forget the first one's changes, and the budget with them."""
        first, second = open_store(), open_store()
        for number in range(2):
            assert first.read_record() == second.read_record()
            moved = RecentChanges({f"n{number}": number})
            first.write_record(TreeRecord(tree_of([LEAF]), moved))
            with pytest.raises(ForeignObject, match="another program decided"):
                second.write_record(TreeRecord(tree_of([MORE])))
            assert first.read_record().record == TreeRecord(tree_of([LEAF]), moved)
        second.read_record()
        assert second.write_record(TreeRecord(tree_of([MORE])))
        assert not second.write_record(TreeRecord(tree_of([MORE])))
        assert open_store().read_record().record == TreeRecord(tree_of([MORE]))

    def test_it_writes_nothing_once_another_program_has_decided(
        self, open_store: OpenStore
    ) -> None:
        first, second = open_store(is_shared=True), open_store(is_shared=True)
        first.read_record()
        first.write_record(TreeRecord(tree_of([LEAF])))
        assert first.put(LEAF)
        second.read_record()
        second.write_record(TreeRecord(tree_of([MORE])))
        assert second.put(MORE)
        with pytest.raises(ForeignObject, match="another program has decided"):
            first.put(LEAF)
        with pytest.raises(ForeignObject, match="another program has decided"):
            first.remove(LEAF.name)
        with pytest.raises(ForeignObject, match="another program has decided"):
            first.put(LEAF, MORE)
        assert second.read_hypernodes().values == (MORE,)
