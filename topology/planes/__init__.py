"""Split a fabric into planes: the networks for compute, storage and management. Pure.

    plane            Plane and PlaneSplit: policies first, then switch names, then the default
    policy           policies of rules that a person writes, and the reasons for a port's plane
    default_policy   the plane of a port that no policy matches
    machine_types    hosts with the same ports, as tables
    compute_choice   the compute network of a machine type
    shared_switches  whether the cables of two slots lead to one network
    cables           the links that a plane may contain, as edges
    port_planes      the plane and reason of each host port, as an array

It imports `topology.model`.
"""
