"""Cabling plans, in every format that sites keep them in.

- formats: detects the format of a plan, then checks its cables
- csv_table: a table of four columns, and the cable list of NetBox as CSV
- netbox: the answer of NetBox's REST API
- ibdm: the topology file of `ibdiagnet -t` and `ibtopodiff`
- dot: `topology.dot` of the Prescriptive Topology Manager

Imports `topology.model` only.
"""
