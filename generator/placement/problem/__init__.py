"""A request resolved against a snapshot: what the search, the walks and explanations read.

`problem`: the problem: tiers as heights, groups as parts, running pods as fixed positions.
`request_parts`: part types and parts; assigns placed parts to groups.
`rules`: where the gang runs, the rules on pods per domain, and slices by index.
`pod_counts`: the members of a gang, and the numbers of pods per group to try.
`constraints`: checks a placement against every rule of its request.
`objective`: measures a placement by the keys of the objective vector.
`preemption`: what may be evicted, the cheapest victims per node, and what is evicted in all.
`domain_capacity`: the pods of a group that each domain holds, and the sort order of domains.
`trial`: pods that are placed to try, and what they leave free.

May import `answer`, `budget`, `cluster`, `groups`, `presets` and `request`.
"""
