"""The gRPC service: proto files, server, client."""

import os

# gRPC's C core reads both when it is imported: its own lines on stderr would stand between those
# of the log, and nothing here forks.
os.environ.setdefault("GRPC_VERBOSITY", "NONE")
os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")
