"""The words about gangs.

- place, compare: where a gang would run
- where: where a job runs; ranks: its ranks in the tree
- capacity: what is free in each domain; reservations: the nodes that are held for gangs
"""
