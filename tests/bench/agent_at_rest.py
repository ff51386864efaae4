"""What an agent costs where nothing changes: python -m tests.bench.agent_at_rest.

A real `toponaut-agent run` collects from a made-up node: eight HCAs beside eight GPUs, NICs, the
interfaces of many pods, and programs that answer as lldpcli, ethtool and nvidia-smi do; its pages
for probes and metrics are there. The schedule is compressed: what a round costs is scaled to the
period of a real one. Programs that it starts count, though these answer faster than real ones.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess  # noqa: TID251 - the process is measured
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple

import click

from tests.agent.nodes import card, chassis, heard, plant, virtual
from tests.bench.process_status import PEAK, read_bytes

PERIOD_S: Final = 60.0
"""Of a real agent, and its default."""
MAX_RSS_BYTES: Final = 64 << 20
MAX_CORE_SHARE: Final = 0.005
NUM_HCAS: Final = 8
NUM_NICS: Final = 2
NUM_PODS: Final = 100
WARM_ROUNDS: Final = 2
"""The first ones import and publish."""
_TICKS_PER_S: Final = os.sysconf("SC_CLK_TCK")
_DEADLINE_S: Final = 300.0


class AtRest(NamedTuple):
    """One measurement."""

    rounds: int
    rss_bytes: int
    """The most that the agent's process ever had in memory."""
    cpu_s: float
    """Per round, of the agent and of what it starts."""

    @property
    def core_share(self) -> float:
        """Of one core at the period of a real agent."""
        return self.cpu_s / PERIOD_S

    @property
    def is_within(self) -> bool:
        """Whether it is as little as it is meant to be."""
        return self.rss_bytes <= MAX_RSS_BYTES and self.core_share <= MAX_CORE_SHARE


def measure_at_rest(rounds: int, period_s: float) -> AtRest:
    """Let an agent run for some rounds after it has settled.

    Raises:
        AgentEndedError: it ended, or ran too few rounds.
    """
    with tempfile.TemporaryDirectory(prefix="toponaut-bench-") as folder:
        root = Path(folder)
        lay_out(root)
        with running(root, period_s) as process:
            first = _await_rounds(root, process, WARM_ROUNDS)
            before_s = _cpu_s(process.pid)
            last = _await_rounds(root, process, first + rounds)
            cpu_s = _cpu_s(process.pid) - before_s
            return AtRest(last - first, read_bytes(PEAK, process.pid), cpu_s / (last - first))


class AgentEndedError(Exception):
    """There is nothing to measure."""


def lay_out(root: Path) -> None:
    """Write the node, and the programs that it has."""
    sysfs = root / "sys"
    for number in range(NUM_NICS):
        plant(sysfs, card(f"eth{number}", f"0000:{number + 1:02x}:00.0", _mac(number)))
    for number in range(NUM_PODS):
        plant(sysfs, virtual(f"veth{number}", _mac(100 + number)))
    for number in range(NUM_HCAS):
        plant(sysfs, hca(number))
    rows = [(f"eth{number}", f"leaf{number}", "swp1") for number in range(NUM_NICS)]
    answers = {"neighbors": heard(*rows), "chassis": chassis(_mac(0))}
    for name, text in answers.items():
        (root / name).write_text(text)
    body = f"case \"$*\" in *neighbors*) echo >>'{root}/rounds'; exec cat '{root}/neighbors';; esac"
    _write_program(root / "lldpcli", f"{body}\nexec cat '{root}/chassis'")
    _write_program(root / "ethtool", "echo 'Private flags for eth0:'\necho 'fw-lldp-agent : off'")
    _write_program(root / "nvidia-smi", "echo 'Completed, Success, 1, 1-2-3'")


def hca(number: int) -> dict[str, str]:
    """Return the sysfs files of an HCA and of the GPU behind the same PCI switch."""
    bus = f"devices/pci00{number}0:00/00{number}0:00:01.0"
    device = f"{bus}/00{number}0:01:00.0"
    base = f"{device}/infiniband/mlx5_{number}"
    port = f"{base}/ports/1"
    guid = f"b83f:d203:00{number}0:0001"
    return {
        f"class/infiniband/mlx5_{number}": f"->../../{base}",
        f"{base}/device": "->../..",
        f"{base}/node_guid": f"{guid}\n",
        f"{base}/sys_image_guid": f"{guid}\n",
        f"{port}/state": "4: ACTIVE\n",
        f"{port}/phys_state": "5: LinkUp\n",
        f"{port}/rate": "400 Gb/sec (4X NDR)\n",
        f"{port}/link_layer": "InfiniBand\n",
        f"{port}/gids/0": f"fe80:0000:0000:0000:{guid}\n",
        f"{port}/counters/link_downed": "0\n",
        f"{device}/numa_node": "0\n",
        f"{device}/class": "0x020700\n",
        f"{device}/vendor": "0x15b3\n",
        f"bus/pci/devices/00{number}0:01:00.0": f"->../../../{device}",
        f"{bus}/00{number}0:02:00.0/class": "0x030200\n",
        f"{bus}/00{number}0:02:00.0/vendor": "0x10de\n",
        f"bus/pci/devices/00{number}0:02:00.0": f"->../../../{bus}/00{number}0:02:00.0",
    }


@contextmanager
def running(root: Path, period_s: float) -> Iterator[subprocess.Popen[bytes]]:
    """Yield an agent that runs at a period until the block ends."""
    options = {
        "publish": root / "reports",
        "period": f"{period_s}s",
        "jitter": "0s",
        "node-name": "node01",
        "sysfs-root": root / "sys",
        "proc-root": root / "proc",
        "lldpcli": root / "lldpcli",
        "ethtool": root / "ethtool",
        "nvidia-smi": root / "nvidia-smi",
        "frames": "never",
        "health-listen": "127.0.0.1:0",
        "metrics-listen": "127.0.0.1:0",
    }
    words = [str(word) for key, value in options.items() for word in (f"--{key}", value)]
    process = subprocess.Popen([sys.executable, "-m", "agent", "run", *words])
    try:
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(timeout=30)


def _write_program(path: Path, body: str) -> None:
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)


def _mac(number: int) -> str:
    return f"b8:3f:d2:00:00:{number:02x}"


def _await_rounds(root: Path, process: subprocess.Popen[bytes], wanted: int) -> int:
    """Return how many rounds there were once there are as many as wanted."""
    file, until_s = root / "rounds", time.monotonic() + _DEADLINE_S
    while time.monotonic() < until_s and process.poll() is None:
        done = len(file.read_bytes()) if file.exists() else 0
        if done >= wanted:
            return done
        time.sleep(0.02)
    raise AgentEndedError(f"no {wanted} rounds within {_DEADLINE_S:g} s")


def _cpu_s(pid: int) -> float:
    """Return what a process and its ended children have computed so far; proc(5)."""
    stat = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace")
    fields = stat.rpartition(")")[2].split()
    return sum(map(int, fields[11:15])) / _TICKS_PER_S


@click.command()
@click.option("--rounds", type=click.IntRange(min=1), default=10, show_default=True)
@click.option("--period", type=click.FloatRange(min=0.1), default=1.0, show_default=True)
@click.option(
    "--output", "-o", type=click.Choice(["text", "json"]), default="text", show_default=True
)
def main(rounds: int, period: float, output: str) -> None:
    """Print what an agent costs at rest, beside what it may; ten rounds are ten minutes."""
    found = measure_at_rest(rounds, period)
    document = {
        "rounds": found.rounds,
        "rss_mb": round(found.rss_bytes / 2**20, 1),
        "cpu_s_per_round": round(found.cpu_s, 4),
        "core_percent": round(100 * found.core_share, 3),
        "within": found.is_within,
    }
    if output == "json":
        click.echo(json.dumps(document, indent=2))
        return
    click.echo(
        f"agent at rest, {found.rounds} rounds of {PERIOD_S:g} s: {document['rss_mb']} MB of "
        f"{MAX_RSS_BYTES >> 20}, {document['core_percent']} % of a core of {100 * MAX_CORE_SHARE:g}"
    )


if __name__ == "__main__":
    main()
