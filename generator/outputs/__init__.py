"""A tree in the formats of its consumers. Pure.

- hypernode: HyperNodes of Volcano, from and to a tree
- node_labels: labels of nodes, one key per tier
- domain_names: the names of a domain in outputs
- kueue, kai, koordinator, grove: the objects that say which key is which tier
- slurm: topology.conf and topology.yaml
- slinky, nfd: annotations and features of nodes
- work_order: what a technician has to do, as Markdown, CSV and a page to print
- plan_order: the work order of the moves that repair the differences from a plan
- graph: the tree as a document or a drawing
- formats: the formats by name, and their settings
- catalog: a row for each format: how a tree is rendered, and the kinds of its objects
- owned_object: a Kubernetes object with the fields that Toponaut owns, and the names it may have

May import `topology` and the kinds of `generator.kube.resources`.
"""
