"""The agent: runs on each node, collects the node's ports and neighbors, and publishes reports.

    cli              the command line: once, run, collectors
    loop             one round of a running agent: collect, publish, log changes
    collection       runs the collectors one after the other, each timed and isolated
    hidden_ports     keeps ports whose interface is in another network namespace
    collectors       one module per source of facts
    node_report      joins the facts of the collectors into NeighborReports
    sweep_schedule   when this node sweeps InfiniBand, and which subnets
    publish          writes reports to a folder or to an API server
    node             reads this machine: sysfs, PCI, commands, LLDP frames, link counters
    telemetry        probes and metrics
    settings         the settings, with the options that set them

It may import `runtime` and `topology`, and never `generator` or the Kubernetes client.
"""
