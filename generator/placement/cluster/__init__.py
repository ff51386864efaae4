"""The cluster as the engine sees it: a snapshot, and how many pods fit each node and domain.

`nodes`: nodes and running gangs, as their cluster describes them.
`snapshot`: free quantities, running gangs and nominations, as arrays; how they change.
`gang_view`: the cluster as one gang sees it, without what is kept for others.
`levels`: the tree as contiguous ranges of nodes per tier.
`shapes`: the shapes of a request, and how many pods fit each node and unit.
`free_capacity`: what is left of shapes while pods are placed and removed.
`min_cover`: the fewest bins that hold a number of pods.

May import `topology`, numpy, and from `placement` only `budget`, `groups`,
`node_selection` and `request`.
"""
