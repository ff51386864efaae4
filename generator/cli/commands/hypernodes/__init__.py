"""Commands about HyperNodes and labels that others wrote.

- lint: problems of any set of HyperNodes
- adopt: takes HyperNodes over, under approval
- label_adoption: the same for labels of nodes
"""
