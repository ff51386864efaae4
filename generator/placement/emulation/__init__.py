"""Placement in the steps of another scheduler, for presets that no objective vector describes.

`walk`: tries domains in a preset's order, fills each by its order or by scores of nodes, and takes
    back what does not fit.
`scopes`: the groups and sets that share a domain, and the domains that a walk tries, in order.
`kueue`: counts pods and slices per domain, and fills a domain tier by tier, as Kueue does.
`balanced`: Kueue's balanced placement: even shares over few domains.
`leaf_rows`: which of equally good leaves Slurm's tree plugin takes.
`task_topology`: places pods by buckets and node scores, as Volcano's plugin does.

May import `answer`, `budget`, `cluster`, `explain`, `groups`, `presets`, `problem`, `request` and
`solve`.
"""
