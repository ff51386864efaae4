"""The tree as a plain document or a drawing, for tools that read neither labels nor HyperNodes.

- config_map: the TopologyTree, or any text, in a ConfigMap
- topograph: topograph's JSON of instances and their layers
- diagram: the languages of Graphviz and GraphML

Imports `topology` only.
"""

from generator.outputs.graph.config_map import render_text_config_map, render_tree_config_map
from generator.outputs.graph.diagram import MAX_LABEL, render_dot, render_graphml
from generator.outputs.graph.topograph import render_topograph

__all__ = [
    "MAX_LABEL",
    "render_dot",
    "render_graphml",
    "render_text_config_map",
    "render_topograph",
    "render_tree_config_map",
]
