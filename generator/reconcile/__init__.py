"""From the tree of a round to written HyperNodes, and to the status of the Fabric object.

- `desired`: observation and observed HyperNodes to planned changes and their problems. Pure.
- `plan`: the ordered actions that keep the cluster valid after each one. Pure.
- `node_moves`: the order in which nodes move between leaves. Pure.
- `conflicts`: names, children and nodes that foreign HyperNodes share with ours. Pure.
- `guard`: whether a plan may be written, or is held for an approval. Pure.
- `decided_tree`: the tree that was decided last, and the step from it. Pure.
- `gang_splits`: domains that a plan would split under a running gang. Pure.
- `debounce`: how long a plan waits before it is written. Pure.
- `apply`: runs the actions of a plan in order, up to the first failure.
- `write_request`: the plan of one round, and what it is judged by. Pure.
- `writer`: decides in each round whether the plan is written, and writes it.
- `conditions`: the conditions and the held plan in the Fabric object. Pure.
- `summary`: tiers and findings of a tree in numbers, for the Fabric object. Pure.
- `status`: reads the Fabric object and writes its status.
- `sweep_holds`: plans that depend on a sweep in doubt. Pure.
- `sweepers`: elects sweepers each round and writes changes.
- `result`: the outcome of a round, as a value for metrics, Events and the log.

May import `observe`, `store` and the packages below them. Never `telemetry`, `rpc` or `server`.
"""
