"""Placement in the steps of another scheduler, for presets that no objective vector describes.

`walk`: tries domains in a preset's order and fills them in its order.
`candidates`: the groups and sets that share a domain, and the domains that a walk tries, in order.
`level_descent`: shares them tier by tier, as Kueue does.
`scored_domains`: fills every domain of a tier and keeps the best score, as kube-scheduler does.
`leaf_rows`: which of equally good leaves Slurm's tree plugin takes.
`balanced`: Kueue's balanced placement: even shares over few domains.
`task_topology`: places pods by buckets and node scores, as Volcano's plugin does.

May import `answer`, `cluster`, `explain`, `presets`, `problem`, `request` and `solve`.
"""
