"""Labels of nodes: one key per tier, one value per domain.

- keys: the keys of the tiers, Toponaut's own and those that other tools read
- values: the names of domains as label values
- render: the labels of each node

Imports `topology`, and the names of padding from `hypernode`.
"""

from generator.outputs.node_labels.keys import (
    DEFAULT_PREFIX,
    LabelFamily,
    build_tier_keys,
    check_label_prefix,
    list_label_keys,
    list_level_keys,
)
from generator.outputs.node_labels.render import (
    NodeLabels,
    render_label_objects,
    render_node_labels,
)

__all__ = [
    "DEFAULT_PREFIX",
    "LabelFamily",
    "NodeLabels",
    "build_tier_keys",
    "check_label_prefix",
    "list_label_keys",
    "list_level_keys",
    "render_label_objects",
    "render_node_labels",
]
