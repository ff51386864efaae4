"""Volcano's HyperNodes.

- model: one HyperNode, and its manifest in both directions
- forest: the HyperNodes of a tree, and the tree of HyperNodes
- lint: problems in a set of HyperNodes, also on the nodes of a cluster
- selectors: members by patterns, as Go reads them, and labels; the only module that imports RE2
- adoption: HyperNodes of others as Toponaut takes them over

Imports `topology` and RE2 only.
"""
