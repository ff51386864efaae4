"""A cabling plan compared with the fabric as observed, and the moves that repair it.

plan_diff: the differences between a plan and a fabric, the moves, and the cables not in the plan
plan_names: which device and port a name in a plan means
other_names: planned devices that have another name in the fabric, by their cables
lost_devices: planned devices that are gone, by the other ends of their cables
repair: the shortest list of steps from observed to planned cables

May import `model` of the core. `sources.cabling` parses the plans.
"""
