"""Claims to an inference in one step, and damaged fabrics drawn at random."""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, TypeVar

from tests.topology.compute_trees import infer_compute_tree
from tests.topology.synthetic.fabrics import seeded
from topology.inference.tree_inference import Inference
from topology.join.fabric_join import build_fabric
from topology.model.claims import Claim, Origin
from topology.model.errors import ConfigError
from topology.model.facts import Device, DeviceKind, Medium
from topology.model.ids import Id, IdKind
from topology.model.tree import TopologyTree
from topology.synthetic import (
    DamagedFabric,
    FabricKind,
    FaultSpec,
    NamePolicy,
    SyntheticSpec,
    build_wiring,
    damage_fabric,
    render_inventory,
    report_claims,
    sweep_devices,
)


def collect_claims(damaged: DamagedFabric) -> list[Claim]:
    """Return the claims of all sources of a fabric, each with its device."""
    rows = render_inventory(damaged)["nodes"]
    reports = [Claim(row.device, Origin.REPORT) for row in report_claims(damaged)]
    swept = sweep_devices(damaged) if damaged.wiring.spec.medium is Medium.INFINIBAND else []
    return [*map(_list_node, rows), *reports, *(Claim(device, Origin.SWEEP) for device in swept)]


def _list_node(row: dict[str, Any]) -> Claim:
    ids = [Id(IdKind(item["type"]), item["value"]) for item in row["ids"]]
    ids.append(Id(IdKind.NODE_NAME, row["name"]))
    return Claim(Device(DeviceKind.HOST, row["name"], tuple(sorted(ids))), Origin.INVENTORY)


def infer_from(claims: Iterable[Claim], previous: TopologyTree | None = None) -> Inference:
    """Return the inference from claims."""
    return infer_compute_tree(build_fabric(claims), previous=previous)


class Scene(NamedTuple):
    """One damaged fabric of the grid."""

    title: str
    damaged: DamagedFabric


ItemT = TypeVar("ItemT")


def draw_scene(seed: int) -> Scene | None:
    """Return the fabric of a seed; None if its numbers do not fit together."""
    rng = seeded(seed)

    def one_of(items: Sequence[ItemT]) -> ItemT:
        return rng.sample(items, 1)[0]

    spec = SyntheticSpec(
        one_of(list(FabricKind)),
        one_of(range(8, 65)),
        rails=one_of((2, 4, 8)),
        radix=one_of((8, 10, 12, 16)),
        tiers=one_of((None, 2, 3)),
        medium=one_of((Medium.INFINIBAND, Medium.ETHERNET)),
        names=one_of(list(NamePolicy)),
    )
    faults = FaultSpec(
        lose_links=one_of((0.0, 0.01, 0.03, 0.05, 0.1)),
        num_swaps=one_of((0, 0, 1, 2, 3)),
        silent=one_of((0.0, 0.0, 0.05, 0.1)),
        lose_switches=one_of((0, 0, 0, 1)),
    )
    try:
        return Scene(f"{seed}: {spec} {faults}", damage_fabric(build_wiring(spec), faults, rng))
    except ConfigError:
        return None
