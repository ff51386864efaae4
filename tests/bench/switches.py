"""How long many switches take to be walked by SNMP: python -m tests.bench.switches."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Sequence
from functools import partial
from typing import Any, Final, NamedTuple

import click

from generator.switches.discovery import Frontier
from generator.switches.session import SnmpSession
from generator.switches.targets import SnmpCredentials, Target
from generator.switches.walk import SwitchWalk, WalkOutcome, WalkSession, walk_all, walk_switch
from tests.bench.switchboard import COMMUNITY, answering

NUM_SWITCHES: Final = 100
NUM_PORTS: Final = 64
LIMIT_S: Final = 60.0
"""Within which a hundred switches of 64 ports are to be walked. They take 27 s of a free core,
nearly all of it in the SNMP library."""
_DEADLINE_S: Final = 300.0


class Walked(NamedTuple):
    """One measurement."""

    num_switches: int
    num_ports: int
    first_s: float
    """Of the first walk, which fetches all tables; making the SNMP engine is a part of it."""
    cpu_s: float
    """Of which this process computed."""
    again_s: float
    """Of the second one, which only asks whether neighbors changed."""


class WrongWalkError(Exception):
    """What would be timed did not find every neighbor."""


def measure_walks(num_switches: int, num_ports: int) -> Walked:
    """Walk simulated switches twice.

    Raises:
        WrongWalkError: a walk failed, or a neighbor is missing.
    """
    with answering(num_switches, num_ports) as ports:
        credentials = SnmpCredentials(community=COMMUNITY)
        targets = [Target("127.0.0.1", port, credentials) for port in ports]
        return asyncio.run(_measure(targets, num_ports))


async def _measure(targets: Sequence[Target], num_ports: int) -> Walked:
    async with SnmpSession() as session:
        return await measure(session, targets, num_ports)


async def measure(session: WalkSession, targets: Sequence[Target], num_ports: int) -> Walked:
    """Walk switches twice by a session that was not used before.

    Raises:
        WrongWalkError: a walk failed, or a neighbor is missing.
    """
    began, cpu = time.perf_counter(), time.process_time()
    first = await _walk(session, targets, {})
    first_s, cpu_s = time.perf_counter() - began, time.process_time() - cpu
    _check(first, targets, num_ports)
    began = time.perf_counter()
    again = await _walk(session, targets, first)
    again_s = time.perf_counter() - began
    _check(again, targets, num_ports)
    return Walked(len(targets), num_ports, first_s, cpu_s, again_s)


async def _walk(
    session: WalkSession, targets: Sequence[Target], last: dict[Target, SwitchWalk]
) -> dict[Target, SwitchWalk]:
    walk = partial(walk_switch, session=session, clock=time.monotonic, deadline_s=_DEADLINE_S)
    walks = walk_all(
        targets, walk=lambda at: walk(at, last=last.get(at)), frontier=Frontier(targets, None)
    )
    return {found.target: found async for found in walks}


def _check(walks: dict[Target, SwitchWalk], targets: Sequence[Target], num_ports: int) -> None:
    for target in targets:
        walk = walks[target]
        heard = [port for port in walk.device.ports if port.neighbors] if walk.device else []
        if walk.outcome is not WalkOutcome.OK or len(heard) != num_ports:
            raise WrongWalkError(f"{walk.outcome}, {len(heard)} neighbors: {walk.reason}")


def render(walked: Walked) -> dict[str, Any]:
    """Return the figures as a document."""
    return {name: round(value, 3) for name, value in walked._asdict().items()}


@click.command()
@click.option("--switches", default=NUM_SWITCHES, show_default=True)
@click.option("--ports", default=NUM_PORTS, show_default=True, help="Of each switch.")
@click.option("--check", is_flag=True, help=f"Fail where it takes more than {LIMIT_S:g} s.")
@click.option(
    "--output", "-o", type=click.Choice(["text", "json"]), default="text", show_default=True
)
def main(switches: int, ports: int, output: str, *, check: bool) -> None:
    """Print how long simulated switches take to be walked, and to be asked for changes."""
    found = measure_walks(switches, ports)
    click.echo(json.dumps(render(found), indent=2) if output == "json" else text(found))
    if check and found.first_s > LIMIT_S:
        raise click.ClickException(f"slower than {LIMIT_S:g} s")


def text(walked: Walked) -> str:
    """Return the figures as a line."""
    return (
        f"{walked.num_switches} switches of {walked.num_ports} ports by SNMP: walked in "
        f"{walked.first_s:.2f} s ({walked.cpu_s:.2f} s of one core), "
        f"asked for changes in {walked.again_s:.2f} s"
    )


if __name__ == "__main__":
    main()
