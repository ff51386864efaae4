"""Jobs on the nodes of a tree. Pure.

- running_jobs: the pods of a job, found by any of its names, where they are, and a better place
- cluster: free slots of equal nodes, and the lowest domain around a set of nodes

Imports `generator.manifests`, `generator.objects`, `generator.placement` and `topology`.
"""
