"""Rail fabrics as dumps on disk, made in processes of their own: their memory is not measured."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import NamedTuple

from topology.model.tree import host_partitions
from topology.sources.ibnetdiscover.printer import render_ibnetdiscover
from topology.synthetic import (
    FabricKind,
    SyntheticSpec,
    build_undamaged,
    build_wiring,
    derive_truth,
    sweep_devices,
)

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
    spec = SyntheticSpec(FabricKind.RAIL, max(1, num_hcas // RAILS), rails=RAILS, radix=RADIX)
    damaged = build_undamaged(build_wiring(spec))
    dump = Dump(num_hcas, folder / f"{num_hcas}.txt", folder / f"{num_hcas}.json")
    text = as_printed(render_ibnetdiscover(sweep_devices(damaged)))
    dump.sweep.write_text(text, encoding="utf-8")
    partitions = [
        sorted(sorted(hosts) for hosts in tier) for tier in host_partitions(derive_truth(damaged))
    ]
    dump.truth.write_text(json.dumps(partitions), encoding="utf-8")
    return dump


def as_printed(text: str) -> str:
    """Return a rendered dump with the id lines that the tool prints and our rendering leaves out.

    Source: infiniband-diags 44, ibnetdiscover.c; 65,536 HCAs give 0.8 M lines.
    """
    head = "# Topology file: generated on Mon Jan  5 10:00:00 2026\n#\n"
    lines = text.replace("sysimgguid=", "vendid=0x2c9\ndevid=0x1021\nsysimgguid=")
    return head + re.sub(r"switchguid=0x([0-9a-f]+)", r"switchguid=0x\1(\1)", lines)
