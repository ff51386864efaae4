"""`nvidia-smi`: the NVLink domain of a node's GPUs.

A multi-node NVLink domain is a clique of a cluster: (ClusterUUID, CliqueId) of GPUs whose
registration with the fabric is Completed with Success. A node whose GPUs reach only each other
reports a UUID of zeros and is not in a domain.

Sources: nvmlGpuFabricInfo of NVIDIA's NVML reference; `nvidia-smi --help-query-gpu`. `FIELDS` has
the field names of a query; drivers print `fabric.clique_id` or `fabric.cliqueId` in the header.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from topology.model.errors import ParseError, show
from topology.model.facts import DeviceKind, Medium, Neighbor, Port, PortState, Source
from topology.model.ids import Id, IdKind

FIELDS: Final = ("fabric.state", "fabric.status", "fabric.cliqueId", "fabric.clusterUuid")
"""Fields to query with `--query-gpu`, in the order that `--format=csv` prints them."""

PORT_NAME: Final = "nvlink"
_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\Z")
_NO_UUID = "00000000-0000-0000-0000-000000000000"
_CLIQUE = re.compile(r"\d{1,10}\Z", re.ASCII)
_MAX_CLIQUE = (1 << 32) - 1
_GPU_HEAD = re.compile(r"GPU [0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-7]\s*\Z")
_SECTION = re.compile(r"(?P<indent>\s+)Fabric\s*\Z")
_NAME_CHARS: Final = 8
_UNSUPPORTED: Final = frozenset({"N/A", "[N/A]", "[Not Supported]", "Not Supported", ""})
"""States of GPUs that cannot be in a fabric."""


class GpuFabric(NamedTuple):
    """The fabric fields of one GPU, as printed."""

    state: str
    status: str
    clique: str
    cluster: str


class Clique(NamedTuple):
    """A multi-node NVLink domain."""

    cluster: str
    """UUID in lower case."""
    number: int


class NodeClique(NamedTuple):
    """The NVLink domain of a node, derived from all of its GPUs."""

    clique: Clique | None = None
    """None if the GPUs are not in a multi-node domain, or disagree."""
    is_settled: bool = True
    """Whether a GPU has completed its registration, or no GPU will ever register."""
    note: str = ""
    """A remark for the operator; empty in the normal case."""


def parse_gpu_fabrics(
    text: str, *, source: str = ""
) -> tuple[tuple[GpuFabric, ...], tuple[ParseError, ...]]:
    """Return one entry per GPU from the output of `nvidia-smi`: csv of `FIELDS`, or `-q`.

    Skips a csv line with another number of cells, with an error. Skips a GPU of `-q` without the
    Fabric section, which old drivers do not print.
    """
    lines = text.removeprefix("\ufeff").split("\n")  # splitlines() also splits at control bytes
    if any(_GPU_HEAD.match(line) for line in lines):
        return tuple(_sections(lines)), ()
    gpus, errors = [], []
    for number, line in enumerate(lines, 1):
        cells = tuple(cell.strip() for cell in line.split(","))
        if not line.strip() or _is_header(cells):
            continue
        if len(cells) == len(FIELDS):
            gpus.append(GpuFabric(*cells))
        else:
            problem = f"expected {len(FIELDS)} fields"
            errors.append(ParseError(problem, source=source, line=number, excerpt=line))
    return tuple(gpus), tuple(errors)


def derive_clique(gpus: Sequence[GpuFabric]) -> NodeClique:
    """Return the domain that the GPUs with a completed registration agree on."""
    ready = [gpu for gpu in gpus if _is_ready(gpu)]
    late = [gpu for gpu in gpus if not _is_ready(gpu) and gpu.state not in _UNSUPPORTED]
    cliques = {_clique_of(gpu) for gpu in ready}
    if len(cliques) > 1:
        names = ", ".join(sorted(_name(clique) if clique else "none" for clique in cliques))
        return NodeClique(
            note=f"the GPUs report different NVLink domains, so the node is in none: {names}"
        )
    states = ", ".join(sorted({f"{show(gpu.state)}/{show(gpu.status)}" for gpu in late}))
    note = f"{len(late)} of {len(gpus)} GPUs have not joined their fabric: {states}" if late else ""
    return NodeClique(next(iter(cliques), None), is_settled=bool(ready) or not late, note=note)


def build_clique_port(clique: Clique) -> Port:
    """Return a node's port in an NVLink domain; the domain is its neighbor, as a switch."""
    domain = Neighbor(
        device_ids=(Id(IdKind.CHASSIS_ID, f"{clique.cluster}.{clique.number}", PORT_NAME),),
        device_name=_name(clique),
        port_ids=(),
        port_name="",
        source=Source.OTHER,
        kind=DeviceKind.SWITCH,
    )
    return Port(PORT_NAME, medium=Medium.NVLINK, state=PortState.UP, neighbors=(domain,))


def is_clique_id(identifier: Id) -> bool:
    """Return whether an id is that of an NVLink domain, as `build_clique_port` writes it."""
    return identifier.kind is IdKind.CHASSIS_ID and identifier.subtype == PORT_NAME


def _is_ready(gpu: GpuFabric) -> bool:
    return gpu.state == "Completed" and gpu.status == "Success"


def _name(clique: Clique) -> str:
    return f"{PORT_NAME}-{clique.cluster[:_NAME_CHARS]}-{clique.number}"


def _clique_of(gpu: GpuFabric) -> Clique | None:
    cluster = gpu.cluster.lower()
    if not _UUID.match(cluster) or cluster == _NO_UUID or not _CLIQUE.match(gpu.clique):
        return None
    number = int(gpu.clique)
    return Clique(cluster, number) if number <= _MAX_CLIQUE else None


def _is_header(cells: Iterable[str]) -> bool:
    field_names = [field.lower() for field in FIELDS]
    return [cell.lower().replace("_", "") for cell in cells] == field_names


def _sections(lines: Iterable[str]) -> Iterator[GpuFabric]:
    """Yield the `Fabric` section of each GPU of `-q`; other sections have a State field too."""
    indent: int | None = None
    section_fields: dict[str, str] = {}
    for line in [*lines, ""]:
        depth = len(line) - len(line.lstrip())
        if indent is not None and depth <= indent:
            yield _section(section_fields)
            indent, section_fields = None, {}
        head = _SECTION.match(line)
        if head:
            indent = len(head["indent"])
        elif indent is not None:
            key, colon, value = line.partition(" : ")
            if colon:
                section_fields.setdefault(key.strip(), value.strip())


def _section(section_fields: dict[str, str]) -> GpuFabric:
    keys = ("State", "Status", "CliqueId", "ClusterUUID")
    return GpuFabric(*(section_fields.get(key, "N/A") for key in keys))
