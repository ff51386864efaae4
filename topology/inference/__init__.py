"""A fabric to its tree: the plane, ranks and groups of `tiers`, names, and all findings.

directors: the chips of one chassis as one switch
domain_names: stable names for domains
nvlink_domains: NVLink domains as a tier below the leaves
tree_inference: the entry point, from a fabric to a tree with findings

May import all of the core but `synthetic` and `cabling`.
"""
