"""Grove's ClusterTopologyBinding.

- render: the object

Imports `topology` and `node_labels`.
"""

from generator.outputs.grove.render import render_grove_objects

__all__ = ["render_grove_objects"]
