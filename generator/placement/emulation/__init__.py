"""Placement in the steps of another scheduler, for presets that no objective vector describes.

`walk`: tries domains in a preset's order, fills each, and takes back what does not fit.
`scopes`: the groups and sets that share a domain, and the domains that a walk tries, in order.
`ordered_fill`: fills a domain node by node in the order of a walk.
`kueue_capacity`: the pods and slices that each domain holds, as Kueue counts them.
`level_descent`: fills a domain tier by tier, as Kueue does.
`balanced`: Kueue's balanced placement: even shares over few domains.
`node_scores`: fills a domain by scores of nodes, as kube-scheduler does.
`leaf_rows`: which of equally good leaves Slurm's tree plugin takes.
`task_topology`: places pods by buckets and node scores, as Volcano's plugin does.

May import `answer`, `cluster`, `explain`, `presets`, `problem`, `request` and `solve`.
"""
