"""Files and commands of a node that say how it is attached.

- bonding: permanent MAC addresses of the slaves of a bond
- private_flags: whether a network card consumes LLDP frames in its firmware
- nvidia_smi: the NVLink domain of the GPUs

Imports `topology.model` only.
"""
