"""Split a fabric into planes: the networks for compute, storage and management. Pure.

    plane_split      splits a fabric: policies first, then switch names, then the default
    plane            one plane: its hosts, switches, links and ports
    policy           policies of rules that a person writes, and the reasons for a port's plane
    default_policy   the plane of a port that no policy matches
    machine_types    hosts with the same ports, as tables
    compute_choice   the compute network of a machine type
    shared_switches  whether the cables of two slots lead to one network
    cables           the links that a plane may contain, as edges
    rails            the numbers of the rails
    shortest_paths   the shortest ways between two switches
    port_plane_map   the plane and reason of each host port, as an array

It imports `topology.model`.
"""
