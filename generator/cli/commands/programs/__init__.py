"""The words that run a server, call it, or try Toponaut on a cluster or without one.

- serve, rpc: run a server, and call one
- doctor: checks of a cluster
- simulate: synthetic fabrics, and replays of jobs
"""
