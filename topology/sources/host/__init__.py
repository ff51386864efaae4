"""Files and commands of a node that say how it is attached.

- linux_nics: permanent MACs of the slaves of a bond; whether firmware consumes LLDP frames
- nvidia_smi: the NVLink domain of the GPUs

Imports `topology.model` only.
"""
