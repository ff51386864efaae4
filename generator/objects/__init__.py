"""The objects and files that the generator reads and writes, as models with their parsers.

- `fabric`: the Fabric object: configuration and status.
- `write_policy`: its settings for writing: change budget, pause, approval.
- `tree_spec`: its settings for the tree: planes, outputs, tier names.
- `plane_config`: the planes file: which ports are in which plane.
- `inventory`: the list of a cluster's nodes, with ids and capacity.
- `node_entry`: one node of that list, read field by field.
- `rack_table`: the racks and units of devices, in a table or in labels of nodes.
- `document`: parts of a document that Kubernetes or a person wrote.
- `pods`: running pods: gangs, bound pods, agents, and the capacity that they leave free.
- `pod_ranks`: what a pod says about its rank.
- `reservation`: the PlacementReservation object.
- `topology_levels`: the levels in a Topology of Kueue, KAI, Koordinator or Grove.
- `tree_document`: the printed TopologyTree, for its schema.
- `tree_record`: the TreeRecord object: the tree that was decided last.
- `yaml_document`: JSON and YAML text to plain documents.

May import `topology`, `outputs`, `placement.cluster` (node specs) and `placement.quantities`.
Pure.
"""
