"""Small synthetic fabrics, written to disk in every form that the reading commands take."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from click.testing import CliRunner

from generator.cli.group import cli
from tests.generator.folders import StoreFolder
from topology.model.facts import Medium
from topology.reports.neighbor_report import ReportStatus, build_report
from topology.reports.sweep_parts import split_sweep
from topology.synthetic import (
    DamagedFabric,
    FabricKind,
    SyntheticSpec,
    build_undamaged,
    build_wiring,
    render_inventory,
    render_lldpcli,
    report_claims,
    sweep_devices,
)
from topology.synthetic.sweep_output import render_ibnetdiscover

RAILS = SyntheticSpec(FabricKind.RAIL, 16, rails=4, radix=8)
PAIRS = SyntheticSpec(FabricKind.DUAL_HOMED, 16, radix=8, medium=Medium.ETHERNET)


@dataclass(frozen=True, slots=True)
class Ran:
    """The output and the exit code of one run of the command."""

    code: int
    out: str
    err: str

    @property
    def document(self) -> Any:  # noqa: ANN401 - whatever was printed
        return json.loads(self.out)

    @property
    def actions(self) -> list[dict[str, Any]]:
        """The actions of a plan without the moves, which `apply` does not print."""
        return [{key: row[key] for key in row if key != "moves"} for row in self.document]


def run(*words: object, env: dict[str, str] | None = None) -> Ran:
    """Run `toponaut` in this process; an unexpected exception is raised."""
    result = CliRunner().invoke(cli, [str(word) for word in words], env=env)
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    return Ran(result.exit_code, result.stdout, result.stderr)


@dataclass(frozen=True, slots=True)
class Scene:
    """One fabric and the folder that its files are written to."""

    root: Path
    damaged: DamagedFabric

    @classmethod
    def of(cls, root: Path, spec: SyntheticSpec) -> Scene:
        root.mkdir(parents=True, exist_ok=True)
        return cls(root, build_undamaged(build_wiring(spec)))

    @property
    def hosts(self) -> list[str]:
        return [host.name for host in self.damaged.wiring.hosts]

    def store(self, observed_at: str | None = None) -> Path:
        """Write what the agents would have written at this time; return the store."""
        store = StoreFolder(self.root / "store")
        status = ReportStatus(observed_at=observed_at)
        for claim in report_claims(self.damaged):
            store.write_report(build_report(claim.device, name=claim.report, status=status))
        if self.damaged.wiring.spec.medium is Medium.INFINIBAND:
            for part in split_sweep(
                self.sweep_text(), node=self.hosts[0], subnet="fe80" + "0" * 12
            ):
                store.write_report(part)
        return self.root / "store"

    def reports(self) -> Path:
        return self.store() / "neighborreports"

    def sweep_text(self) -> str:
        return render_ibnetdiscover(sweep_devices(self.damaged))

    def sweep(self) -> Path:
        return self.write("sweep.txt", self.sweep_text())

    def captures(self) -> Path:
        for name, text in render_lldpcli(self.damaged):
            self.write(f"captures/{name}", text)
        return self.root / "captures"

    def nodes(self) -> Path:
        """Write our own list of nodes."""
        return self.write("nodes.yaml", yaml.safe_dump(render_inventory(self.damaged)))

    def kube_nodes(self, *names: str, form: str = "json") -> Path:
        """Write what kubectl prints for all hosts, or for some names."""
        items = [kube_node(name) for name in names or self.hosts]
        listed = {"apiVersion": "v1", "kind": "List", "items": items}
        text = json.dumps(listed) if form == "json" else yaml.safe_dump(listed)
        return self.write(f"kube-nodes.{form}", text)

    def write(self, name: str, content: str | bytes) -> Path:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path


def kube_node(name: str, **spec: object) -> dict[str, Any]:
    """Return a Node as an API server returns it, with the fields that are read and a few more."""
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"zone": "a"}, "uid": "1", "annotations": {}},
        "spec": {"podCIDR": "10.0.0.0/24", **spec},
        "status": {
            "allocatable": {"cpu": "63850m", "memory": "2113462Mi", "nvidia.com/gpu": "8"},
            "addresses": [
                {"type": "InternalIP", "address": "10.0.0.7"},
                {"type": "Hostname", "address": name},
            ],
            "nodeInfo": {"kubeletVersion": "v1.33.1"},
        },
    }


def partition(document: dict[str, Any]) -> list[set[frozenset[str]]]:
    """Return the node sets of a printed tree's domains, tier by tier."""
    below: dict[str, frozenset[str]] = {}
    tiers = []
    for tier in document["tiers"]:
        for row in tier["domains"]:
            below[row["name"]] = frozenset(row.get("nodes", ())).union(
                *(below[child] for child in row.get("children", ()))
            )
        tiers.append({below[row["name"]] for row in tier["domains"]})
    return tiers


def domain_names(document: dict[str, Any]) -> Sequence[str]:
    return [row["name"] for tier in document["tiers"] for row in tier["domains"]]
