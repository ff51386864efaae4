"""Jobs on the nodes of a tree. Pure.

- running_jobs: the pods of a job, found by any of its names
- job_location: the tier and the domains of a running job, and a better placement
- cluster: free slots of equal nodes, and the lowest domain around a set of nodes

Imports `generator.manifests`, `generator.placement` and `topology`.
"""
