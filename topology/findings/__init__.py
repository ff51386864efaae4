"""What is wrong or contradictory in a fabric: each module yields findings with advice.

Nothing here changes the tree. A finding names its ports and says what a person should do.

finding_causes: findings by their cause, with what follows from it
group_columns: the groups of devices as arrays
kind_descriptions: the meaning of each kind of finding, and the advice
lost_switches: switches that are gone
misplaced_hosts: cables of hosts in another group or on another rail, and where hosts belong
misplaced_uplinks: cables of switches to another pod, or to another switch of the pod
missing_links: cables that symmetry expects and that are absent
one_sided_links: links that only one end reports
plane_findings: networks of which no cable is known, and close choices
port_cohorts: devices below the same switches, and the ports that they use
silences: findings that a person silenced until a date
slow_links: links slower than their peers
split_domains: domains that may be parts of one
swap_pairs: two cables in each other's port, and the findings about them
swapped_cables: cables in the wrong port, on the wrong rail, and absent ones
tier_findings: tiers that add no path, that are skipped, or that are uncertain
tree_findings: ties, islands, hosts on spines and switches set aside
treeness: whether the wiring is a tree at all
usual_counts: the numbers of cables that are the design, although most peers have more
usual_ports: the ports at which absent cables belong

May import `tiers`, `planes` and `model` of the core, but not `inference`.
"""
