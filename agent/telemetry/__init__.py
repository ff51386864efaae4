"""What a running agent reports about itself over HTTP.

    endpoints   opens the ports for probes and metrics
    health      liveness, startup and readiness, from the ends of rounds
    metrics     the Prometheus metrics; the only file of the agent that imports prometheus_client

It observes the loop and may import everything in `agent` but the command line.
"""
