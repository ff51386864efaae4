"""An LLDP fabric of real daemons: a network namespace per device, a veth pair per cable.

`LldpFabric` tracks its own changes, so it always knows which neighbors must be visible, and
can wait until the daemons see just those.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from tests.lab.sandbox import Sandbox
from tests.lab.wait import wait_until
from topology.model.facts import PortName
from topology.synthetic.wiring import Cable

DEADLINE_S = 60
# A frame each second, forgotten after four: at the defaults a test would wait for minutes.
_TIMING = "configure lldp tx-interval 1\nconfigure lldp tx-hold 4\n"
_IFNAME = "configure lldp portidsubtype ifname\n"


class Seen(NamedTuple):
    """One neighbor entry of one daemon."""

    port: PortName
    far: PortName


class LldpFabric:
    """Devices, cables and one lldpd per device."""

    def __init__(
        self, sandbox: Sandbox, cables: Iterable[Cable], *, switches: frozenset[str], folder: Path
    ) -> None:
        """Build and start everything, and wait until every end of every cable is seen.

        Args:
            sandbox: where it all runs.
            cables: what joins which ports; all devices are ends of them.
            switches: the devices that name their ports, as switches do; the rest are hosts.
            folder: for sockets, settings and logs; its path is short, as those of sockets must be.
        """
        self.sandbox = sandbox
        self.switches = switches
        self._folder = folder
        folder.chmod(0o755)  # lldpd and lldpcli run as a user of their own
        self._far: dict[PortName, PortName] = {}
        for low, high in cables:
            self._far |= {low: high, high: low}
        self.devices = tuple(sorted({port.device for port in self._far}))
        self._macs = {port: _mac(number) for number, port in enumerate(sorted(self._far), 1)}
        self._down: set[PortName] = set()
        self.silent: set[str] = set()
        """Devices whose daemon is stopped."""
        self._wire()
        for device in self.devices:
            self._start_daemon(device)
        wait_until(self._unanswering, deadline_s=DEADLINE_S, what="all daemons answer")
        self.settle()

    def socket(self, device: str) -> Path:
        """Return where a device's daemon listens."""
        return self._folder / f"{device}.sock"

    def far_end(self, port: PortName) -> PortName:
        """Return the other end of a port's cable."""
        return self._far[port]

    def cabled(self, device: str) -> frozenset[PortName]:
        """Return the ports of a device that have a cable."""
        return frozenset(port for port in self._far if port.device == device)

    def expected(self) -> frozenset[Seen]:
        """Return what the daemons see once they know about everything done so far."""
        return frozenset(
            Seen(port, far)
            for port, far in self._far.items()
            if not {port, far} & self._down and not {port.device, far.device} & self.silent
        )

    def seen(self) -> frozenset[Seen]:
        """Return what the daemons see now."""
        alive = (device for device in self.devices if device not in self.silent)
        return frozenset(entry for device in alive for entry in self._neighbors_of(device))

    def settle(self) -> None:
        """Wait until the daemons see just what they should."""

        def wrong() -> frozenset[Seen]:
            return self.seen() ^ self.expected()

        wait_until(wrong, deadline_s=DEADLINE_S, what="neighbors as cabled")

    @contextmanager
    def cutting(self, port: PortName) -> Iterator[None]:
        """Take a link down at one end, for a while; both ends know when this goes on."""
        self._set_links("down", port)
        self._down.add(port)
        self.settle()
        try:
            yield
        finally:
            self._set_links("up", port)
            self._down.discard(port)
            self.settle()

    @contextmanager
    def stopping(self, device: str) -> Iterator[None]:
        """End a device's daemon for a while, in good order: it says goodbye to its neighbors."""
        self.sandbox.kill("lldpd", namespace=device)  # both of its processes
        self.silent.add(device)
        self.settle()
        try:
            yield
        finally:
            self.silent.discard(device)
            self._start_daemon(device)
            wait_until(self._unanswering, deadline_s=DEADLINE_S, what=f"{device} answers")
            self.settle()

    @contextmanager
    def swapping(self, left: PortName, right: PortName) -> Iterator[None]:
        """Exchange the far ends of two ports' cables for a while."""
        self._swap(left, right)
        try:
            yield
        finally:
            self._swap(left, right)

    def _swap(self, left: PortName, right: PortName) -> None:
        """Pull two cables, then plug them, as a person would.

        Both are out until all four ends have forgotten, so the daemons never show the old
        neighbor beside the new one. Names and addresses of ports stay, their interface indices
        do not: lldpd is deaf on an interface that left and came back under its old index.
        """
        ports = {left, right, self._far[left], self._far[right]}
        for port in (left, right):
            self._ip(f"link del {port.port}", namespace=port.device)
        self._down |= ports
        self.settle()
        crossed = {left: self._far[right], right: self._far[left]}
        self._far |= crossed | {far: near for near, far in crossed.items()}
        self._ip(*(self._cable(near, far) for near, far in crossed.items()))
        self._set_links("up", *ports)
        self._down -= ports
        self.settle()

    def _set_links(self, state: str, *ports: PortName) -> None:
        for port in ports:
            self._ip(f"link set {port.port} {state}", namespace=port.device)

    def _wire(self) -> None:
        self._ip(*(f"netns add {device}" for device in self.devices))
        self._ip(*(self._cable(low, high) for low, high in self._far.items() if low < high))
        for device in self.devices:
            ports = ("lo", *(port.port for port in self._far if port.device == device))
            self._ip(*(f"link set {port} up" for port in ports), namespace=device)

    def _cable(self, low: PortName, high: PortName) -> str:
        ends = [
            f"name {port.port} address {self._macs[port]} netns {port.device}"
            for port in (low, high)
        ]
        return f"link add {ends[0]} type veth peer {ends[1]}"

    def _ip(self, *commands: str, namespace: str = "") -> None:
        inside = ("-n", namespace) if namespace else ()
        self.sandbox.run("ip", *inside, "-batch", "-", stdin="\n".join(commands))

    def _start_daemon(self, device: str) -> None:
        settings = self._folder / f"{device}.conf"
        # The name comes with the first frame: without it all were called like this machine.
        lines = f"configure system hostname {device}\n{_TIMING}"
        settings.write_text(lines + (_IFNAME if device in self.switches else ""))
        options = ("-u", str(self.socket(device)), "-O", str(settings), "-I", "eth*,swp*")
        more = self._daemon_options(device)
        log = self._folder / f"{device}.log"
        self.sandbox.start("lldpd", "-d", *options, *more, namespace=device, log=log)

    def _daemon_options(self, device: str) -> tuple[str, ...]:
        """Return more options for a device's daemon: what a richer fabric overrides."""
        del device
        return ()

    def _unanswering(self) -> list[str]:
        alive = (device for device in self.devices if device not in self.silent)
        return [device for device in alive if not self._is_answering(device)]

    def _is_answering(self, device: str) -> bool:
        try:
            return device in self._lldpcli(device, "show", "chassis")
        except AssertionError:
            return False

    def _lldpcli(self, device: str, *question: str) -> str:
        socket = str(self.socket(device))
        return self.sandbox.run("lldpcli", "-u", socket, "-f", "keyvalue", *question)

    def _neighbors_of(self, device: str) -> frozenset[Seen]:
        """Return the entries of one daemon, read without any code of the project's."""
        values = dict(
            line.split("=", 1)
            for line in self._lldpcli(device, "show", "neighbors").splitlines()
            if "=" in line
        )
        ports = {key.split(".")[1] for key in values}
        return frozenset(
            Seen(
                PortName(device, port),
                PortName(values[f"lldp.{port}.chassis.name"], values[f"lldp.{port}.port.descr"]),
            )
            for port in ports
        )


def _mac(number: int) -> str:
    """Return a locally administered address: the same for the same port in every run."""
    return f"02:1a:b0:00:{number >> 8:02x}:{number & 0xFF:02x}"
