"""Claims to one fabric: devices, ports and links. Pure.

    fabric_join          the entry point: claims of any origin, with contradictions, to a fabric;
                         the ids of its devices
    claim_columns        all claims in order, each read once, a sweep as columns; their rows under
                         one numbering
    port_rows            ports and neighbor entries as rows, the keys of a port, the table of ports
    swept_nodes          the nodes and port lines of a sweep as claims and rows
    neighbor_resolution  which device each neighbor entry means
    same_devices         which descriptions are of one device although no strong id connects them
    port_chassis_ids     switches that send another chassis id on each port
    port_ends            what is at the other end of a port
    numbered_ports       numbers the ports of all devices
    link_pairs           finds both ports of each neighbor entry, and pairs entries to links

It imports `topology.model`, `topology.identity`, and the sweep columns and node names of
`topology.sources`.
"""
