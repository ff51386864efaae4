"""The options about gangs: the request, the cluster and the time limit; the pods of a job."""

from __future__ import annotations

from typing import Final

import click

from generator.cli.options.decorators import combine_options
from generator.cli.options.source import source_options, tree_option
from generator.cli.options.value_types import InputFile
from generator.cli.options.values import parse_duration

request_options: Final = combine_options(
    click.option(
        "-f",
        "--file",
        help="PlacementRequest, or the manifests of one gang: its workload (Job, JobSet, RayJob "
        "and others), its pods, and objects of Volcano, Kueue, KAI, Koordinator, Gödel, Grove or "
        "kube-scheduler; YAML or JSON. Or an sbatch script. - is stdin.",
    ),
    click.option(
        "--sbatch",
        metavar="OPTIONS",
        help='Options of sbatch instead of a file, such as "--nodes=16 --switches=1".',
    ),
    click.option(
        "--level",
        multiple=True,
        metavar="NAME=TIER",
        help="Tier to use for the level NAME in a manifest of another system. Repeatable.",
    ),
)
cluster_options: Final = combine_options(
    source_options,
    tree_option,
    click.option(
        "--running",
        type=InputFile(),
        help="Running gangs: [{gang, priority, min, exclusive, "
        "pods: [{node, request, count, group}]}].",
    ),
)
timeout_option = click.option(
    "--timeout",
    type=parse_duration,
    metavar="DURATION",
    default="10s",
    show_default=True,
    help="Time limit of the search; deadline_s in the request can shorten it.",
)
pods_options: Final = combine_options(
    click.option(
        "--pods",
        metavar="FILE",
        help="Output of `kubectl get pods -A -o json`, or the pods of the job as `pod: node`; - "
        "is stdin.",
    ),
    click.option(
        "--running",
        type=InputFile(),
        help="Running gangs, in the format of `toponaut place --running`.",
    ),
)
"""The options that name the pods of a job."""
