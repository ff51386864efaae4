"""An LLDP fabric whose switches also answer SNMP: real snmpd, with lldpd as its sub-agent.

All switches have an address in one management network, whose namespace `mgmt` is where programs
that walk them run.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.lab.lldp import DEADLINE_S, LldpFabric
from tests.lab.sandbox import Sandbox
from tests.lab.wait import wait_until
from topology.synthetic.wiring import Cable

MANAGEMENT = "mgmt"
NETWORK = "10.255.0.0/24"
DEAD = "10.255.0.250"
COMMUNITY = "cables"
USER = "reader"
AUTH_KEY = "authpass12"
PRIV_KEY = "privpass12"
_REMOTE_NAMES = "1.0.8802.1.1.2.1.4.1.1.9"
_SETTINGS = f"""
agentAddress udp:161
master agentx
agentXSocket {{socket}}
agentXPerms 0660 0550 root _lldpd
rocommunity {COMMUNITY}
sysName {{device}}
createUser {USER} SHA-256 {AUTH_KEY} AES {PRIV_KEY}
rouser {USER} priv
"""


class SnmpFabric(LldpFabric):
    """Devices, cables, one lldpd per device and one snmpd per switch."""

    def __init__(
        self, sandbox: Sandbox, cables: Iterable[Cable], *, switches: frozenset[str], folder: Path
    ) -> None:
        """Build and start everything, and wait until SNMP reports every neighbor, too."""
        ordered = enumerate(sorted(switches), 1)
        self.addresses = {switch: f"10.255.0.{number}" for number, switch in ordered}
        super().__init__(sandbox, cables, switches=switches, folder=folder)
        wait_until(
            self._missing_neighbors, deadline_s=DEADLINE_S, what="SNMP reports all neighbors"
        )

    def json0(self, switch: str) -> bytes:
        """Return what lldpcli prints of a switch's neighbors."""
        question = ("-f", "json0", "show", "neighbors", "details")
        return self.sandbox.run("lldpcli", "-u", str(self.socket(switch)), *question).encode()

    def _wire(self) -> None:
        super()._wire()
        lines = [f"netns add {MANAGEMENT}"]
        lines += [
            f"link add mgmt0 netns {switch} type veth peer name m{number} netns {MANAGEMENT}"
            for number, switch in enumerate(self.addresses, 1)
        ]
        self._ip(*lines)
        for switch, address in self.addresses.items():
            self._ip(f"addr add {address}/24 dev mgmt0", "link set mgmt0 up", namespace=switch)
        ports = [f"m{number}" for number in range(1, len(self.addresses) + 1)]
        self._ip(
            "link add br0 type bridge",
            "addr add 10.255.0.254/24 dev br0",
            *(f"link set {port} master br0" for port in ports),
            *(f"link set {port} up" for port in ("lo", "br0", *ports)),
            namespace=MANAGEMENT,
        )

    def _daemon_options(self, device: str) -> tuple[str, ...]:
        """Start a switch's snmpd, and have its lldpd answer through it."""
        if device not in self.switches:
            return ()
        self._start_snmpd(device)
        return ("-x", "-X", str(self._agentx(device)))

    @contextmanager
    def muting(self, switch: str) -> Iterator[None]:
        """Kill a switch's snmpd for a while; its cables and its lldpd stay as they are."""
        self.sandbox.kill("snmpd", namespace=switch, signal="KILL")
        try:
            yield
        finally:
            self._agentx(switch).unlink()
            self._start_snmpd(switch)
            # lldpd looks for it every 15 s.
            wait_until(
                self._missing_neighbors,
                deadline_s=2 * DEADLINE_S,
                what="SNMP reports all neighbors again",
            )

    def _agentx(self, switch: str) -> Path:
        return self._folder / f"{switch}.ax"

    def _start_snmpd(self, switch: str) -> None:
        socket = self._agentx(switch)
        settings = self._folder / f"{switch}.snmpd.conf"
        settings.write_text(_SETTINGS.format(socket=socket, device=switch))
        # Each keeps its own users and engine id; a shared folder would give all the same.
        state = f"SNMP_PERSISTENT_DIR={self._folder / switch}"
        self.sandbox.start(
            *("env", state, "MIBS=", "snmpd", "-f", "-C", "-c", str(settings), "-Lo"),
            namespace=switch,
            log=self._folder / f"{switch}.snmpd.log",
        )
        wait_until(lambda: not socket.exists(), deadline_s=DEADLINE_S, what=f"{switch}'s snmpd")

    def _missing_neighbors(self) -> object:
        wanted = dict.fromkeys(self.switches, 0)
        for seen in self.expected():
            if seen.port.device in wanted:
                wanted[seen.port.device] += 1
        counts = {switch: self._count(switch) for switch in self.switches}
        return {switch: count for switch, count in counts.items() if count != wanted[switch]}

    def _count(self, switch: str) -> int:
        """Return how many neighbors net-snmp's own walk shows."""
        walk = ("snmpbulkwalk", "-v2c", "-c", COMMUNITY, "-On", self.addresses[switch])
        shown = self.sandbox.run(*walk, _REMOTE_NAMES, namespace=MANAGEMENT)
        return shown.count("STRING:")
