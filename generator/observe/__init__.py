"""From inputs to an observation: the tree and its findings.

- `observation`: one pass from inputs to the tree and its findings. Pure.
- `labelled_tree`: the tree that labels of nodes describe. Pure.
- `label_presets`: the label keys of clouds and tools. Pure.
- `listed_tree`: a tree beside a list of nodes. Pure.
- `domain_witness`: the tree of the cables compared with that of labels or HyperNodes. Pure.
- `observer`: holds the last observation; infers again only when the facts changed.
- `port_findings`: host ports that differ from the same ports of other hosts. Pure.
- `freshness`: missing and stale reports, failed walks, refused sweeps. Pure.
- `unmatched_nodes`: listed nodes without a host beside hosts without a node. Pure.
- `plan_blockers`: what blocks every plan: cut inputs, wrong settings, lost entries, large domains.
- `known_switches`: switches of earlier generations that are gone. Pure.
- `sweep_election`: which node sweeps each InfiniBand subnet. Pure.

May import `ingest`, `switches` (their report names), `objects`, `outputs` (names and keys) and
`topology`. Never `reconcile`.
"""
