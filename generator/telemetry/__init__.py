"""What the server reports about its rounds: metrics, Kubernetes Events and log lines.

- `metrics`: the Prometheus registry, the counters and the metrics page.
- `metric_values`: the gauges of one round, as plain numbers. Pure.
- `events`: writes Kubernetes Events from a queue.
- `event_texts`: which changes between two rounds become Events, and their texts. Pure.
- `round_log`: logs what changed from one round to the next.

May import `reconcile` and the packages below it. Never `rpc`, `server` or `cli`.
"""
