"""The pods of a gang: which nodes and domains they may use, and which of them run.

`node_constraints`: node selector, node affinity and tolerations of a pod.
`pod_affinity`: affinity and anti-affinity among the pods of a gang.
`running_pods`: the pods of a file that run, have ended or are being deleted.
`workload_pods`: finds the pods of a workload in its file.

May import `fields`, `objects` and `tier_names` of this package, `objects` and `placement`.
"""
