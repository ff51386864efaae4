"""KAI's Topology.

- render: the object

Imports `topology` and `node_labels`.
"""

from generator.outputs.kai.render import render_kai_objects

__all__ = ["render_kai_objects"]
