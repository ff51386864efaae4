"""The agent's own client of the Kubernetes API, on the standard library alone.

    report_writer   writes the NeighborReports of this node
    https_client    sends one request at a time over HTTPS
    credentials     the server's address, the token and the certificate authority

It never imports the Kubernetes client, which would multiply the agent's memory.
"""
