"""Real schedulers on an API server whose nodes have Toponaut's labels.

`gangs`: nodes and gangs, and what every scheduler does with them.
`kube_cluster`: etcd, kube-apiserver and kube-scheduler.
`kueue_cluster`: the same with the manager of Kueue in place of kube-scheduler.
`volcano_cluster`: the same with the scheduler of Volcano.
`schedulers`: all of them by name.
`gang_days`: gangs that come and go, each placed by the scheduler and by the engine.
`mixes`: gangs in the proportions of published workloads.
`python -m tests.live` (make referee-live) runs longer days and prints what was compared.
"""
