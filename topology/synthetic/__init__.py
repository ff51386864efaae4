"""Synthetic fabrics: devices and cables from a specification, faults, and the output of tools.

    spec ─> wiring ─> damage ─> truth
                         └────> claims, sweep_output, tool_output

- spec: the parameters of a fabric, and the shape of its network
- wiring: the switches, hosts and cables of a fabric without faults
- faults: kinds of faults, and a fabric with faults
- damage: draws faults at random and applies them
- visible_faults: whether a fault is detectable by the symmetry of the fabric
- truth: the true tree of a damaged fabric: where most cables of a host or unit lead
- device_views: the far end and the ids of each port, as devices see them
- claims: the devices that agents, a subnet sweep and SNMP walks report
- sweep_output: the output of `ibnetdiscover`
- tool_output: the output of `lldpcli` and `snmpbulkwalk`, the /sys files of a host, and the nodes

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
from topology.synthetic.spec import FabricKind, NamePolicy, SyntheticSpec, derive_shape
from topology.synthetic.sweep_output import render_ibnetdiscover
from topology.synthetic.tool_output import (
    render_inventory,
    render_lldpcli,
    render_snmpwalks,
    sysfs_files,
)
from topology.synthetic.truth import derive_truth, render_truth
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
    "render_ibnetdiscover",
    "render_inventory",
    "render_lldpcli",
    "render_snmpwalks",
    "render_truth",
    "report_claims",
    "subnet_of",
    "sweep_devices",
    "sysfs_files",
]
