"""Walks of switches over SNMP: from a list of switches to their reports.

- `poller`: walks switches periodically, less often after failures, and writes their reports.
- `targets`: the list of switches and its secret files.
- `walk`: walks switches in parallel, each with a deadline.
- `discovery`: which neighbors are walked too. Pure.
- `session`: SNMP itself, the only importer of pysnmp.
- `reports`: from walks to reports, and the last report of each switch.

May import `store`, `objects` and `topology`. Never `observe` or `reconcile`.
"""
