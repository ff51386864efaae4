"""Real schedulers on an API server whose nodes have Toponaut's labels.

`kube_cluster`: etcd, kube-apiserver and kube-scheduler, with nodes, labels and gangs.
`gang_days`: gangs that come and go, each placed by the scheduler and by the engine.
`python -m tests.live` (make referee-live) runs longer days and prints what was compared.
"""
