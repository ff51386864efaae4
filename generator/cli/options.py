"""Options that several commands share. A command gets those of one subject as one argument.

Every `--help` loads this module, so it imports only what names options and their values.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from functools import reduce, wraps
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar

import click

from generator.cli.option_types import (
    InputFile,
    InputFolder,
    WholeNumber,
    parse_duration,
    parse_namespace,
    parse_since,
)
from generator.cli.output import WIDE, print_error
from generator.kube.access import ClusterAccess
from generator.observe.label_presets import LABEL_PRESETS
from generator.rpc.auth.key_files import ClientIdentity
from runtime.watch import watch_output
from topology.model.errors import TopologyError

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]
CommandT = TypeVar("CommandT", bound=Callable[..., Any])
FILE: Final = InputFile()
FOLDER: Final = InputFolder()


def combine(*options: Decorator) -> Decorator:
    """Return a decorator that adds options to a command; --help lists them in this order."""

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        return reduce(lambda made, option: option(made), reversed(options), command)

    return decorate


def group(name: str, kind: type[NamedTuple], *options: Decorator) -> Decorator:
    """Return a decorator that adds options to a command, which gets their values as one argument.

    Args:
        name: the name of the argument.
        kind: its type, with a field for each option.
        options: in the order of --help.
    """

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(command)
        def collected(*args: Any, **values: Any) -> Any:  # noqa: ANN401 - click's
            group = kind._make(values.pop(field) for field in kind._fields)
            return command(*args, **values, **{name: group})

        return combine(*options)(collected)

    return decorate


def duration(name: str, default: str | None = None, *, help: str) -> Decorator:  # noqa: A002 - click's
    """Return an option with a time such as `30s`."""
    return click.option(
        name,
        type=parse_duration,
        metavar="DURATION",
        default=default,
        show_default=default is not None,
        help=help,
    )


def number(
    name: str,
    minimum: int,
    maximum: int,
    *,
    default: int | None = None,
    metavar: str | None = None,
    help: str,  # noqa: A002 - click's
) -> Decorator:
    """Return an option with a whole number between two bounds, both included."""
    kind = WholeNumber(minimum, maximum)
    return click.option(
        name,
        type=kind,
        default=default,
        show_default=default is not None,
        metavar=metavar,
        help=help,
    )


class ClusterOptions(NamedTuple):
    """The values of --kube, --kubeconfig and --context."""

    kube: bool
    kubeconfig: str | None
    context: str | None

    def find_cluster(self) -> ClusterAccess | None:
        """Return the cluster; None without --kube.

        Raises:
            click.UsageError: --kubeconfig or --context is given without --kube.
        """
        if self.kube:
            return ClusterAccess(self.kubeconfig, self.context)
        if self.kubeconfig or self.context:
            raise click.UsageError("--kubeconfig and --context need --kube")
        return None


def _list_kube_options(purpose: str) -> tuple[Decorator, ...]:
    return (
        click.option("--kube", is_flag=True, help=purpose),
        click.option(
            "--kubeconfig",
            help="Kubeconfig file of the cluster.  [default: the file that kubectl uses; if there "
            "is none, the pod's service account]",
        ),
        click.option(
            "--context", help="Context in the kubeconfig file.  [default: the current context]"
        ),
    )


def kube(purpose: str) -> Decorator:
    """Add --kube, --kubeconfig and --context; the command gets them as `cluster`.

    Args:
        purpose: the help text of --kube.
    """
    return group("cluster", ClusterOptions, *_list_kube_options(purpose))


class InputOptions(NamedTuple):
    """The values of the options of sources; `observation.parse_sources` makes sources of them."""

    reports: Path | None
    ibnetdiscover: tuple[Path, ...]
    lldpcli: Path | None
    snmpwalk: Path | None
    hypernodes: Path | None
    node_labels: str | None
    topology: Path | None
    islands: bool
    nodes: Path | None
    planes: Path | None
    plane: str | None
    kube: bool
    kubeconfig: str | None
    context: str | None
    files: tuple[Path, ...]


sources: Final = group(
    "sources",
    InputOptions,
    click.option("--reports", type=FOLDER, help="Folder of NeighborReports from agents."),
    click.option(
        "--ibnetdiscover",
        type=FILE,
        multiple=True,
        help="Output of ibnetdiscover, ibdiagnet or opensm. Repeatable.",
    ),
    click.option(
        "--lldpcli",
        type=FOLDER,
        help="Folder of lldpcli output: DEVICE.neighbors.json0 (`lldpcli -f json0 show neighbors "
        "details` on the device) and DEVICE.chassis.json0 (`show chassis`).",
    ),
    click.option(
        "--snmpwalk",
        type=FOLDER,
        help="Folder of DEVICE.snmpwalk.txt, the output of `snmpbulkwalk -On` for each switch.",
    ),
    click.option("--hypernodes", type=FOLDER, help="Folder of HyperNode objects."),
    click.option(
        "--node-labels",
        metavar="KEYS",
        help="Labels of the nodes that describe the tree: keys separated by commas, coarsest "
        f"first, or {', '.join(LABEL_PRESETS)}. Nodes come from --nodes or --kube.",
    ),
    click.option(
        "--topology",
        type=FILE,
        help="Topology of Kueue or KAI, ClusterNetworkTopology of Koordinator, or "
        "ClusterTopologyBinding of Grove, instead of --node-labels.",
    ),
    click.option(
        "--islands",
        is_flag=True,
        help="Domains that no label or HyperNode joins share no cable, so no gang may span them.",
    ),
    click.option(
        "--nodes",
        type=FILE,
        help="Nodes of the cluster: output of `kubectl get nodes -o json`, or an inventory.",
    ),
    click.option(
        "--planes", type=FILE, help="YAML file with the rules that assign ports to networks."
    ),
    click.option("--plane", help="Network to read.  [default: compute]", metavar="NAME"),
    *_list_kube_options("Read the reports and nodes of the cluster."),
    click.argument("files", nargs=-1, type=FILE),
)
"""The sources of a fabric, as `sources`."""
names: Final = combine(
    click.option(
        "--tier-names",
        help="Names of the tiers, lowest first.  [default: leaf,spine,core]",
    ),
    click.option(
        "--previous",
        type=FILE,
        help="TopologyTree (output of `toponaut tree -o json`) whose domain names are reused.",
    ),
)
tree: Final = click.option(
    "--tree",
    type=FILE,
    help="TopologyTree to read instead of a source: output of `toponaut tree -o json`.",
)
"""A tree that was saved, which `read_saved_tree` reads."""


class ServerEndpoint(NamedTuple):
    """The server to call, and the credentials for it."""

    address: str
    """`HOST:PORT`."""
    identity: ClientIdentity


class ServerOptions(NamedTuple):
    """The values of --server and of the options about its credentials."""

    server: str | None
    ca_file: Path | None
    token_file: Path | None
    client_cert: Path | None
    client_key: Path | None
    server_name: str | None

    def find_endpoint(self) -> ServerEndpoint | None:
        """Return the server to call; None without --server.

        Raises:
            click.UsageError: credentials are given without --server, or a certificate without its
                key or a key without its certificate.
        """
        identity = ClientIdentity(*self[1:])
        if self.server is None and any(identity):
            raise click.UsageError(
                "--ca-file, --token-file, --client-cert, --client-key and --server-name need "
                "--server"
            )
        if (identity.cert is None) != (identity.key is None):
            raise click.UsageError("give --client-cert and --client-key together")
        return None if self.server is None else ServerEndpoint(self.server, identity)


def server(purpose: str) -> Decorator:
    """Add --server and its credentials, as `server`; `purpose` ends the help of --server."""
    return group(
        "server",
        ServerOptions,
        click.option("--server", help=f"HOST:PORT of a `toponaut serve` {purpose}."),
        click.option(
            "--ca-file", type=FILE, help="CA file that verifies the server's certificate."
        ),
        click.option("--token-file", type=FILE, help="File with a bearer token for the server."),
        click.option("--client-cert", type=FILE, help="Client certificate for the server."),
        click.option("--client-key", type=FILE, help="Key of the client certificate."),
        click.option(
            "--server-name",
            help="Name in the server's certificate, if it differs from the address.",
        ),
    )


class RequestOptions(NamedTuple):
    """The values of the options that name a gang to place."""

    file: str | None
    sbatch: str | None
    level: tuple[str, ...]


request: Final = group(
    "request",
    RequestOptions,
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
running: Final = click.option(
    "--running",
    type=FILE,
    help="Running gangs: [{gang, priority, min, exclusive, "
    "pods: [{node, request, count, group}]}].",
)
timeout = duration(
    "--timeout", "10s", help="Time limit of the search; deadline_s in the request can shorten it."
)


class PodOptions(NamedTuple):
    """The values of the options that name the pods of a job."""

    pods: str | None
    running: Path | None

    def refuse_both(self) -> None:
        """Refuse two sources of pods.

        Raises:
            click.UsageError: both are given.
        """
        if self.pods and self.running:
            raise click.UsageError("give only one of --pods and --running")


pods: Final = group(
    "pods",
    PodOptions,
    click.option(
        "--pods",
        metavar="FILE",
        help="Output of `kubectl get pods -A -o json`, or the pods of the job as `pod: node`; - "
        "is stdin.",
    ),
    click.option(
        "--running",
        type=FILE,
        help="Running gangs, in the format of `toponaut place --running`.",
    ),
)
namespace = click.option(
    "--namespace",
    type=parse_namespace,
    metavar="NAME",
    default="toponaut-system",
    show_default=True,
    help="Namespace of objects of outputs that have one: where `toponaut serve` runs.",
)


class HistoryOptions(NamedTuple):
    """The values of the options that name a history."""

    store: Path | None
    history: Path | None


history: Final = group(
    "history",
    HistoryOptions,
    click.option("--store", type=FOLDER, help="Folder that `toponaut serve` serves."),
    click.option(
        "--history",
        type=FILE,
        help="File with the history, instead of the one in --store.",
    ),
)
since = click.option(
    "--since",
    type=parse_since,
    metavar="DATE",
    help="Compare with the fabric of this date or time: 2026-11-01, or 2026-11-01T08:00:00Z.",
)
silence: Final[Callable[..., Any]] = click.option(
    "--silence",
    type=FILE,
    help="YAML file that lists known problems to silence: {kind, device, port, reason, "
    "until: YYYY-MM-DD}. Only port is optional.",
)


def output_of(*formats: str, note: str = "") -> Callable[..., Any]:
    """Return the option `--output` with text, JSON, YAML and further formats."""
    return click.option(
        "--output",
        "-o",
        type=click.Choice(["text", *formats, "json", "yaml"]),
        default="text",
        show_default=True,
        help=f"Format of the output.{note}",
    )


output: Final = output_of()
wide_output: Final = output_of(WIDE, note=" text prints nodes as ranges, wide lists every node.")


def watchable(command: CommandT) -> CommandT:
    """Add `--watch` and `--interval` to a command that reads its sources and prints once.

    Errors of a run, such as a source that cannot be read for a while, do not end the watch.
    """

    @click.option("--watch", is_flag=True, help="Print again when the output changes; Ctrl-C ends.")
    @duration("--interval", "5s", help="Time between two reads with --watch.")
    @wraps(command)
    def watched(*args: Any, watch: bool, interval: float, **options: Any) -> object:  # noqa: ANN401 - click's
        def run_once() -> None:
            with suppress(click.exceptions.Exit):
                try:
                    command(*args, **options)
                except TopologyError as error:
                    print_error(error)

        if not watch:
            return command(*args, **options)
        watch_output(run_once, interval_s=interval, pause=time.sleep)
        return None

    return watched  # type: ignore[return-value] # the options are keyword arguments
