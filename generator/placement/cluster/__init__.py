"""The cluster as the engine sees it: a snapshot, and how many pods fit each node and domain.

`snapshot`: nodes, free quantities, running gangs and nominations; how they change.
`levels`: the tree as contiguous ranges of nodes per tier.
`capacity`: free quantities and slots per tier while pods are placed and removed.
`tiers`: looks up a tier by name.
`pod_shapes`: the distinct shapes of the pods of a request.
`shape`: the pods of one shape that fit each node and each unit.
`slot_cache`: cached shapes of a snapshot, and the nodes that changed since.
`units`: an index of the units of a tier by the pods that fit their children.
`min_cover`: the fewest inner units that hold a number of pods.
`subset_sum`: the fewest nodes of a leaf that hold a number of pods.

May import `topology`, numpy, and from `placement` only `groups` and `request`.
"""
