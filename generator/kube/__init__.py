"""The Kubernetes API: requests, lists that stay current, leadership, and server-side apply.

`credentials` and `transport` alone know the official client, which brings kubeconfig files, tokens
and connections. Everything above them speaks through the `Transport` protocol, in plain bytes.
"""
