"""The gRPC service: proto files, server, client."""
