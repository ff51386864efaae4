"""Authentication of callers and servers.

authentication: the bearer token of a call, and who the caller is.
tokens: bearer tokens, checked by the API server.
tls: certificates of the server, reloaded when their files change.
key_files: reads keys, certificates and tokens from files.
loopback: addresses that may be used without TLS.

The package imports `generator.kube` for token reviews, and `generator.rpc.status_errors`.
"""
