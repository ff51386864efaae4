"""Manifests of other systems as placement requests. Pure: callers read files and print text.

manifest_request: `translate` detects the system of a file and returns its request.
volcano, godel, koordinator, kai, kubernetes, kueue, grove: one module per Kubernetes scheduler.
slurm: jobs of sbatch, whose request depends on the nodes.
objects: the Kubernetes objects of a file.
workloads: the workload or the PodGroup of a file, and sets of equal pods of single pods.
kinds: one module per API with workloads: their pods, and their fields without effect.
pods: the fields of a pod template that affect placement, with its affinity.
gang_pods: the pods of a gang in its file: those that wait, and those that run.
fields: `Field`, a value with its path, which records whether it was read; the ignored fields.
tier_names: the tiers behind the level names of other systems.
resource_units: resource requests as nodes count them: in slots, if they list only slots.

The package imports `generator.objects`, `generator.placement`, `generator.outputs` (the prefix of
label keys) and `topology`.
"""
