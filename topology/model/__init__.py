"""The values that the packages of `topology` pass to each other. Frozen; no rules about wiring.

    ids           identifiers of devices and ports: kinds, canonical forms, natural order of names
    port_names    the spellings of one Ethernet port name
    facts         Device, Port and Neighbor as one source describes them; Finding and its kinds
    claims        a Device with its origin, lazy claims of sweeps, and the ids that join claims
    fabric        Fabric: all devices, ports and links, as rows and as arrays
    lazy_rows     sequences that build their rows on demand
    pair_counts   how often two numbers form a pair, as arrays
    surplus_rows  which rows of a bounded table make room: of the owner that has the most
    tree          TopologyTree and Domain: build, render, parse and compare
    cabling_plan  a cabling plan as a person wrote it
    plug_moves    which plugs to move where either end of the cables could
    errors        every error of the project, in one tree
    kube_errors   an answer of the Kubernetes API server to the KubeError it means
    name_ranges   names in the form of Slurm's hostlists
    globs         faults of shell wildcards
    text          the encoding of foreign text, by its byte order mark
    validation    validation errors of pydantic and msgspec in plain words
    wire_model    the pydantic base class of documents on the wire

It imports the standard library and numpy; only `wire_model` imports pydantic. It imports no other
package of `topology`.
"""
