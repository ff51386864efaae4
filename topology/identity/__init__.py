"""Which claims describe the same device, and which device owns an id that several claim. Pure.

    claim_facts         what identity needs of each claim; each claim is read once
    heard_descriptions  limits what one host says about other devices
    dispute_resolution  removes ids from claims that contradict the cabling, with findings
    disputed_ids        finds the ids that `dispute_resolution` must check, by arrays of hashes
    dispute_evidence    what shows which device has an id that several claim
    dispute_findings    findings about ids that two devices claim
    device_resolution   joins claims with common strong ids or names to devices
    device_kinds        decides host or switch if the source does not; unique names and their order
    node_names          which node a host name means
    id_owners           strong id to node, for the next generation

It imports `topology.model`.
"""
