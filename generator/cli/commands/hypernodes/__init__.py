"""Commands about HyperNodes that others wrote.

- lint: problems of any set of HyperNodes
"""
