"""A fabric specification becomes devices, cables, faults, the true tree, and what tools print.

    spec ─> wiring ─> damaged ─> truth
                         └─────> claims, captures, inventory

All of it is pure: a seeded random source is an argument, and equal arguments give equal output.
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
from topology.synthetic.spec import FabricKind, SyntheticSpec, NamePolicy, derive_shape
from topology.synthetic.truth import derive_truth, render_truth
from topology.synthetic.wiring import Cable, Host, Nic, Switch, Wiring, build_wiring

__all__ = [
    "Cable",
    "DamagedFabric",
    "FabricKind",
    "SyntheticSpec",
    "Fault",
    "FaultKind",
    "FaultSpec",
    "Host",
    "NamePolicy",
    "Nic",
    "RandomSource",
    "ReportedDevice",
    "Switch",
    "Wiring",
    "build_wiring",
    "damage_fabric",
    "derive_shape",
    "derive_truth",
    "render_inventory",
    "render_lldpcli",
    "render_truth",
    "report_claims",
    "subnet_of",
    "sweep_devices",
    "sysfs_files",
    "build_undamaged",
]
