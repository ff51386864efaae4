"""The objects that agents and the generator exchange, and reports in little memory. Pure.

    neighbor_report  NeighborReport, the message from agent to generator, and withdrawn sweep parts
    packed_reports   reports and claims as the generator keeps them: the facts are bytes
    sweep_parts      a sweep split into numbered reports, and put together again
    fabric_status    the status of the Fabric object: which node sweeps which subnet
    observed_time    the time of a report, if it can be compared with a clock

It imports `topology.model`, msgspec, and pydantic for the Fabric object, which people write.
"""
