"""Koordinator's ClusterNetworkTopology.

- render: the object

Imports `topology` only.
"""

from generator.outputs.koordinator.render import render_koordinator_objects

__all__ = ["render_koordinator_objects"]
