"""Switches of one plane to tiers: their ranks, and the groups that become domains.

domain_links: cables between switches by the groups that they connect, as arrays
group_membership: which group has most links of a unit, and which groups are shared or absorbed
ranks: the distance of each switch from the hosts
switch_overlap: which switches of one rank serve the same units
tier_groups: the groups of every rank, with hosts, parents and ties

May import `planes` and `model` of the core. `findings` reports problems, `inference` names domains.
"""
