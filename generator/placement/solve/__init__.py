"""Find the best placement of a problem: exact where the budget allows, else greedy.

`solver`: tries numbers of pods, strategies, tiers and evictions in order; chooses the finder.
`homogeneous`: exact placement of equal parts by counting.
`domain_dp`: exact shares of pods per unit of one domain, by tables of costs.
`tree_search`: exact search over the tree, for any mix of groups.
`unit_states`: the parts, the pods, the sums of rules and the cost of a unit, as integers.
`equivalence`: classes of nodes and units that are alike for a job.
`greedy`: a placement without proof, one part after the other.

May import `answer`, `budget`, `cluster`, `presets`, `problem` and `request`.
"""
