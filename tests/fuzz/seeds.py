"""The seeds of fuzzing: the inputs of the fixtures, and small documents."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from typing import Final

from generator.cli.request_input import load_request
from generator.objects.tree_record import RecentChanges, TreeRecord, render_tree_record
from generator.rpc.messages.requests import encode_request
from generator.rpc.toponaut.v1 import placement_pb2 as pb
from tests.repository import ROOT
from tests.topology.source_views import fabric_of
from tests.topology.sources.lldp.frames import CASES, read_frame
from topology.model.facts import Device, DeviceKind, Medium, Neighbor, Port, PortState, Source
from topology.model.ids import Id, IdKind
from topology.model.tree import DomainSpec, Unplaced, build_tree, render_tree
from topology.reports.fabric_status import (
    CountedSweep,
    FabricStatus,
    Sweeper,
    SweepRole,
    render_fabric,
)
from topology.reports.neighbor_report import build_report, render_report
from topology.reports.sweep_parts import split_sweep
from topology.synthetic import render_lldpcli, render_snmpwalks

FIXTURES: Final = ROOT / "fixtures"
_GUID: Final = "00a0000000000001"
SOURCE_MARK: Final = b"\x1d"
"""Between two sources in one input: ASCII's group separator."""
_SYSFS_MARK: Final = "\x1e"
"""Between the files of a sysfs tree in one text: ASCII's record separator."""


def inputs(source: str) -> Iterator[bytes]:
    """Yield the inputs in the fixtures of a source."""
    for file in sorted((FIXTURES / source).glob("*/input.*")):
        yield file.read_bytes()


def frames() -> Iterator[bytes]:
    """Yield the frames in the fixtures, which are in hex."""
    for case in CASES:
        yield read_frame(case)


def captures() -> Iterator[bytes]:
    """Yield capture files of both byte orders with these frames."""
    for order in "<>":
        head = struct.pack(f"{order}IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1)
        yield head + b"".join(
            struct.pack(f"{order}IIII", 0, 0, len(one), len(one)) + one for one in frames()
        )


def sysfs() -> Iterator[bytes]:
    """Yield the sysfs trees in the fixtures, each as one text."""
    for text in inputs("ib_sysfs"):
        files = json.loads(text)
        yield _SYSFS_MARK.join(f"{path}={content}" for path, content in files.items()).encode()


def source_pairs() -> Iterator[bytes]:
    """Yield a capture and a walk of each switch of a fabric."""
    fabric = fabric_of("rails")
    texts = dict(render_lldpcli(fabric))
    for file, walk in render_snmpwalks(fabric):
        name = file.removesuffix(".snmpwalk.txt")
        yield SOURCE_MARK.join((texts[f"{name}.neighbors.json0"].encode(), walk.encode()))


def sysfs_files(raw: bytes) -> Iterator[tuple[str, str]]:
    """Yield (path, content) of a sysfs tree in one text; accepts any bytes."""
    for part in raw.decode("utf-8", "replace").split(_SYSFS_MARK):
        path, _, content = part.partition("=")
        yield path, content


def reports() -> Iterator[bytes]:
    """Yield the report of a host, and one part of a sweep."""
    heard = Neighbor(
        device_ids=(Id(IdKind.CHASSIS_ID, "02:00:00:00:00:01", "mac"),),
        device_name="leaf1",
        port_ids=(Id(IdKind.PORT_ID, "swp1", "ifname"),),
        port_name="swp1",
        source=Source.LLDP,
        kind=DeviceKind.SWITCH,
        ttl_s=120,
    )
    port = Port(
        name="eth0",
        ids=(Id(IdKind.MAC, "02:00:00:00:00:02"), Id(IdKind.IFNAME, "eth0")),
        medium=Medium.ETHERNET,
        state=PortState.UP,
        rate_bps=100_000_000_000,
        neighbors=(heard,),
    )
    host = Device(DeviceKind.HOST, "n1", (Id(IdKind.NODE_GUID, _GUID),), (port,))
    sweep = next(inputs("ibnetdiscover")).decode()
    for report in (build_report(host, name="n1"), *split_sweep(sweep, node="n1", subnet="f" * 16)):
        yield json.dumps(render_report(report)).encode()


def inventories() -> Iterator[bytes]:
    """Yield node inventories in JSON and YAML, and the output of `kubectl get nodes`."""
    ids = [{"type": "mac", "value": "02:00:00:00:00:02"}]
    node = {"name": "n1", "ids": ids, "capacity": {"slots": 8}, "free": {"slots": 4}}
    yield json.dumps({"nodes": [node | {"labels": {"zone": "a"}}]}).encode()
    yield b"""nodes:
  - name: n2
    ids: [{type: node-guid, value: 00a0000000000001}]
    taints: [{key: gpu, value: "yes", effect: NoSchedule}]
    schedulable: false
"""
    yield b"""apiVersion: v1
kind: List
items:
  - apiVersion: v1
    kind: Node
    metadata: {name: n3, labels: {zone: a}}
    spec: {unschedulable: true, taints: [{key: gpu, effect: NoExecute}]}
    status:
      addresses: [{type: InternalIP, address: 192.0.2.1}]
      allocatable: {cpu: 63850m, memory: 1Gi, pods: "110", nvidia.com/gpu: "8"}
"""


def trees() -> Iterator[bytes]:
    """Yield a tree of three domains."""
    specs = [
        DomainSpec(name="spine", tier=2, parent=None, nodes=(), switches=("s1",), margin=0.5),
        DomainSpec(name="leaf-1", tier=1, parent="spine", nodes=("n1", "n2"), switches=("l1",)),
        DomainSpec(name="leaf-2", tier=1, parent="spine", nodes=("n3",), switches=("l2",)),
    ]
    gone = [Unplaced("n4", "no link")]
    tree = build_tree(specs, tiers=("leaf", "spine"), plane="compute", unplaced=gone)
    yield json.dumps(render_tree(tree)).encode()


def requests() -> Iterator[bytes]:
    """Yield placement requests in YAML and JSON."""
    yield (FIXTURES / "demo" / "gang.yaml").read_bytes()
    spec = {
        "preset": "optimal",
        "priority": 5,
        "min": 3,
        "groups": [{"name": "w", "count": 4, "request": {"slots": 8}}],
        "required": "spine",
        "preferred": ["leaf", "1"],
        "strategies": [["spine", "leaf"]],
        "max_domains": {"leaf": 2},
        "across_islands": True,
        "deadline_s": 1.5,
    }
    document = {"apiVersion": "toponaut.io/v1alpha1", "kind": "PlacementRequest", "spec": spec}
    yield json.dumps(document).encode()


def pods() -> Iterator[bytes]:
    """Yield the pods of a job in YAML and JSON."""
    yield (FIXTURES / "manifests" / "kueue-pod-group" / "input.yaml").read_bytes()
    yield (FIXTURES / "manifests" / "volcano-podgroup-in-part" / "input.yaml").read_bytes()
    yield (FIXTURES / "manifests" / "plain-job-constraints" / "input.yaml").read_bytes()
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": "train-0",
            "namespace": "ml",
            "labels": {"volcano.sh/task-spec": "worker", "volcano.sh/task-index": "0"},
            "annotations": {"scheduling.k8s.io/group-name": "train"},
            "ownerReferences": [{"kind": "Job", "name": "train"}],
        },
        "spec": {
            "nodeName": "n1",
            "containers": [{"resources": {"requests": {"nvidia.com/gpu": "8", "cpu": "500m"}}}],
        },
        "status": {"phase": "Running"},
    }
    yield json.dumps(pod).encode()


def traces() -> Iterator[bytes]:
    """Yield traces of jobs."""
    yield b"submit_time_s,gpus,duration_s\n0,1,60\n7.5,16,1e4\n"
    yield b'duration_s,user,"gpus",submit_time_s\r\n3,"a,b",8,0\r\n'


def tree_records() -> Iterator[bytes]:
    """Yield a record of a decided tree, and one without a tree."""
    domains = (DomainSpec("leaf-1", 1, "pod", ("a",)), DomainSpec("pod", 2, None))
    tree = build_tree(domains, tiers=("leaf", "pod"))
    recent = RecentChanges({"a": 1_780_000_000}, {(1, "leaf-2"): 1_780_000_000})
    yield json.dumps(render_tree_record(TreeRecord(tree, recent))).encode()
    yield json.dumps(render_tree_record(TreeRecord(None))).encode()


def interrupted_applies() -> Iterator[bytes]:
    """Yield steps: nodes by leaf, leaves by spine, and after how many writes the step is cut."""
    first = bytes([1, 1, 1, 1, 2, 2, 2, 2, 0, 0, 0, 1, 1, 255])
    exchanged = bytes([2, 2, 2, 1, 1, 1, 1, 2, 0, 0, 1, 1, 1, 3])
    split = bytes([1, 1, 3, 3, 2, 2, 4, 4, 0, 1, 0, 1, 0, 5])
    yield first + exchanged + split
    yield first + split + first[:-1] + bytes([2]) + exchanged


def request_messages() -> Iterator[bytes]:
    """Yield a request in protobuf."""
    document = load_request(str(FIXTURES / "demo" / "gang.yaml"), None, {}).document
    yield encode_request(document).SerializeToString()


def answer_messages() -> Iterator[bytes]:
    """Yield an answer in protobuf."""
    yield pb.Placement(
        feasible=True,
        assignment=[pb.Assignment(group="w", nodes=["n1", ""])],
        tier="leaf",
        domains=[pb.DomainVerdict(name="leaf-1", verdict="chosen", needs="1 slot")],
    ).SerializeToString()


def switches() -> Iterator[bytes]:
    """Yield a list of switches to walk."""
    yield b"""switches:
  - addresses: [192.0.2.1, leaf02.example.org, 192.0.2.16/28]
    communityFile: secrets/community
  - addresses: ["2001:db8::1"]
    port: 1161
    version: "3"
    user: reader
    authKeyFile: secrets/auth
    privKeyFile: secrets/priv
discover: {networks: [192.0.2.0/24], maxDepth: 2}
"""


def planes() -> Iterator[bytes]:
    """Yield a plane policy."""
    yield b"""planes:
  - name: storage
    any:
      - switches: ["stor-*", "pool[0-9]"]
      - {ports: [mlx5_4/1], hosts: ["dgx*"], subnets: ["fe80000000000001"], gpu: same-numa}
  - name: compute
    any: [{medium: infiniband, minRateGbps: 200, maxRateGbps: 400.5}]
"""


def node_texts() -> Iterator[bytes]:
    """Yield the bonds and private flags of a node, as its kernel and ethtool print them."""
    yield b"""Ethernet Channel Bonding Driver: v6.1.0

Slave Interface: eth0
Permanent HW addr: 02:00:00:00:00:01

Slave Interface: eth1
Permanent HW addr: 00:00:00:00:00:00
"""
    yield b"Private flags for eth0:\nlink-down-on-close : off\nfw-lldp-agent      : on\n"
    yield b"Private flags for eth1:\ndisable-fw-lldp: off\n"


def silences() -> Iterator[bytes]:
    """Yield a list of silences."""
    yield b"""- {kind: missing-link, device: n1, reason: ordered, until: 2026-12-24}
- {kind: slow-link, device: leaf-1, port: "3", reason: known, until: "2027-01-01"}
"""


def fabric_objects() -> Iterator[bytes]:
    """Yield the fabric object, which names the sweepers for agents."""
    subnet = "fe80000000000000"
    sweeper = Sweeper(subnet=subnet, node="n1", device="mlx5_0", port=1, role=SweepRole.ELECTED)
    sweep = FabricStatus(sweepers=(sweeper,), sweeps=(CountedSweep(subnet=subnet, node="n1"),))
    yield json.dumps(render_fabric(sweep)).encode()
