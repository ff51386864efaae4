"""How good the placements of every preset are, as docs/quality.md publishes it: make quality.

philly: the replay of a trace as that of Microsoft's Philly clusters
kueue_mix: the gangs of Kueue's scheduler benchmark
victims: pods to preempt, against the fewest that are enough
live: the real schedulers on both mixes
live_victims: the pods that the real Kueue evicts
tables: the tables of the page
"""
