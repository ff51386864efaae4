"""Commands about HyperNodes that others wrote.

- lint: problems of any set of HyperNodes
- adopt: takes HyperNodes over, under approval
"""
