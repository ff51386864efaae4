"""Clients of the gRPC services.

connection: one channel to one server, with retries and error translation.
typed_client: `PlacementClient` and `TopologyClient`, with values as requests and answers.
methods: all methods by name, with documents as requests and answers, for `toponaut rpc`.

The package imports `generator.rpc.messages` and the generated stubs, but no server code.
"""
