import json
from collections.abc import Iterator

import pytest

from tests.topology.synthetic.fabrics import SPECS, cut, cut_all, seeded, silence
from topology.model.facts import Device, Medium, Neighbor
from topology.sources.infiniband.sysfs import parse_ib_sysfs
from topology.sources.lldp.lldpcli import parse_neighbors
from topology.synthetic import (
    DamagedFabric,
    FaultSpec,
    build_undamaged,
    build_wiring,
    damage_fabric,
    derive_truth,
    render_inventory,
    render_lldpcli,
    render_truth,
    report_claims,
    sweep_devices,
    sysfs_files,
)

RAILS = build_undamaged(build_wiring(SPECS["rails in three tiers"]))
PAIRS = build_undamaged(build_wiring(SPECS["MLAG pairs on Ethernet"]))
FAULTS = FaultSpec(lose_links=0.03, num_swaps=3, silent=0.1, lose_switches=1)
ROOT = "class/infiniband/"


def heard_of(device: Device) -> dict[str, tuple[Neighbor, ...]]:
    return {port.name: port.neighbors for port in device.ports if port.neighbors}


def test_it_prints_the_neighbors_that_ethernet_devices_report() -> None:
    damaged = damage_fabric(PAIRS.wiring, FAULTS, seeded(1))
    files = dict(render_lldpcli(damaged))
    claims = report_claims(damaged)
    assert len(files) == 2 * len(claims)
    for claim in claims:
        found = parse_neighbors(files[f"{claim.device.name}.neighbors.json0"].encode())
        assert (found.errors, found.form) == ((), "json0")
        assert dict(found.ports) == heard_of(claim.device)


def test_it_prints_an_infiniband_fabric_with_the_same_cables() -> None:
    ends: set[tuple[tuple[str, str], tuple[str, str]]] = set()
    for name, text in render_lldpcli(RAILS):
        if name.endswith(".neighbors.json0"):
            device = name.removesuffix(".neighbors.json0")
            for port, heard in parse_neighbors(text.encode()).ports:
                ends.update(((device, port), (one.device_name, one.port_name)) for one in heard)
    there = {(tuple(low), tuple(high)) for low, high in RAILS.wiring.cables}
    assert ends == there | {(high, low) for low, high in there}


def test_it_prints_nothing_for_silent_hosts_and_an_empty_list_for_hosts_without_neighbors() -> None:
    files = dict(render_lldpcli(silence(cut_all(PAIRS, "node-0001"), "node-0002")))
    assert json.loads(files["node-0001.neighbors.json0"]) == {"lldp": [{}]}
    assert not [name for name in files if name.startswith("node-0002.")]


@pytest.mark.parametrize(
    "damaged",
    [
        pytest.param(RAILS, id="all ports up"),
        pytest.param(cut(RAILS, ("node-0002", "mlx5_1/1")), id="one port down"),
    ],
)
def test_it_writes_the_hcas_that_the_host_reports(damaged: DamagedFabric) -> None:
    files = sysfs_files(damaged, "node-0002")
    assert all(path.startswith(ROOT) for path in files)
    parsed = parse_ib_sysfs({path.removeprefix(ROOT): text for path, text in files.items()})
    claim = next(one.device for one in report_claims(damaged) if one.report == "node-0002")
    assert parsed.errors == ()
    assert parsed.devices[0].ports == claim.ports
    assert set(parsed.devices[0].ids) <= set(claim.ids)


def test_it_writes_guids_and_rates_as_the_kernel_does() -> None:
    files = sysfs_files(RAILS, "node-0001")
    folder = f"{ROOT}mlx5_1"
    assert files[f"{folder}/node_guid"] == "0200:4c00:0000:0010\n"
    assert files[f"{folder}/node_desc"] == "node-0001 mlx5_1\n"
    assert files[f"{folder}/ports/1/rate"] == "400 Gb/sec (4X NDR)\n"
    assert files[f"{folder}/ports/1/gids/0"] == "fe80:0000:0000:0000:0200:4c00:0000:0010\n"
    dark = sysfs_files(cut(RAILS, ("node-0001", "mlx5_1/1")), "node-0001")
    assert dark[f"{folder}/ports/1/rate"] == "2.5 Gb/sec (1X SDR)\n"
    assert dark[f"{folder}/ports/1/phys_state"] == "2: Polling\n"


def test_it_writes_ethernet_ports_as_physical_interfaces() -> None:
    files = sysfs_files(cut(PAIRS, ("node-0001", "eth1")), "node-0001")
    assert {path.split("/")[2] for path in files} == {"eth0", "eth1"}
    up = {path.split("/", 3)[3]: text for path, text in files.items() if "/eth0/" in path}
    assert up == {
        "address": "02:4c:00:00:00:00\n",
        "addr_assign_type": "0\n",
        "operstate": "up\n",
        "carrier": "1\n",
        "speed": "400000\n",
        "type": "1\n",
        "device/uevent": "DRIVER=mlx5_core\n",
    }
    dark = {name: files[f"class/net/eth1/{name}"] for name in ("operstate", "carrier", "speed")}
    assert dark == {"operstate": "down\n", "carrier": "0\n", "speed": "-1\n"}


def test_it_lists_every_host_with_the_ids_of_its_ports() -> None:
    nodes = render_inventory(silence(PAIRS, "node-0001"))["nodes"]
    assert [node["name"] for node in nodes] == [host.name for host in PAIRS.wiring.hosts]
    assert nodes[0] == {
        "name": "node-0001",
        "ids": [
            {"type": "mac", "value": "02:4c:00:00:00:00"},
            {"type": "mac", "value": "02:4c:00:00:00:01"},
        ],
        "capacity": {"slots": 8},
    }
    kinds = {row["type"] for row in render_inventory(RAILS)["nodes"][0]["ids"]}
    assert kinds == {"node-guid", "port-guid"}


def everything(damaged: DamagedFabric) -> Iterator[object]:
    yield render_truth(derive_truth(damaged), damaged.faults)
    yield report_claims(damaged)
    yield list(render_lldpcli(damaged))
    yield render_inventory(damaged)
    if damaged.wiring.spec.medium is Medium.INFINIBAND:
        yield sweep_devices(damaged)


@pytest.mark.parametrize("title", ["useless names", "MLAG pairs on Ethernet"])
def test_it_gives_the_same_bytes_for_the_same_seed(title: str) -> None:
    one, other = (damage_fabric(build_wiring(SPECS[title]), FAULTS, seeded(9)) for _ in range(2))
    assert repr(list(everything(one))) == repr(list(everything(other)))
