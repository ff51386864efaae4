"""Cards that consume LLDP frames, with a real program in place of ethtool."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent.collectors import firmware_lldp
from agent.collectors.probe import CollectedFacts, SourceAbsent
from agent.node.command import Runner, command_env
from tests.agent.nodes import card, plant, settings_for
from tests.agent.programs import write_program
from topology.model.errors import CommandTimeout
from topology.model.facts import Device, DeviceKind, Port

RUNNER = Runner(command_env({}))
FLAGS = """
flags = {'ens1f0': 'disable-fw-lldp       : off', 'ens1f1': 'disable-fw-lldp       : on',
         'ens2f0': 'fw-lldp-agent         : on', 'ens2f1': 'legacy-rx             : on'}
asked, name = words.rsplit(' ', 1)
assert asked == '--show-priv-flags'
if name not in flags:
    sys.exit('netlink error: Operation not supported')
print(f'Private flags for {name}:\\nLinkPolling           : off\\n{flags[name]}')
"""


def planted(root: Path, drivers: dict[str, str]) -> Path:
    """Write one port per name, each on its own card with a driver."""
    for number, (name, driver) in enumerate(drivers.items()):
        address = f"0000:{number:02x}:00.0"
        plant(root, card(name, address, f"b8:ce:f6:00:00:{number:02x}"))
        device = root / "devices/pci0000:00/0000:00:01.0" / address
        (device / "driver").symlink_to(f"../../../../bus/pci/drivers/{driver}")
    return root


def collect(root: Path, body: str = FLAGS, deadline_s: float = 5.0) -> CollectedFacts:
    ethtool = write_program(root / "ethtool", body)
    settings = settings_for(root, ethtool=str(ethtool), deadline_s=deadline_s)
    return firmware_lldp.collect(settings, RUNNER)


def told(found: CollectedFacts) -> dict[str, bool | None]:
    return {port.name: port.firmware_lldp for port in found.ports}


def test_it_reads_the_flags_of_each_driver(tmp_path: Path) -> None:
    drivers = {"ens1f0": "i40e", "ens1f1": "i40e", "ens2f0": "ice", "eth0": "mlx5_core"}
    found = collect(planted(tmp_path, drivers))
    assert told(found) == {"ens1f0": True, "ens1f1": False, "ens2f0": True}
    assert found.note == ""


def test_it_leaves_out_a_port_without_a_flag(tmp_path: Path) -> None:
    found = collect(planted(tmp_path, {"ens2f1": "ice", "ens9": "i40e", "ens1f0": "i40e"}))
    assert told(found) == {"ens1f0": True}
    assert found.note == "no LLDP flag for ens2f1, ens9"
    assert found.errors == ()


@pytest.mark.parametrize(
    ("drivers", "ethtool", "reason"),
    [
        pytest.param({"eth0": "mlx5_core"}, "ethtool", "no card", id="no such card"),
        pytest.param({}, "ethtool", "no card", id="no card at all"),
        pytest.param({"eth0": "ice"}, "missing", "not found", id="no ethtool"),
    ],
)
def test_it_has_no_data_with(
    tmp_path: Path, drivers: dict[str, str], ethtool: str, reason: str
) -> None:
    write_program(tmp_path / "ethtool", FLAGS)
    settings = settings_for(planted(tmp_path, drivers), ethtool=str(tmp_path / ethtool))
    assert reason in str(firmware_lldp.find_absence(settings, RUNNER))
    with pytest.raises(SourceAbsent, match=reason):
        firmware_lldp.collect(settings, RUNNER)


def test_it_gives_up_on_an_ethtool_that_hangs(tmp_path: Path) -> None:
    planted(tmp_path, {"ens1f0": "i40e", "ens1f1": "i40e"})
    with pytest.raises(CommandTimeout):
        collect(tmp_path, "import time; time.sleep(60)", deadline_s=0.2)


def test_it_restores_flags_from_a_report(tmp_path: Path) -> None:
    found = collect(planted(tmp_path, {"ens1f0": "i40e", "ens1f1": "i40e"}))
    device = Device(DeviceKind.HOST, "n", (), (*found.ports, Port("eth9")))
    assert firmware_lldp.restore(device) == found
