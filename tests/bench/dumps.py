"""Rail fabrics as dumps on disk, made in processes of their own: their memory is not measured."""

from __future__ import annotations

import json
from pathlib import Path
from typing import NamedTuple

from topology.sources.ibnetdiscover_text import render_ibnetdiscover
from topology.synthetic import (
    FabricKind,
    FabricSpec,
    build_wiring,
    derive_truth,
    sweep_devices,
    undamaged,
)
from topology.tree import host_partitions

RAILS = 8
RADIX = 64


class Dump(NamedTuple):
    """What a size is measured on."""

    num_hcas: int
    sweep: Path
    truth: Path
    """Tier by tier the sorted hosts of each domain, as JSON."""


def write_dump(folder: Path, num_hcas: int) -> Dump:
    """Write an undamaged rail fabric of so many HCAs and its true partitions."""
    spec = FabricSpec(FabricKind.RAIL, max(1, num_hcas // RAILS), rails=RAILS, radix=RADIX)
    damaged = undamaged(build_wiring(spec))
    dump = Dump(num_hcas, folder / f"{num_hcas}.txt", folder / f"{num_hcas}.json")
    dump.sweep.write_text(render_ibnetdiscover(sweep_devices(damaged)), encoding="utf-8")
    partitions = [
        sorted(sorted(hosts) for hosts in tier) for tier in host_partitions(derive_truth(damaged))
    ]
    dump.truth.write_text(json.dumps(partitions), encoding="utf-8")
    return dump
