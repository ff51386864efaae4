"""`toponaut simulate`: synthetic fabrics to try commands on, and replays of jobs.

- fabric: a synthetic fabric and its faults, as files
- jobs: a replay of a trace of jobs
"""

from __future__ import annotations

import click

from generator.cli.commands.programs.simulate.fabric import fabric
from generator.cli.commands.programs.simulate.jobs import jobs


@click.group(name="simulate")
def command() -> None:
    """Simulate fabrics to try the other commands on, and replay jobs on fabrics."""


command.add_command(jobs)
command.add_command(fabric)
