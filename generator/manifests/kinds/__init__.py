"""Kinds of objects: how their pods are counted, and which fields are without effect.

pod_sets: sets of equal pods, the workloads that they make up, and what a kind of workload is.
core_workloads: Jobs and CronJobs; StatefulSets, Deployments and ReplicaSets.
job_sets: JobSets and LeaderWorkerSets, and the domains that they keep for one job.
kubeflow, trainer, ray, volcano_job, kueue_workload: the kinds of one API.
codeflare: AppWrappers, around objects of the other kinds.
object_fields: what has no effect: fields of metadata and of pods, and kinds that run no pods.
unlisted_resources: what pods take of a node although no node lists it.

The package imports `generator.placement` and its siblings `fields`, `gang_pods`, `objects`, `pods`,
`resource_units` and `tier_names`; the modules for schedulers import it.
"""
