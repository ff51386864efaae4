"""From the tree of a round to written outputs, and to the status of the Fabric object.

What is decided, once for all outputs:
- `desired`: observation and observed HyperNodes to planned changes and their problems. Pure.
- `hypernode_plan`: the ordered actions that keep the cluster valid after each one. Pure.
- `conflicts`: names, children and nodes that foreign HyperNodes share with ours. Pure.
- `decided_tree`: the tree that was decided last, and the step from it. Pure.
- `guard`: whether a plan may be written, or is held for an approval. Pure.
- `write_delays`: how long writes wait. Pure.
- `settings`: the settings that a round writes by.
- `decision`: what a round writes, and what it reports. Pure.
- `writer`: carries a decision out: the record, then the HyperNodes.

The outputs that follow the decided tree:
- `rendered`: the kinds of objects of each output, rendered from the tree that was decided last.
- `outputs`: what the outputs should be in a round.
- `object_plan`: which objects to apply, to leave, to remove and to take over.
- `hypernode_output`: how far the HyperNodes agree with the decided tree. Pure.
- `output_outcomes`: the result of each output, and the conditions that say so. Pure.
- `cluster_outputs`: applies the outputs to a cluster, a bounded number of writes a round.
- `folder_outputs`: writes the same documents as files.

What is reported:
- `conditions`: the conditions and the held plan in the Fabric object. Pure.
- `status`: reads the Fabric object and writes its status.
- `round_results`: the results of rounds, queries and Events, for metrics, Events and the log.

May import `observe`, `store` and the packages below them. Never `telemetry`, `rpc` or `server`.
"""
