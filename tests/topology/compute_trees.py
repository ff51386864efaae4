"""The compute plane of a fabric without policies, and its tree."""

from __future__ import annotations

from topology.inference.tree_inference import Inference, infer_tree
from topology.model.fabric import Fabric
from topology.model.tree import TopologyTree
from topology.planes.plane import Plane
from topology.planes.plane_split import split_planes
from topology.planes.policy import COMPUTE


def select_compute_plane(fabric: Fabric) -> Plane:
    return split_planes(fabric).plane(COMPUTE)


def infer_compute_tree(fabric: Fabric, previous: TopologyTree | None = None) -> Inference:
    return infer_tree(fabric, select_compute_plane(fabric), previous=previous)
