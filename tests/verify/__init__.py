"""The grid of damaged fabrics: how often inferred trees are the true ones (`make verify`).

- __main__: the options of the grid, and what it prints
- runs: runs in several processes, with a journal
- grid: the fabrics and faults, and the results of their runs
- judgement: compares an inferred tree with the true one
- sources: the sources of a damaged fabric, packed as the commands hold them
"""
