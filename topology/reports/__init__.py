"""The objects that agents and the generator exchange, and reports in little memory. Pure.

    neighbor_report  NeighborReport, the message from agent to generator: parse, render, build
    closed_sets      the members of closed sets in reports, by their texts
    plain_reports    reports as our writers render them, read without the wire model
    port_shapes      what ports and devices of one kind have in common: all but names and ids
    report_patterns  how the ports and devices of one shape are written in reports
    report_shapes    reports read by the patterns of their ports
    host_summaries   what is needed of the report of a host before the fabric is built
    report_objects   NeighborReports of an API server: newer fields dropped, withdrawn sweep parts
    sweep_parts      a sweep split into numbered reports, and put together again
    fabric_status    the status of the Fabric object: which node sweeps which subnet
    compact_reports  reports as the generator stores them, with the facts as bytes
    observed_time    the time of a report, if it can be compared with a clock
    packed_devices   a Device as bytes, and back
    packed_claims    claims whose device is stored as bytes

It imports `topology.model` and pydantic.
"""
