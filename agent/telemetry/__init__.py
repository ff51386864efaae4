"""The probes and the metrics of a running agent, over HTTP.

    health      liveness, startup and readiness, and the servers for probes and metrics
    metrics     the Prometheus metrics; the only file of the agent that imports prometheus_client

It observes the loop and may import everything in `agent` but the command line.
"""
