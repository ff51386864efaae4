"""The node's own HCAs, from fixture sysfs trees."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent.collectors import ib_sysfs
from agent.collectors.probe import CollectedFacts
from tests.agent.fakes import FakeRunner
from tests.agent.nodes import plant, settings_for
from topology.model.errors import CollectError
from topology.model.facts import Device, DeviceKind, GpuDistance, Medium, Port, PortState
from topology.model.ids import Id, IdKind

GUID = "b83fd2030011aab0"
ADDRESS = "0000:1a:00.0"


def hca(name: str = "mlx5_0", *, layer: str = "InfiniBand", **files: str) -> dict[str, str]:
    """Return the sysfs files of an HCA with one port."""
    device = f"devices/pci0000:17/0000:17:01.0/{ADDRESS}"
    base = f"{device}/infiniband/{name}"
    known = {
        "node_guid": "b83f:d203:0011:aab0\n",
        "sys_image_guid": "b83f:d203:0011:aab0\n",
        "ports/1/state": "4: ACTIVE\n",
        "ports/1/phys_state": "5: LinkUp\n",
        "ports/1/rate": "400 Gb/sec (4X NDR)\n",
        "ports/1/link_layer": f"{layer}\n",
        "ports/1/gids/0": "fe80:0000:0000:0000:b83f:d203:0011:aab0\n",
    }
    return {
        f"class/infiniband/{name}": f"->../../{base}",
        f"{base}/device": "->../..",
        f"{device}/net/ib0/type": "32\n",
        **{f"{base}/{path}": text for path, text in (known | files).items()},
    }


def collect(root: Path) -> CollectedFacts:
    return ib_sysfs.collect(settings_for(root), FakeRunner())


def test_it_returns_guids_port_and_pci_place_of_an_hca(tmp_path: Path) -> None:
    gpu = "devices/pci0000:17/0000:17:01.0/0000:1b:00.0"
    plant(
        tmp_path,
        hca()
        | {
            "bus/pci/devices/0000:1b:00.0": f"->../../../{gpu}",
            f"{gpu}/class": "0x030200",
            f"{gpu}/vendor": "0x10de",
        },
    )
    assert collect(tmp_path) == CollectedFacts(
        ids=frozenset(
            Id(kind, GUID)
            for kind in (IdKind.NODE_GUID, IdKind.PORT_GUID, IdKind.SYSTEM_IMAGE_GUID)
        ),
        ports=(
            Port(
                name="mlx5_0/1",
                ids=(Id(IdKind.NODE_GUID, GUID, "1"), Id(IdKind.PORT_GUID, GUID)),
                medium=Medium.INFINIBAND,
                state=PortState.UP,
                rate_bps=400 * 10**9,
                rdma_device="mlx5_0",
                pci_address=ADDRESS,
                gpu_distance=GpuDistance.SWITCH,
                subnet="fe80000000000000",
            ),
        ),
    )


def test_it_returns_the_rdma_device_of_an_ethernet_port_but_no_port(
    tmp_path: Path,
) -> None:
    plant(tmp_path, hca(layer="Ethernet"))
    found = collect(tmp_path)
    assert found.ports == ()
    assert found.rdma_of_net == {("ib0", "mlx5_0")}


def test_it_leaves_out_virtual_functions(tmp_path: Path) -> None:
    plant(tmp_path, hca() | {f"devices/pci0000:17/0000:17:01.0/{ADDRESS}/physfn": "->.."})
    assert collect(tmp_path).is_empty


def test_it_keeps_the_readable_facts_of_a_damaged_hca(tmp_path: Path) -> None:
    found = collect(plant(tmp_path, hca(**{"ports/1/rate": "plenty\n"})))
    assert [(port.name, port.rate_bps) for port in found.ports] == [("mlx5_0/1", None)]
    assert [str(error) for error in found.errors] == [
        "class/infiniband/mlx5_0/ports/1/rate: unexpected content: 'plenty'"
    ]


def test_it_notes_that_there_is_no_hca(tmp_path: Path) -> None:
    plant(tmp_path, {"class/net/lo/type": "772"})
    found = collect(tmp_path)
    assert found.is_empty
    assert found.note == str(ib_sysfs.find_absence(settings_for(tmp_path), FakeRunner()))
    assert found.note == "no InfiniBand or RoCE device"


def test_it_is_available_with_an_hca(tmp_path: Path) -> None:
    assert ib_sysfs.find_absence(settings_for(plant(tmp_path, hca())), FakeRunner()) is None


def test_it_fails_without_sysfs(tmp_path: Path) -> None:
    with pytest.raises(CollectError, match="is sysfs mounted"):
        collect(tmp_path)


def test_it_restores_hcas_from_a_report(tmp_path: Path) -> None:
    found = collect(plant(tmp_path, hca()))
    nic = Port("eth0", rdma_device="mlx5_2")
    device = Device(
        DeviceKind.HOST,
        "n",
        tuple(sorted({*found.ids, Id(IdKind.HOSTNAME, "n")})),
        (*found.ports, nic),
    )
    assert ib_sysfs.restore(device) == CollectedFacts(
        ids=found.ids, ports=found.ports, rdma_of_net=frozenset({("eth0", "mlx5_2")})
    )
