"""The pure core that the agent and the generator share. No I/O, no clock, no randomness.

Data flows from text to facts, and on through reports, fabric, planes and tiers to a tree:

    model        the frozen values that all other packages pass on: facts, claims, fabric, tree
    sources      text or bytes of a tool to facts, one package per format
    reports      NeighborReport and Fabric objects, sweeps in parts, reports packed to bytes
    identity     which claims describe the same device, and which device owns a disputed id
    join         claims to one fabric: ports numbered, neighbors resolved, links paired
    planes       which ports and links belong to compute, storage and management
    tiers        switches grouped and ranked into tiers
    inference    a fabric to a topology tree, with its domains and their names
    findings     what is wrong or contradictory in a fabric or tree, and what to do about it
    cabling      a cabling plan compared with the fabric, and the repairs that make them equal
    synthetic    generated fabrics with known truth and known damage, for tests and benchmarks

It imports the standard library and numpy, and msgspec and pydantic where documents enter and leave.
"""
