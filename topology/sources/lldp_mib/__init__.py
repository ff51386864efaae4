"""The LLDP tables of a switch, read over SNMP.

- walk: the device and its neighbors, built from the tables; whether the end of a walk is missing
- tables: the tables of LLDP-MIB and LLDP-V2-MIB, decoded
- interfaces: the interfaces of IF-MIB, and the interface of each LLDP port
- ids: decodes the ids of the tables
- walk_text: the output of `snmpwalk`

Imports `topology.model`, `sources.lldp` and `sources.unsupported_formats`.
"""
