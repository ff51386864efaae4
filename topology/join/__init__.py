"""Claims to one fabric: devices, ports and links. Pure.

    fabric_join          the entry point: picks the fast or the general way
    claim_join           the general way: claims of any origin, with contradictions
    neighbor_resolution  which device each neighbor entry means
    same_devices         which descriptions are of one device although no strong id connects them
    port_ends            what is at the other end of a port, for `same_devices`
    port_numbers         which claims describe the same port, and the keys of a port
    link_pairs           numbers the ports and finds both ports of each neighbor entry
    neighbor_links       neighbor entries to links, as arrays
    port_table           the ports of a fabric as arrays
    sweep_join           the fast way: one sweep as columns
    sweep_devices        the nodes of one sweep to devices
    unmatched_ports      port lines of a sweep that the other node does not confirm

It imports `topology.model` and `topology.identity`; the fast way also imports the sweep columns
and node names of `topology.sources`.
"""
