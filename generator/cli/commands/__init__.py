"""What each command does: one module per word that users type, with the function `run`.

- fabric: the commands that read a fabric and print it: tree, planes, findings, describe
- diff, inspect: compare a fabric with a plan, and show the content of files
- switches: walks switches by SNMP
- plan, apply, approve: change HyperNodes
- hypernodes: the commands about HyperNodes that others wrote
- export: the tree in the formats of other tools
- place, compare, where, reservations: placements, running jobs and reserved nodes
- rpc, serve: call a server, and run one
- simulate: synthetic fabrics, and replays of job traces
- doctor: checks of a cluster
- reference: explanations of findings and fields, JSON schemas, completion of shells

`generator.cli.syntax` has their options, and imports a module when its command is called. May
import `generator.cli` and what it imports. `apply` also prints with `plan`.
"""
