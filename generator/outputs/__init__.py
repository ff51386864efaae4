"""A tree in the formats of its consumers. Pure.

- hypernode: HyperNodes of Volcano, from and to a tree
- node_labels: labels of nodes, one key per tier
- kueue, kai, koordinator, grove: the objects that say which key is which tier
- slurm: topology.conf and topology.yaml
- slinky, nfd: annotations and features of nodes
- graph: the tree as a document or a drawing
- formats: the formats by name, and their settings
- catalog: how a tree is rendered in each format
- owned_object: a Kubernetes object with the fields that Toponaut owns, and the names it may have

Imports `topology` only.
"""
