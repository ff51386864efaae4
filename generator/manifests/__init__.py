"""Manifests of other systems as placement requests. Pure: callers read files and print text.

manifest_request: `translate` detects the system of a file and returns its request.
volcano, godel, koordinator, kai, kubernetes, kueue, grove: one module per Kubernetes scheduler.
slurm: jobs of sbatch, whose request depends on the nodes.
objects: the Kubernetes objects of a file.
workloads: sets of equal pods, from every common kind of workload or from pods.
exclusive_topology: the domains that JobSet and LeaderWorkerSet keep for one job.
pods: the fields of a pod template that affect placement.
pod_groups: PodGroups and the pods that belong to them.
fields: `Field`, a value with its path, which records whether it was read.
ignored_fields: fields that had no effect, and whether they may matter.
tier_names: the tiers behind the level names of other systems.
resource_units: resource requests in slots, if the nodes list only slots.

The package imports `generator.objects`, `generator.placement` and `topology`.
"""
