"""The fabrics of the lab: built once, on one worker, gone with it."""

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.lab.agents import Agents
from tests.lab.infiniband import IbFabric
from tests.lab.lldp import LldpFabric
from tests.lab.sandbox import Sandbox
from tests.lab.snmp import SnmpFabric
from tests.lab.tools import require_tools
from topology.model.facts import Medium
from topology.synthetic import FabricKind, SyntheticSpec, Wiring, build_wiring

HDR_BPS = 200_000_000_000  # the fastest that the simulator knows


@pytest.fixture(scope="session")
def lldp_wiring() -> Wiring:
    """8 hosts with two NICs, 4 leaves in two pairs, 2 spines."""
    spec = SyntheticSpec(FabricKind.DUAL_HOMED, num_hosts=8, radix=8, medium=Medium.ETHERNET)
    return build_wiring(spec)


@pytest.fixture(scope="module")
def lldp_fabric(lldp_wiring: Wiring) -> Iterator[LldpFabric]:
    """The wiring as namespaces, veth pairs and daemons; each test mends what it damages."""
    require_tools("unshare", "nsenter", "ip", "lldpd", "lldpcli", is_root_needed=True)
    switches = frozenset(switch.name for switch in lldp_wiring.switches)
    # Below /tmp directly: a socket's path holds about a hundred characters.
    with TemporaryDirectory(prefix="lldp-") as folder, Sandbox() as sandbox:
        yield LldpFabric(sandbox, lldp_wiring.cables, switches=switches, folder=Path(folder))


@pytest.fixture(scope="package")
def snmp_fabric(lldp_wiring: Wiring) -> Iterator[SnmpFabric]:
    """The same wiring with switches that also answer SNMP."""
    require_tools(
        *("unshare", "nsenter", "ip", "lldpd", "lldpcli", "snmpd", "snmpbulkwalk"),
        is_root_needed=True,
    )
    switches = frozenset(switch.name for switch in lldp_wiring.switches)
    with TemporaryDirectory(prefix="snmp-") as folder, Sandbox() as sandbox:
        yield SnmpFabric(sandbox, lldp_wiring.cables, switches=switches, folder=Path(folder))


@pytest.fixture(scope="module")
def agents(lldp_fabric: LldpFabric, tmp_path_factory: pytest.TempPathFactory) -> Agents:
    """An agent on every device, switches too, which publishes each second."""
    running = Agents(lldp_fabric, tmp_path_factory.mktemp("agents"))
    running.settle()
    return running


@pytest.fixture(scope="module")
def ib_wiring() -> Wiring:
    """32 hosts with two HCAs on two rails, 4 leaves in two groups, 2 spines."""
    spec = SyntheticSpec(FabricKind.RAIL, num_hosts=32, rails=2, radix=32, rate_bps=HDR_BPS)
    return build_wiring(spec)


@pytest.fixture
def ib_fabric(ib_wiring: Wiring, tmp_path: Path) -> Iterator[IbFabric]:
    """The wiring in the simulator."""
    require_tools("ibsim", "ibsim-run", "ibnetdiscover")
    with IbFabric(ib_wiring, tmp_path) as fabric:
        yield fabric
