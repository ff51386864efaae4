"""Writes the reports of this node to a folder or to an API server.

    destination     the interface that a round uses: read, publish, withdraw
    directory       writes reports as files of a folder, and reads JSON from it
    kube            writes reports as objects of a cluster
    part_numbers    numbers the parts of sweeps, and finds outdated parts
    size_limit      removes neighbors from a report that is too large for an API server

It may import `runtime`, `topology` and, within `kube`, the network modules of the standard library.
"""
