"""NodeFeature objects of Node Feature Discovery.

- render: the objects

Imports `topology` and `node_labels`.
"""

from generator.outputs.nfd.render import FEATURE, render_nfd_objects

__all__ = ["FEATURE", "render_nfd_objects"]
