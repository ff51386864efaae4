"""Which claims describe the same device, and which device owns an id that several claim. Pure.

    claim_facts         what identity needs of each claim; each claim is read once
    heard_descriptions  limits what one host says about other devices
    quarantine          removes ids from claims that contradict the cabling, with findings
    disputed_ids        finds the ids that `quarantine` must check, by arrays of hashes
    dispute_evidence    what shows which device has an id that several claim
    dispute_findings    findings about ids that two devices claim
    device_resolution   joins claims with common strong ids or names to devices
    device_evidence     the words in descriptions, and what contradicts that two are of one device
    device_kinds        decides host or switch if the source does not, and names hosts after nodes
    device_names        unique display names, and the order of devices
    device_ids          the sorted ids of a device, read from its claims
    id_owners           strong id to node, for the next generation

It imports `topology.model`.
"""
