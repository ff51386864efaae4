"""The RDMA devices with a cable: no functions, and no bridges to the NVSwitches of the board.

The layout is that of HGX B200: one ConnectX-7 with four functions, beside the cards of the GPUs.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from agent.collectors import ib_sweep, ib_sysfs
from agent.collectors.probe import CollectedFacts
from agent.node.hcas import list_hcas, list_switch_bridges
from agent.node.sysfs import Sysfs
from tests.agent.fakes import FakeRunner, printed
from tests.agent.nodes import SWEEP, plant, settings_for

BRIDGE_VPD = b"\x82\x0b\x00NVIDIA CX-7\x90\x40\x00PN\x09SMDL=SW_MNG\x00\xff\xfeRV"
CARD_VPD = b"\x82\x0b\x00NVIDIA CX-7\x90\x40\x00PN\x0fMCX75310AAS-NEAT\x00RV"


def hca(root: Path, number: int, vpd: bytes | None = None, *, vendor: str = "0x15b3") -> Path:
    """Plant an InfiniBand HCA with an active port; return the folder of its PCI function."""
    device = f"devices/pci0000:00/0000:{number:02x}:00.0"
    base, guid = f"{device}/infiniband/mlx5_{number}", f"b83f:d203:0000:000{number}"
    files = {
        f"class/infiniband/mlx5_{number}": f"->../../{base}",
        f"{base}/device": "->../..",
        f"{base}/node_guid": guid,
        f"{base}/ports/1/link_layer": "InfiniBand",
        f"{base}/ports/1/state": "4: ACTIVE",
        f"{base}/ports/1/phys_state": "5: LinkUp",
        f"{base}/ports/1/gids/0": f"fe80:0000:0000:0000:{guid}",
        f"{device}/vendor": vendor,
    }
    folder = plant(root, files) / device
    if vpd is not None:
        (folder / "vpd").write_bytes(vpd)
    return folder


def collect(root: Path) -> CollectedFacts:
    return ib_sysfs.collect(settings_for(root), FakeRunner())


@pytest.mark.parametrize(
    ("vpd", "vendor", "is_bridge"),
    [
        pytest.param(BRIDGE_VPD, "0x15b3", True, id="a bridge"),
        pytest.param(CARD_VPD, "0x15b3", False, id="a card of the same kind"),
        pytest.param(None, "0x15b3", False, id="a card without a VPD"),
        pytest.param(b"", "0x15b3", False, id="an empty VPD"),
        pytest.param(BRIDGE_VPD, "0x8086", False, id="a card of another maker, which is not read"),
    ],
)
def test_the_vpd_shows_a_bridge(
    tmp_path: Path, vpd: bytes | None, vendor: str, *, is_bridge: bool
) -> None:
    hca(tmp_path, 0, vpd, vendor=vendor)
    root = Sysfs(tmp_path)
    assert list_switch_bridges(root) == (("mlx5_0",) if is_bridge else ())
    assert list_hcas(root) == (() if is_bridge else ("mlx5_0",))


def test_a_vpd_that_may_not_be_read_shows_nothing(tmp_path: Path) -> None:
    (hca(tmp_path, 0) / "vpd").mkdir()  # answers a read with an error
    assert list_hcas(Sysfs(tmp_path)) == ("mlx5_0",)


def test_a_vpd_is_read_once_while_the_driver_stays_bound(tmp_path: Path) -> None:
    file = hca(tmp_path, 0, BRIDGE_VPD) / "vpd"
    root = Sysfs(tmp_path)
    assert list_hcas(root) == ()
    file.write_bytes(CARD_VPD)
    assert list_hcas(root) == (), "the file is the same, so it was not read again"
    file.rename(file.with_name("kept"))
    file.write_bytes(CARD_VPD)
    assert list_hcas(root) == ("mlx5_0",)


@pytest.mark.parametrize(
    ("place", "is_left_out"),
    [("mlx5_core.sf.4", True), ("ionic.rdma.0", False), ("virtio0", False)],
    ids=["a scalable function", "the RDMA device of a whole card", "virtio"],
)
def test_functions_without_a_cable_of_their_own_are_left_out(
    tmp_path: Path, place: str, *, is_left_out: bool
) -> None:
    base = hca(tmp_path, 0) / "infiniband/mlx5_0"
    (base / "device").unlink()
    plant(tmp_path, {f"devices/pci0000:00/0000:00:00.0/{place}/vendor": "0x15b3"})
    (base / "device").symlink_to(f"../../{place}")
    assert list_hcas(Sysfs(tmp_path)) == (() if is_left_out else ("mlx5_0",))


def test_virtual_functions_are_left_out(tmp_path: Path) -> None:
    (hca(tmp_path, 0) / "physfn").symlink_to("..")
    hca(tmp_path, 1)
    assert list_hcas(Sysfs(tmp_path)) == ("mlx5_1",)


def test_a_bridge_has_no_port_no_guid_and_no_subnet_and_is_named(tmp_path: Path) -> None:
    for number in range(4):
        hca(tmp_path, number, BRIDGE_VPD)
    hca(tmp_path, 4, CARD_VPD)
    found = collect(tmp_path)
    assert [port.name for port in found.ports] == ["mlx5_4/1"]
    assert {id_.value for id_ in found.ids} == {"b83fd20300000004"}
    assert found.note == (
        "no ports, but bridges to the NVSwitches of this board: mlx5_0, mlx5_1, mlx5_2, mlx5_3"
    )


@pytest.mark.parametrize(
    ("vpd", "command", "options"),
    [
        pytest.param(BRIDGE_VPD, (), ("-C", "mlx5_1", "-P", "1"), id="not from a bridge"),
        pytest.param(CARD_VPD, (), (), id="as ever without a bridge"),
        pytest.param(BRIDGE_VPD, ("-C", "mlx5_0"), (), id="as the command says"),
    ],
)
def test_it_sweeps(
    tmp_path: Path, vpd: bytes, command: tuple[str, ...], options: tuple[str, ...]
) -> None:
    hca(tmp_path, 0, vpd)
    hca(tmp_path, 1, CARD_VPD)
    runner = FakeRunner({"ibnetdiscover": printed(SWEPT)})
    sweep = SWEEP._replace(command=("ibnetdiscover", *command))
    ib_sweep.collect(settings_for(tmp_path, sweep=sweep), runner)
    assert runner.asked == [("ibnetdiscover", *command, *options)]


SWEPT = (
    'switchguid=0x900(900)\nSwitch 2 "S-0000000000000900" # "leaf" base port 0 lid 1 lmc 0\n'
    '[1] "H-b83fd20300000001"[1](b83fd20300000001) # "n1 mlx5_1" lid 2 4xNDR\n'
    "\ncaguid=0xb83fd20300000001\n"
    'Ca 1 "H-b83fd20300000001" # "n1 mlx5_1"\n'
    '[1](b83fd20300000001) "S-0000000000000900"[1] # lid 2 lmc 0 "leaf" lid 1 4xNDR\n'
)
