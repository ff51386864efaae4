"""The words about gangs.

- place, compare: where a gang would run
- where: where a job runs; reservations: the nodes that are held for gangs
"""
