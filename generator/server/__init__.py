"""The server that `toponaut serve` runs: its loop, its ports, and its part in a cluster.

- `settings`: the settings of a server.
- `server`: starts and stops everything that runs; the folder as a backend.
- `loop`: the reconcile loop, one round after the other.
- `elected_sweepers`: elects sweepers each round and writes changes.
- `history_backup`: keeps the history while no pod has it.
- `replica`: the cluster as a backend: watches, leader election, fenced writes.
- `endpoints`: the metrics and health ports, Events, token checks, and certificates.
- `page_port`: the port of the page, behind the authentication of the gRPC port.

May import every package of the generator but `cli`. Only `cli` imports it.
"""
