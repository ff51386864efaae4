"""Parsers: the text or bytes of one format in, facts and a list of errors out. No I/O.

- cabling: cabling plans: CSV tables, NetBox, ibdm topology files, Graphviz graphs
- host: files and commands of a node: bonds, private flags of a NIC, NVLink domains
- ibnetdiscover: the output of `ibnetdiscover`, as rows, columns and devices; its printer
- infiniband: the other sources of an InfiniBand fabric: ibdiagnet files, subnet.lst, sysfs
- lldp: LLDP frames, capture files and the output of `lldpcli`
- lldp_mib: tables of a switch, as `snmpwalk` prints them or SNMP returns them
- unsupported_formats: what other tools print, and what to run instead

The packages import `topology.model`, and those that read text import unsupported_formats. In
addition, ibnetdiscover imports infiniband, and lldp_mib imports lldp.
"""
