"""A simulated InfiniBand fabric, swept by the real ibnetdiscover. Needs no root."""

import os
import subprocess
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Self

from tests.lab.wait import wait_until
from topology.model.facts import PortName
from topology.synthetic.wiring import Host, Nic, Switch, Wiring, port_number

DEADLINE_S = 10
READY = "Network simulator ready"
PROMPT = "sim> "
WIDTH_AND_RATE = "4xHDR"  # the fastest that the simulator knows


class IbFabric:
    """One running simulator."""

    def __init__(self, wiring: Wiring, folder: Path) -> None:
        """Start it on the wiring; ready to be swept when this returns."""
        self._wiring = wiring
        self._names = _simulated_names(wiring)
        self._socket = f"toponaut-{os.getpid()}-{folder.name}"  # abstract, so unique by name
        netfile = folder / "netfile"
        netfile.write_text(render_netfile(wiring))
        self._log = folder / "ibsim.log"
        self._folder = folder
        with self._log.open("wb") as output:
            self._process = subprocess.Popen(
                ["ibsim", "-s", str(netfile)],
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=self._env(),
            )
        wait_until(self._unready, deadline_s=DEADLINE_S, what="the simulator is up")

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(self, *ended: object) -> None:
        """End it. It does not end by itself when its input does: it would spin for ever."""
        self._process.kill()
        self._process.communicate()

    def sweep_command(self, *, start: str) -> Path:
        """Return a program that sweeps the fabric, as ibnetdiscover would on the HCA `start`."""
        program = self._folder / f"ibnetdiscover-{start.split(maxsplit=1)[0]}"
        # LD_PRELOAD is cleared: ibsim-run appends to one that it finds in a way that fails.
        program.write_text(
            "#!/bin/sh\n"
            f"unset LD_PRELOAD\nexport IBSIM_SOCKNAME={self._socket} SIM_HOST='{start}'\n"
            # It makes a folder for its sysfs where it runs, and leaves it there when killed.
            f"cd '{self._folder}' || exit 1\n"
            # Every HCA that is swept from is called like this in the simulator.
            'if [ "$1" = -C ]; then shift 2; set -- -C ibsim0 "$@"; fi\n'
            'exec ibsim-run ibnetdiscover "$@"\n'
        )
        program.chmod(0o755)
        return program

    def run_opensm(self, *, start: str) -> Path:
        """Let opensm bring the subnet up from the HCA `start`, and return its subnet dump."""
        folder = self._folder / "opensm"
        folder.mkdir()
        env = {name: value for name, value in self._env().items() if name != "LD_PRELOAD"}
        env |= {"SIM_HOST": start, "OSM_TMP_DIR": str(folder), "OSM_CACHE_DIR": str(folder)}
        subprocess.run(
            ["ibsim-run", "opensm", "-o", "-f", str(folder / "opensm.log")],
            env=env,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            timeout=60,
            check=True,
        )
        return folder / "opensm-subnet.lst"

    def set_refusing(self, *, is_refusing: bool) -> None:
        """Let switches answer nothing, as an M_Key makes them, or everything again."""
        rate = 100 if is_refusing else 0
        for switch in self._wiring.switches:
            self._command(f'Error "S-{switch.guid}" {rate}')

    def unlink(self, port: PortName) -> None:
        """Cut the cable of a port; the next sweep shows it."""
        self._console("Unlink", port)

    def relink(self, port: PortName) -> None:
        """Mend a cable that was cut at this port."""
        self._console("ReLink", port)

    def _console(self, command: str, port: PortName) -> None:
        name, number = self._names[port]
        self._command(f'{command} "{name}"[{number}]')

    def _command(self, command: str) -> None:
        assert self._process.stdin is not None
        answers = self._output().count(PROMPT)
        self._process.stdin.write(f"{command}\n".encode())
        self._process.stdin.flush()

        def unanswered() -> str:
            output = self._output()
            return output[-200:] if output.count(PROMPT) == answers else ""

        wait_until(unanswered, deadline_s=DEADLINE_S, what=command)
        answer = self._output().split(PROMPT)[answers]
        assert "#" not in answer, answer

    def _output(self) -> str:
        return self._log.read_text(errors="replace")

    def _unready(self) -> str:
        output = self._output()
        assert self._process.poll() is None, output
        return "" if READY in output else output[-200:] or "silent"

    def _env(self) -> dict[str, str]:
        return {**os.environ, "IBSIM_SOCKNAME": self._socket}


def render_netfile(wiring: Wiring) -> str:
    """Return a wiring in the language of the simulator: each cable listed at both of its ends."""
    far: dict[PortName, PortName] = {}
    for low, high in wiring.cables:
        far |= {low: high, high: low}
    ports: dict[str, list[PortName]] = defaultdict(list)
    for port in far:
        ports[port.device].append(port)
    names = _simulated_names(wiring)
    records = []
    for switch in wiring.switches:
        cables = _cable_lines(sorted(ports[switch.name], key=lambda port: names[port]), far, names)
        records.append("\n".join([*_switch_head(switch), *cables]))
    for host in wiring.hosts:
        for nic in host.nics:
            cables = _cable_lines([PortName(host.name, nic.port)], far, names)
            records.append("\n".join([*_hca_head(host, nic), *cables]))
    return "\n\n".join(records) + "\n"


def _switch_head(switch: Switch) -> list[str]:
    return [
        f"switchguid=0x{switch.guid}({switch.guid})",
        f'Switch\t64 "S-{switch.guid}"\t\t# "{switch.name}"',
    ]


def _hca_head(host: Host, nic: Nic) -> list[str]:
    return [f"caguid=0x{nic.guid}", f'Ca\t1 "H-{nic.guid}"\t\t# "{host.name} {nic.device}"']


def _cable_lines(
    ports: list[PortName],
    far: dict[PortName, PortName],
    names: dict[PortName, tuple[str, int]],
) -> Iterator[str]:
    for port in ports:
        far_name, far_number = names[far[port]]
        number = names[port][1]
        yield f'[{number}]\t"{far_name}"[{far_number}]\t\t# "x" lid 0 {WIDTH_AND_RATE}'


def _simulated_names(wiring: Wiring) -> dict[PortName, tuple[str, int]]:
    """Return (node id, port number) of every cabled port."""
    guids = {switch.name: switch.guid for switch in wiring.switches}
    names = {
        PortName(host.name, nic.port): (f"H-{nic.guid}", 1)
        for host in wiring.hosts
        for nic in host.nics
    }
    ends = (port for cable in wiring.cables for port in cable)
    switch_ports = (port for port in ends if port.device in guids)
    return names | {
        port: (f"S-{guids[port.device]}", port_number(port.port)) for port in switch_ports
    }
