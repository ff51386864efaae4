"""What is wrong or contradictory in a fabric: each module yields findings with advice.

Nothing here changes the tree. A finding names its ports and says what a person should do.

absent_cables: the ports of absent cables between two switches
finding_causes: findings by their cause, with what follows from it
impact: what each finding costs: bandwidth, nodes, gangs
kind_descriptions: the meaning of each kind of finding, and the advice
link_findings: links that only one end reports, and links slower than their peers
lost_switches: switches that are gone
missing_links: cables that symmetry expects and that are absent
plane_findings: networks of which no cable is known, and close choices
port_cohorts: devices below the same switches, the ports that they use, and groups as arrays
silences: findings that a person silenced until a date
swap_pairs: two cables in each other's port, and the findings about them
swapped_cables: cables in the wrong port, on the wrong rail, and absent ones
tier_findings: tiers that add no path, that are skipped, or that are uncertain
tree_conformance: whether the wiring is a tree at all
tree_findings: ties, islands, hosts on spines and switches set aside
usual_counts: the numbers of cables that are the design, although most peers have more
usual_ports: the ports that devices of a group use for one another
work_order: what a technician unplugs and plugs, rack by rack

May import `tiers`, `planes` and `model` of the core, but not `inference`.
"""
