"""Kueue's Topology, and a ResourceFlavor that uses it.

- render: the objects

Imports `topology` and `node_labels`.
"""

from generator.outputs.kueue.render import (
    MAX_FLAVOR_LABELS,
    FlavorSpec,
    render_kueue_objects,
)

__all__ = ["MAX_FLAVOR_LABELS", "FlavorSpec", "render_kueue_objects"]
