"""A cluster of HyperNodes in memory: the target of plans, with a check of its state."""

from collections import Counter
from collections.abc import Iterable

from generator.outputs.hypernode.forest import build_hypernode_tree
from generator.outputs.hypernode.model import PLACEHOLDER, HyperNode, Member, MemberType
from generator.reconcile.hypernode_plan import Action
from topology.model.errors import StoreError
from topology.model.tree import TopologyTree


class FakeCluster:
    """Stores HyperNodes by name, and refuses the writes that an API server refuses."""

    def __init__(self, hypernodes: Iterable[HyperNode] = (), *, fails_at: str = "") -> None:
        """Start from a state; writes to the name `fails_at` are refused."""
        self.state = {found.name: found for found in hypernodes}
        self._fails_at = fails_at

    def put(self, hypernode: HyperNode, taken: HyperNode | None = None) -> bool:
        assert taken is None or self.state.get(hypernode.name) == taken
        self._refuse(hypernode.name)
        if not hypernode.members:
            raise StoreError(f"{hypernode.name}: member must have at least one member")
        is_new = self.state.get(hypernode.name) != hypernode
        self.state[hypernode.name] = hypernode
        return is_new

    def remove(self, name: str) -> bool:
        self._refuse(name)
        return self.state.pop(name, None) is not None

    def apply(self, action: Action) -> None:
        """Apply one action, whose op must be true of the state."""
        assert (action.name in self.state) == (action.op != "create")
        if action.object is None:
            self.remove(action.name)
        else:
            self.put(action.object)

    def dangling(self) -> set[tuple[str, str]]:
        """Return (parent, child) of every link to a missing HyperNode."""
        return {link for link in self.links() if link[1] not in self.state}

    def doubled(self) -> set[str]:
        """Return the HyperNodes that have two parents."""
        below = [child for _, child in self.links()]
        return {child for child in below if below.count(child) > 1}

    def disordered(self) -> set[tuple[str, str]]:
        """Return (parent, child) where the parent's tier is not above the child's."""
        return {
            (parent, child)
            for parent, child in self.links()
            if child in self.state and self.state[parent].tier <= self.state[child].tier
        }

    def shared(self) -> set[str]:
        """Return the nodes that two of our HyperNodes list."""
        listed = Counter(node for found in self._ours() for node in set(found.nodes))
        return {node for node, times in listed.items() if times > 1}

    def placed(self) -> set[str]:
        """Return the nodes that one of our HyperNodes lists."""
        return {node for found in self._ours() for node in found.nodes}

    def _ours(self) -> list[HyperNode]:
        return [found for found in self.state.values() if found.is_ours]

    def links(self) -> set[tuple[str, str]]:
        return {(found.name, child) for found in self.state.values() for child in found.children}

    def _refuse(self, name: str) -> None:
        if name == self._fails_at:
            raise StoreError(f"{name}: the webhook does not answer")


def hypernode(name: str, tier: int, *members: str) -> HyperNode:
    """Return one of our HyperNodes; its members are nodes in tier 1, HyperNodes above."""
    return HyperNode(
        name,
        tier,
        f"tier-{tier}",
        tuple(
            Member(
                MemberType.NODE if tier == 1 or member == PLACEHOLDER else MemberType.HYPERNODE,
                member,
            )
            for member in sorted(members)
        ),
    )


def tree_of(hypernodes: Iterable[HyperNode]) -> TopologyTree:
    """Return the tree of our HyperNodes among these."""
    return build_hypernode_tree(found for found in hypernodes if found.is_ours).tree
