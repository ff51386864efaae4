"""The words about what is written for schedulers.

- plan, apply, approve: the changes of HyperNodes and of the other outputs
- lint, adopt: HyperNodes and labels that others wrote
- export: the tree in the formats of schedulers and other tools
"""
