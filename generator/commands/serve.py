"""`toponaut serve`: keep a store's HyperNodes true and answer placement queries."""

from __future__ import annotations

import logging
import os
import tempfile
import time
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Final

import click

from generator.clock import utc_now
from generator.debounce import Pace
from generator.exits import Exit
from generator.guarding import Writing
from generator.logs import start_logging
from generator.options import parse_duration
from generator.placement.capacity import Snapshot
from generator.plane_config import PlaneChoice, read_planes
from generator.rpc.server import PlacementServer, Published
from generator.schedule import Schedule
from generator.serving import Rounds
from generator.signals import stop_signals
from generator.store.directory import DirectoryStore
from generator.switch_rounds import SwitchRounds
from topology.errors import ConfigError
from topology.plane_policy import COMPUTE

log = logging.getLogger(__name__)

STOP_S: Final = 10.0
"""From the signal to the end; calls and the round in progress may finish meanwhile."""


@click.command(name="serve")
@click.option(
    "--store",
    required=True,
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Folder whose neighborreports/ is read and whose hypernodes/ is written.",
)
@click.option(
    "--nodes",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="The cluster's nodes; read again when it changes.",
)
@click.option(
    "--period",
    type=parse_duration,
    metavar="DURATION",
    default="60s",
    show_default=True,
    help="From one round to the next; agents' reports are stale after three.",
)
@click.option(
    "--switches",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Switches to walk by SNMP, listed as for `toponaut switches --config`; read again when "
    "it changes.",
)
@click.option(
    "--switch-period",
    type=parse_duration,
    metavar="DURATION",
    default="60s",
    show_default=True,
    help="From one walk of a switch to the next; its report is stale after three.",
)
@click.option(
    "--switch-deadline",
    type=parse_duration,
    metavar="DURATION",
    default="20s",
    show_default=True,
    help="For one switch.",
)
@click.option(
    "--planes",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Which ports are whose network's, as YAML; read once.",
)
@click.option(
    "--plane",
    default=COMPUTE,
    show_default=True,
    metavar="NAME",
    help="Network that the HyperNodes are made of.",
)
@click.option(
    "--dry-run", is_flag=True, help="Write no HyperNodes, and log what would be written instead."
)
@click.option(
    "--listen",
    default="127.0.0.1:50051",
    show_default=True,
    help="Loopback HOST:PORT; 0: any port.",
)
@click.option(
    "--insecure-loopback", is_flag=True, help="Serve without authentication, on loopback only."
)
@click.option(
    "--ready-file",
    type=click.Path(dir_okay=False, path_type=Path),
    help="File that gets the bound address once it is bound, and is gone afterwards.",
)
@click.option("--log-format", type=click.Choice(["text", "json"]), help="Default: by terminal.")
def command(  # noqa: PLR0913 - one parameter an option
    store: Path,
    nodes: Path | None,
    period: float,
    listen: str,
    *,
    planes: Path | None,
    plane: str,
    switches: Path | None,
    switch_period: float,
    switch_deadline: float,
    dry_run: bool,
    insecure_loopback: bool,
    ready_file: Path | None,
    log_format: str | None,
) -> None:
    """Read reports, write HyperNodes and answer placement queries until SIGTERM or SIGINT.

    HyperNodes are written only where the fabric changed, and never without usable reports. A
    change that exceeds the budget of the store's Fabric object is held until it is approved
    (`toponaut approve`); conditions in that object tell. With
    --switches it also walks switches and keeps their reports in the store: one that fails keeps
    its last facts, is a finding, and is asked again after longer and longer times, up to an hour.
    Health (grpc.health.v1) turns to SERVING when the first tree is known.
    """
    if not insecure_loopback:
        raise click.UsageError(
            "authentication is not available yet; --insecure-loopback serves without it, "
            "to this machine only"
        )
    choice = PlaneChoice(read_planes(planes) if planes else (), plane)
    start_logging(log_format)
    published = Published()
    walks = _walks(switches, store, switch_period, switch_deadline) if switches else None
    with stop_signals() as wait_for_stop:
        server = PlacementServer(listen, published)

        def publish(snapshot: Snapshot) -> None:
            published.snapshot = snapshot
            server.set_serving()

        try:
            rounds = Rounds(
                store,
                nodes=nodes,
                period=timedelta(seconds=period),
                now=utc_now,
                publish=publish,
                walks=walks,
                planes=choice,
                writing=Writing(Pace(), time.monotonic, is_dry=dry_run),
            )
            _announce(server.address, ready_file)
            schedules = [Schedule(rounds.tick, period_s=period, now=utc_now)]
            if walks is not None:
                schedules.append(Schedule(walks.tick, period_s=switch_period, now=utc_now))
        except BaseException:
            server.stop(deadline_s=0)
            raise
        log.info("generator stopping", extra={"signal": wait_for_stop()})
        if walks is not None:
            walks.stop()
        _stop(server, schedules, ready_file)


def _walks(config: Path, store: Path, period_s: float, deadline_s: float) -> SwitchRounds:
    from generator.switches import SnmpSession  # noqa: PLC0415 - who walks no switch pays none

    return SwitchRounds(
        config,
        store=DirectoryStore(store),
        period=timedelta(seconds=period_s),
        deadline=timedelta(seconds=deadline_s),
        now=utc_now,
        clock=time.monotonic,
        open_session=SnmpSession,
    )


def _announce(address: str, ready_file: Path | None) -> None:
    """Tell the bound address; the file appears whole or not at all."""
    log.info("generator ready", extra={"address": address})
    if ready_file is None:
        return
    try:
        number, temporary = tempfile.mkstemp(prefix=".", dir=ready_file.parent)
        with open(number, "w", encoding="ascii") as stream:  # noqa: PTH123 - an open descriptor
            stream.write(f"{address}\n")
        Path(temporary).replace(ready_file)
    except OSError as error:
        raise ConfigError(f"cannot write {ready_file}: {error.strerror}") from error


def _stop(server: PlacementServer, schedules: Sequence[Schedule], ready_file: Path | None) -> None:
    ends_at = time.monotonic() + STOP_S
    if ready_file is not None:
        ready_file.unlink(missing_ok=True)
    server.stop(deadline_s=STOP_S / 2)
    ended = [one.stop(deadline_s=max(0.0, ends_at - time.monotonic())) for one in schedules]
    if all(ended):
        log.info("generator stopped")
        return
    # Every write is whole or not there at all, so a round may be left in the middle; its thread
    # would keep the interpreter from ending.
    log.warning("generator stopped within a round")
    os._exit(Exit.OK)
