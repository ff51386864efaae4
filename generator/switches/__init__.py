"""Walks of switches over SNMP: from a list of switches to their reports.

- `poller`: walks switches periodically and writes their reports.
- `config`: reads the list of switches and its secret files.
- `targets`: the format of that list. Pure.
- `walk`: walks switches in parallel, each with a deadline.
- `discovery`: which neighbors are walked too. Pure.
- `backoff`: the wait after failed walks. Pure.
- `session`: SNMP itself, the only importer of pysnmp.
- `report_kind`: which reports come from walks. Pure.
- `reports`: from walks to reports. Pure.
- `last_reports`: the last report of each switch, in memory and in the store.

May import `store`, `objects` and `topology`. Never `observe` or `reconcile`.
"""
