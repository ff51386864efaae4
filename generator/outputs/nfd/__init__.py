"""NodeFeature objects of Node Feature Discovery.

- render: the objects

Imports `topology` and `node_labels`.
"""

from generator.outputs.nfd.render import FEATURE, NODE_LABEL, is_feature_node, render_nfd_objects

__all__ = ["FEATURE", "NODE_LABEL", "is_feature_node", "render_nfd_objects"]
