"""`toponaut switches`: its options and its help."""

from __future__ import annotations

from typing import Any

import click

from generator.cli.options.output_format import output_option
from generator.cli.options.value_types import InputFile, OutputFolder, WholeNumber
from generator.cli.options.values import parse_duration


@click.command(name="switches")
@click.option(
    "--config",
    required=True,
    type=InputFile(),
    help="YAML file with the switches, the files of their credentials, and networks to discover "
    "more in.",
)
@click.option(
    "--out",
    type=OutputFolder(),
    help="Folder for the reports; other commands read it with --reports.",
)
@click.option(
    "--deadline",
    type=parse_duration,
    metavar="DURATION",
    default="60s",
    show_default=True,
    help="Time limit for one switch.",
)
@click.option(
    "--parallel",
    type=WholeNumber(1, 256),
    default=32,
    show_default=True,
    help="Switches that are walked at the same time.",
)
@output_option
@click.pass_context
def command(ctx: click.Context, /, **options: Any) -> None:
    """Walk the switches once by SNMP (LLDP-MIB, LLDP-V2-MIB, CDP), and report their neighbors.

    Each switch becomes a report `switch-MAC`. If a switch does not answer, or stops answering
    during the walk, its last report is kept, and the other switches are walked. The config:

    \b
      switches:
        - addresses: [10.0.0.1, leaf02.example.org, 10.0.1.0/28]
          communityFile: community
        - addresses: [10.0.2.1]
          version: 3
          user: reader
          authKeyFile: auth-key
          privKeyFile: priv-key
      discover:
        networks: [10.0.0.0/16]
    """  # noqa: D301 - click's mark for lines that stay as they are
    from generator.cli.commands.switches import run

    run(ctx, **options)
