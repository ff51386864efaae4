"""Random small clusters and jobs, as scenes for the referee and as inputs for the engine."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from generator.placement.cluster.nodes import NodeSpec, RunningGang, RunningPods
from generator.placement.cluster.snapshot import Snapshot, build_snapshot
from generator.placement.presets import Preset
from tests.generator.placement.referee import Layer, Leaf, Own, Scene
from topology.model.tree import API_VERSION, DomainSpec, TopologyTree, build_tree

TIERS = ("leaf", "spine", "core")
Paths = dict[str, tuple[int | None, ...]]
RANKS = st.one_of(st.none(), st.integers(0, 5))


def tree_of(paths: Paths, tiers: tuple[str, ...]) -> TopologyTree:
    """Return the tree of nodes with one label per tier, bottom-up."""
    specs: dict[tuple[int, tuple[int | None, ...]], list[str]] = {}
    for node, path in paths.items():
        lowest = min(tier for tier, label in enumerate(path) if label is not None)
        for tier in range(lowest, len(path)):
            if path[tier] is not None:
                specs.setdefault((tier, path[tier:]), [])
        specs[lowest, path[lowest:]].append(node)
    return build_tree(
        [
            DomainSpec(_name(tier, path), tier + 1, _parent(tier, path), tuple(nodes))
            for (tier, path), nodes in specs.items()
        ],
        tiers=tiers,
    )


def _name(tier: int, path: tuple[int | None, ...]) -> str:
    return f"t{tier}-" + "-".join("x" if label is None else str(label) for label in path)


def _parent(tier: int, path: tuple[int | None, ...]) -> str | None:
    above = [k for k in range(1, len(path)) if path[k] is not None]
    return _name(tier + above[0], path[above[0] :]) if above else None


@st.composite
def paths(draw: st.DrawFn, *, most_nodes: int) -> Paths:
    """Draw nodes with labels, including islands, missing levels and nodes high in the tree."""
    depth = draw(st.integers(1, 3))
    count = draw(st.integers(2, most_nodes))
    label = st.sampled_from([0, 0, 1, 1, 2, None]) if draw(st.booleans()) else st.integers(0, 1)
    found: Paths = {}
    for index in range(count):
        path = tuple(draw(label) for _ in range(depth))
        found[f"n{index}"] = path if any(row is not None for row in path) else (0,) * depth
    return found


@st.composite
def scenes(draw: st.DrawFn, *, most_nodes: int = 5) -> Scene:
    """Draw a cluster and a job for which the referee can try every placement.

    In half of the scenes, pods of the job run already.
    """
    found = draw(paths(most_nodes=most_nodes))
    depth = len(next(iter(found.values())))
    tree, tier = tree_of(found, TIERS[:depth]), st.integers(0, depth + 1)
    is_growing = draw(st.booleans())
    groups = [
        Leaf(
            f"g{index}",
            count=(count := draw(st.integers(1, 4 if number == 1 else 2))),
            least=draw(st.sampled_from([count, count, 1])),
            layers=draw(_layers(depth, 4)) if is_growing or draw(st.booleans()) else (),
            required=draw(st.sampled_from([None, None, None, 1, depth])),
        )
        for number in [draw(st.sampled_from([1, 1, 2]))]
        for index in range(number)
    ]
    own = st.builds(
        Own,
        st.sampled_from([group.name for group in groups]),
        st.sampled_from(tree.nodes),
        RANKS,
    )
    return Scene(
        nodes=tree.nodes,
        paths=found,
        slots={node: draw(st.integers(0, 3)) for node in found},
        groups=tuple(groups),
        own=tuple(draw(st.lists(own, min_size=1, max_size=4))) if is_growing else (),
        required=draw(st.one_of(st.none(), st.none(), tier)),
        strategies=tuple(draw(st.lists(st.tuples(tier, tier), max_size=3)))
        if draw(st.booleans())
        else (),
        has_cluster=draw(st.booleans()),
        spares_islands=draw(st.booleans()),
    )


@st.composite
def _layers(draw: st.DrawFn, depth: int, count: int) -> tuple[Layer, ...]:
    """Draw one layer of slices, or two."""
    size = draw(st.sampled_from([1, 2, 2, 3]))
    tiers = st.sampled_from([None, None, 0, 1, depth])
    fine = Layer(size, draw(tiers), draw(st.booleans()), draw(st.booleans()))
    if count <= size or draw(st.booleans()):
        return (fine,)
    return (Layer(2 * size, draw(tiers), draw(st.booleans()), draw(st.booleans())), fine)


def snapshot_of(scene: Scene) -> Snapshot:
    """Return the snapshot of a scene's cluster."""
    own: dict[str, int] = {}
    for pod in scene.own:
        own[pod.node] = own.get(pod.node, 0) + 1
    nodes = {
        node: NodeSpec(
            node,
            capacity={"slots": scene.slots[node] + own.get(node, 0)},
        )
        for node in scene.nodes
    }
    pods = tuple(
        RunningPods(pod.node, {"slots": 1}, 1, pod.group, () if pod.rank is None else (pod.rank,))
        for pod in scene.own
    )
    running = [RunningGang("job", pods)] if pods else []
    return build_snapshot(tree_of(scene.paths, TIERS[: scene.root - 1]), nodes, running)


def document_of(scene: Scene, preset: Preset) -> dict[str, Any]:
    """Return a scene's job as a request document."""
    names = ("node", *TIERS[: scene.root - 1], "cluster")
    spec: dict[str, Any] = {
        "preset": preset.value,
        "gang": "job",
        "groups": [_group_row(group, names) for group in scene.groups],
        "strategies": [[names[a], names[b]] for a, b in scene.strategies],
        "across_islands": scene.has_cluster,
        "options": {"spare_islands": scene.spares_islands},
    }
    if scene.required is not None:
        spec["required"] = names[scene.required]
    return {"apiVersion": API_VERSION, "kind": "PlacementRequest", "spec": spec}


def _group_row(group: Leaf, names: tuple[str, ...]) -> dict[str, Any]:
    row: dict[str, Any] = {
        "name": group.name,
        "count": group.count,
        "min": group.least,
    }
    if group.required is not None:
        row["required"] = names[group.required]
    row["slices"] = [
        {"size": layer.size, "indexed": layer.is_indexed}
        | ({"remainder": "short"} if layer.has_short else {})
        | ({} if layer.tier is None else {"tier": names[layer.tier]})
        for layer in group.layers
    ]
    return row
