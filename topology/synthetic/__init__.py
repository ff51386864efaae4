"""Synthetic fabrics: devices and cables from a specification, faults, and the output of tools.

    spec ─> wiring ─> damage ─> truth
                         └────> claims, lldp_text, walk_text, host_files

- spec: the parameters of a fabric, and the shape of its network
- wiring: the switches, hosts and cables of a fabric without faults
- faults: kinds of faults, and a fabric with faults
- damage: draws faults at random and applies them
- swaps: draws the pairs of cables that exchange an end
- visible_faults: whether a fault is detectable by the symmetry of the fabric
- membership: the units of switches, and where most cables of a host or unit lead
- truth: the true tree of a damaged fabric
- device_views: the far end and the ids of each port, as devices see them
- claims: the devices that agents, a subnet sweep and SNMP walks report
- lldp_text: the output of `lldpcli` on each device
- walk_text: the output of `snmpbulkwalk` on each switch
- host_files: the /sys files of a host, and the inventory of nodes

Imports `topology.model` and `topology.sources`. Pure: a seeded random source is an argument, and
equal arguments give equal output.
"""

from topology.synthetic.claims import ReportedDevice, report_claims, sweep_devices
from topology.synthetic.damage import damage_fabric
from topology.synthetic.device_views import subnet_of
from topology.synthetic.faults import (
    DamagedFabric,
    Fault,
    FaultKind,
    FaultSpec,
    RandomSource,
    build_undamaged,
)
from topology.synthetic.host_files import render_inventory, sysfs_files
from topology.synthetic.lldp_text import render_lldpcli
from topology.synthetic.spec import FabricKind, NamePolicy, SyntheticSpec, derive_shape
from topology.synthetic.truth import derive_truth, render_truth
from topology.synthetic.walk_text import render_snmpwalks
from topology.synthetic.wiring import Cable, Host, Nic, Switch, Wiring, build_wiring

__all__ = [
    "Cable",
    "DamagedFabric",
    "FabricKind",
    "Fault",
    "FaultKind",
    "FaultSpec",
    "Host",
    "NamePolicy",
    "Nic",
    "RandomSource",
    "ReportedDevice",
    "Switch",
    "SyntheticSpec",
    "Wiring",
    "build_undamaged",
    "build_wiring",
    "damage_fabric",
    "derive_shape",
    "derive_truth",
    "render_inventory",
    "render_lldpcli",
    "render_snmpwalks",
    "render_truth",
    "report_claims",
    "subnet_of",
    "sweep_devices",
    "sysfs_files",
]
