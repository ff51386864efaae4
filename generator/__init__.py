"""The generator, one per cluster: turns reports into a tree, HyperNodes and placements.

- cli: the command `toponaut` and its subcommands
- history: the trees and the findings of the past
- ingest: reads reports, sweeps, captures and node lists into claims
- jobs: where a running job is in the tree, and whether a better place is free
- kube: the client of the Kubernetes API: credentials, transport, watches, leader election
- manifests: placement requests from manifests of workloads and schedulers, and from jobs of Slurm
- objects: parsers of the objects and files that the generator reads
- observe: from claims to an observation: the tree and the findings
- outputs: renders a tree as HyperNodes, and in the formats of other consumers
- web: renders a tree, its links and findings as a page for a browser
- placement: the placement engine: requests, presets, search, answers. Pure
- reconcile: plans changes of HyperNodes, guards them by the change budget, applies them
- reservations: nodes that are reserved for gangs whose pods do not run yet
- rpc: the gRPC service, its messages, its authentication and its client
- server: `toponaut serve`: the loop, its settings, its replicas, and the ports that it serves
- simulation: synthetic fabrics as files, and replays of job traces
- store: where objects are stored: a folder or a cluster
- switches: walks switches by SNMP
- telemetry: metrics, Kubernetes Events, and the log of a reconcile round

May import `topology` and `runtime`, never `agent`. `cli` may import every package here; no other
package imports `cli`.
"""
