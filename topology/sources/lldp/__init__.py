"""LLDP: frames from a socket or a capture file, and the output of `lldpcli`.

- lldpdu: one Ethernet frame
- neighbor_table: the neighbors of every port, by time and TTL
- pcap: capture files
- lldpcli: the output of `lldpcli -f json0`, json and keyvalue
- ids: which chassis ids and port ids identify a device or port

Imports `topology.model` and `sources.unsupported_formats`.
"""
