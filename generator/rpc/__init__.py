"""The gRPC service: proto files, server and client.

server: `PlacementServer` binds the address and registers the services.
placement_service: the calls of PlacementService except those about reservations.
reservation_service: Reserve, Confirm and Release.
forwarded_calls: sends calls that a follower cannot answer to the leader.
topology_service: the calls of TopologyService: tree, watches, findings.
published_state: `PublishedState`, the snapshot, findings and recent trees that queries read.
capacity_counts: the number of pods that fit, by node, domain and tier.
reported_pods: pods of a gang that run already, from and to messages.
calls: the interceptor of every call: caller, deadline, shares, sizes, stalls, errors.
limits: limits of a call and of all calls together.
status_errors: failure kinds, and their google.rpc details.
auth: authentication, TLS files and loopback addresses.
client: `PlacementClient`, one channel to a server, for `toponaut place` and `toponaut rpc`.
messages: protobuf messages from values, and back.
toponaut: code generated from the proto files by `make proto`.

The package imports `generator.placement`, `generator.reservations`, `topology` and, for the outcome
of a round, `generator.reconcile.round_results`. `messages` imports neither the server nor the
client.
"""

import os

# gRPC's C core reads both when it is imported. Its own lines on stderr would mix with the log, and
# this program never forks.
os.environ.setdefault("GRPC_VERBOSITY", "NONE")
os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")
