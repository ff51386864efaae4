"""Resources that pods use and no node lists: shares of a GPU, and ports of the host.

Each is a resource with a descriptive name: `nvidia.com/gpu.4x0.5` is half of each of four GPUs,
`nvidia.com/gpu.1x2000Mi` is 2000 MiB of one, `host-port.TCP.8080` is a port. Nodes get as much of
it as their free GPUs hold.

KAI fills the shared GPUs of a node first, so equal pods fill as many GPUs as one of them uses,
before they use the next ones. Source: kai-scheduler/KAI-Scheduler, pkg/scheduler/gpu_sharing and
api/node_info; kube-scheduler's plugin NodePorts.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from decimal import Decimal, InvalidOperation
from itertools import pairwise
from typing import Any, Final, NamedTuple

from generator.manifests.fields import MAX_INTEGER, Field, Note
from generator.placement.cluster.nodes import NodeSpec, RunningGang
from topology.model.errors import list_some

GPU: Final = "nvidia.com/gpu"
_MEMORY_LABEL: Final = "nvidia.com/gpu.memory"
_UNKNOWN_MEMORY: Final = 100
"""Memory that KAI assumes for the fractions of GPUs of a node without the label."""
_MEMORY_STEP: Final = 100
_MAX_DIGITS: Final = 9
_MAX_MIB: Final = 1 << 20
"""A larger value of the label is in bytes."""
_MAX_NODES_SHOWN: Final = 4
_PORT: Final = "host-port."
_PARTS: Final = f"{GPU}.parts-of-"
_SHARE: Final = re.compile(
    re.escape(GPU) + r"\.(?P<num>[0-9]{1,7})x(?P<part>0?\.[0-9]{1,64}|[0-9]{1,15}Mi)\Z"
)
_UNLISTED: Final = frozenset(
    {f"{GPU}mem", f"{GPU}mem-percentage", f"{GPU}cores", "nvidia.com/priority"}
)
"""HAMi reads them from the pod, and nodes do not list them."""
_PER_DEVICE: Final = frozenset(
    {"volcano.sh/vgpu-memory", "volcano.sh/vgpu-memory-percentage", "volcano.sh/vgpu-cores"}
)


class GpuShare(NamedTuple):
    """Equal shares of several GPUs."""

    num_devices: int
    fraction: Decimal | None
    memory_mib: int | None
    """Instead of a fraction."""

    @property
    def name(self) -> str:
        """The name of the resource."""
        part = f"{self.memory_mib}Mi" if self.fraction is None else f"{self.fraction:f}"
        return f"{GPU}.{self.num_devices}x{part}"

    def count_per_device(self, memory_mib: int = _UNKNOWN_MEMORY) -> int:
        """Return how many shares of this size one GPU holds."""
        share = self.memory_mib or int((self.fraction or 0) * memory_mib)
        return memory_mib // max(share, 1)

    def count_pods(self, num_gpus: int, memory_mib: int | None) -> int:
        """Return how many pods with shares of this size fit the free GPUs of a node.

        An amount of memory takes a whole GPU if the memory of the GPU is unknown.
        """
        if self.fraction is None and memory_mib is None:
            return num_gpus // self.num_devices
        return num_gpus // self.num_devices * self.count_per_device(memory_mib or _UNKNOWN_MEMORY)


def _parse_memory(labels: Mapping[str, str]) -> int | None:
    """Return the memory of one GPU of a node in MiB, as KAI rounds it; None if it is unknown."""
    text = labels.get(_MEMORY_LABEL, "")
    if not text.isdecimal():
        return None
    mib = int(text) if int(text) < _MAX_MIB else int(text) // _MAX_MIB
    return mib - mib % _MEMORY_STEP


def warn_of_unknown_memory(names: Iterable[str], nodes: Iterable[NodeSpec]) -> tuple[Note, ...]:
    """Return why shares by memory may not be counted as KAI counts them."""
    shares = [share for share in map(parse_share_name, names) if share and share.fraction is None]
    unknown = [
        node.name for node in nodes if node.capacity.get(GPU) and _parse_memory(node.labels) is None
    ]
    if not shares or not unknown:
        return ()
    text = f"without the label {_MEMORY_LABEL}, a share by memory takes a whole GPU"
    return (Note(f"nodes {list_some(unknown, _MAX_NODES_SHOWN)}", text, is_warning=True),)


def is_port(name: str) -> bool:
    """Return whether a resource is a port of the host."""
    return name.startswith(_PORT)


def parse_share_name(name: str) -> GpuShare | None:
    """Return the share of a resource's name; None if it is another resource."""
    match = _SHARE.match(name)
    if match is None or not int(match["num"]):
        return None
    part = match["part"]
    if part.endswith("Mi"):
        return GpuShare(int(match["num"]), None, int(part.removesuffix("Mi")))
    return GpuShare(int(match["num"]), Decimal(part), None)


def add_unlisted(template: Field, request: Mapping[str, int | str]) -> dict[str, int | str]:
    """Return the request of a pod with its shares of GPUs and its ports of the host.

    Raises:
        PlacementRequestError: an annotation is malformed, or KAI refuses it.
    """
    found = {name: amount for name, amount in request.items() if name not in _UNLISTED}
    share = _parse_share(template.get("metadata", "annotations"))
    if share is not None:
        if GPU in found:
            problem = "KAI refuses a share of GPUs beside whole ones"
            raise template.get("metadata", "annotations").build_error(problem)
        found[share.name] = 1
    _warn_of_device_shares(template.get("spec"))
    return found | dict.fromkeys(_list_ports(template.get("spec")), 1)


def _parse_share(annotations: Field) -> GpuShare | None:
    fraction, memory = annotations.get("gpu-fraction"), annotations.get("gpu-memory")
    num_devices = annotations.get("gpu-fraction-num-devices")
    if fraction.exists and memory.exists:
        raise memory.build_error("KAI refuses it beside gpu-fraction")
    if fraction.exists:
        return GpuShare(num_devices.integer_from_text() or 1, _parse_fraction(fraction), None)
    if memory.exists:
        return GpuShare(num_devices.integer_from_text() or 1, None, memory.integer_from_text())
    return None


def _parse_fraction(field: Field) -> Decimal:
    try:
        fraction = Decimal(str(field.raw()).strip())
    except InvalidOperation:
        fraction = Decimal(0)
    if fraction.is_finite() and 0 < fraction < 1:
        rounded = round(fraction, _MAX_DIGITS)
        if rounded == fraction:
            return rounded.normalize()
    raise field.build_error(f"expected a number between 0 and 1, of at most {_MAX_DIGITS} digits")


def _list_containers(spec: Field) -> Iterator[Field]:
    """Yield the containers that run together."""
    yield from spec.get("containers").items()
    for container in spec.get("initContainers").items():
        if container.get("restartPolicy").value == "Always":
            yield container


def _list_ports(spec: Field) -> Iterator[str]:
    """Yield the ports of the node that a pod takes: all of its ports, on the node's network."""
    is_on_node = spec.get("hostNetwork").raw() is True
    for container in _list_containers(spec):
        for port in container.get("ports").items():
            number = port.get("hostPort").optional_integer()
            if is_on_node and not number:
                number = port.get("containerPort").optional_integer()
            if number:
                yield f"{_PORT}{port.get('protocol').text('TCP')}.{number}"


def _warn_of_device_shares(spec: Field) -> None:
    """Warn of shares of devices that are not counted, or only counted by node."""
    for container in _list_containers(spec):
        for kind in ("limits", "requests"):
            for name, amount in container.get("resources", kind).entries():
                if name in _UNLISTED:
                    amount.warn("nodes do not list it, so it is left out of the request")
                elif name in _PER_DEVICE:
                    amount.warn("is counted by node, not by device")


def join_shares(groups: Iterable[Mapping[str, Any]]) -> str:
    """Count all shares of GPUs in one common unit; return why that may not be exact.

    Args:
        groups: all groups of pods of a request; their requests are changed.
    """
    amounts = [
        (row["request"], parse_share_name(name), amount)
        for row in groups
        for name, amount in row.get("request", {}).items()
        if name == GPU or parse_share_name(name)
    ]
    shares = {share for _, share, _ in amounts}
    if len(shares) <= 1:  # equal shares need no common unit
        return ""
    counts = sorted({_count_shares(share) for share in shares})
    parts = math.lcm(*counts)
    for request, share, amount in amounts:
        num_devices = share.num_devices if share else int(amount)
        request[f"{_PARTS}{parts}"] = num_devices * (parts // _count_shares(share))
    is_plain = all(share is None or share[::2] == (1, None) for share in shares)
    if is_plain and all(not big % small for small, big in pairwise(counts)):
        return ""
    return "pods with different shares of GPUs are counted by node, not by device"


def _count_shares(share: GpuShare | None) -> int:
    """Return how many equal shares one GPU holds; 1 if the share is whole GPUs."""
    return 1 if share is None else max(share.count_per_device(), 1)


def list_on_nodes(
    nodes: Mapping[str, NodeSpec],
    names: Iterable[str],
    gangs: Iterable[RunningGang],
    *,
    counted: RunningGang | None = None,
) -> dict[str, NodeSpec]:
    """Return the nodes with the quantities of unlisted resources that they hold.

    Args:
        nodes: what each node has, by name.
        names: the resources that a request names.
        gangs: the running gangs that are not subtracted from the nodes yet.
        counted: a gang that runs, and is subtracted from what nodes list.
    """
    unlisted = sorted({name for name in names if name.startswith((_PORT, f"{GPU}."))})
    if not unlisted:
        return dict(nodes)
    used: Counter[str] = Counter()
    for pods in (pods for gang in gangs for pods in gang.pods):
        used[pods.node] += pods.count * pods.request.get(GPU, 0)
    taken: dict[str, dict[str, int]] = {}
    for pods in counted.pods if counted else ():
        ports = filter(is_port, pods.request)
        taken.setdefault(pods.node, {}).update(dict.fromkeys(ports, 0))
    return {
        name: replace(
            node,
            capacity={**node.capacity, **_count_unlisted(node, unlisted, node.capacity, 0)},
            free={
                **node.initial_free,
                **_count_unlisted(node, unlisted, node.initial_free, used[name]),
                **taken.get(name, {}),
            },
        )
        for name, node in nodes.items()
    }


def _count_unlisted(
    node: NodeSpec, names: Iterable[str], room: Mapping[str, int], used: int
) -> dict[str, int]:
    num_gpus = max(room.get(GPU, 0) - used, 0)
    counts: dict[str, int] = {}
    for name in names:
        share = parse_share_name(name)
        if is_port(name):
            counts[name] = 1
        elif name.startswith(_PARTS) and name.removeprefix(_PARTS).isdecimal():
            counts[name] = num_gpus * min(int(name.removeprefix(_PARTS)), MAX_INTEGER)
        elif share is not None and name not in room:
            counts[name] = share.count_pods(num_gpus, _parse_memory(node.labels))
    return counts
