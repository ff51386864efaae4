"""Keeps what other schedulers read up to date: every output of the Fabric other than HyperNodes.

- kinds: the kinds of objects of each output, and the names of the field managers
- export_check: reads an export back before it is written
- rendered: the objects of each output, rendered from the tree that was decided last
- request: what the outputs should be in a round
- takeover: which labels of other writers become Toponaut's
- blocked_writes: which writes wait, because they were refused or are repeated
- users: what uses an object that its scheduler does not let change
- plan: which objects to apply, to leave and to remove
- outcome: the result of each output, and the conditions that say so
- cluster: applies the plans to a cluster, a bounded number of writes a round
- folder: writes the same documents as files
- once: compares or writes all outputs once, as a command does

Imports `reconcile` for the pace of writes, and `store`. Data flow: tree -> rendered -> plan ->
cluster or folder -> outcome.
"""
