"""Slinky's node annotation, from which its operator sets the topology of a Slurm node.

- render: the annotation of each node

Imports `topology` and `slurm`.
"""

from generator.outputs.slinky.render import ANNOTATION, render_slinky_objects

__all__ = ["ANNOTATION", "render_slinky_objects"]
