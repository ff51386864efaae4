"""A fabric specification becomes devices, cables, faults, the true tree, and what tools print.

    spec ─> wiring ─> damaged ─> truth
                         └─────> claims, captures, inventory

All of it is pure: a seeded random source is an argument, and equal arguments give equal output.
"""

from topology.synthetic.claims import Reported, report_claims, sweep_devices
from topology.synthetic.damage import damage
from topology.synthetic.device_views import subnet_of
from topology.synthetic.faults import Damaged, Fault, FaultKind, FaultSpec, RandomSource, undamaged
from topology.synthetic.host_files import inventory, sysfs_files
from topology.synthetic.lldp_text import lldpcli_captures
from topology.synthetic.spec import FabricKind, FabricSpec, NamePolicy, derive_shape
from topology.synthetic.truth import derive_truth, render_truth
from topology.synthetic.wiring import Cable, Host, Nic, Switch, Wiring, build_wiring

__all__ = [
    "Cable",
    "Damaged",
    "FabricKind",
    "FabricSpec",
    "Fault",
    "FaultKind",
    "FaultSpec",
    "Host",
    "NamePolicy",
    "Nic",
    "RandomSource",
    "Reported",
    "Switch",
    "Wiring",
    "build_wiring",
    "damage",
    "derive_shape",
    "derive_truth",
    "inventory",
    "lldpcli_captures",
    "render_truth",
    "report_claims",
    "subnet_of",
    "sweep_devices",
    "sysfs_files",
    "undamaged",
]
