"""Jobs on the nodes of a tree. Pure.

- running_jobs: the pods of a job, found by any of its names, where they are, and a better place
- rank_order: the ranks of a job in the tree, and the order with the fewest crossings
- gang_ranks: the ranks of the gangs that a server follows
- free_by_domain: what is free in each domain
- cluster: free slots of equal nodes, and the lowest domain around a set of nodes

Imports `generator.manifests`, `generator.objects`, `generator.placement` and `topology`.
"""
