"""A tree in the formats of its consumers. Pure.

- hypernode: HyperNodes of Volcano, from and to a tree

Imports `topology` only.
"""
