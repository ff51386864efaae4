"""The cluster as the engine sees it: a snapshot, and how many pods fit each node and domain.

`snapshot`: nodes, free quantities, running gangs and nominations; how they change.
`levels`: the tree as contiguous ranges of nodes per tier.
`tiers`: looks up a tier by name.
`shapes`: the pods of one shape that fit each node and each unit; a cache per snapshot.
`capacity`: the shapes of a request, and what is left of them while pods are placed and removed.
`units`: the pods that fit the children of a unit, and the tightest units of a tier.
`min_cover`: the fewest inner units that hold a number of pods.
`subset_sum`: the fewest nodes of a leaf that hold a number of pods.

May import `topology`, numpy, and from `placement` only `groups` and `request`.
"""
