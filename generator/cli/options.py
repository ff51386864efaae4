"""Options: how a command declares them, and those that several commands share.

`runtime.options` says how: `depth: int | None = number(1, 9, "Levels to print.")` is `--depth`. A
`Path` is a file to read.

The help of a command has its own options first, then those of its sources and of a server, then its
examples. They are the epilog of click, so that man pages and the site have them too.

Every `--help` loads this module, so it imports only what names options and their values.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial, wraps
from pathlib import Path
from typing import Any, Final, NamedTuple

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
from runtime import options
from runtime.watch import watch_output
from topology.model.errors import TopologyError

FILE: Final = InputFile()
FOLDER: Final = InputFolder()


_HYPHEN: Final = "\u2011"
"""As wide as `-`, and no place where a line may end."""


class _Formatter(click.HelpFormatter):
    """Breaks lines at blanks only: a name such as `toponaut-agent` or `node-0001` stays whole."""

    def write_text(self, text: str) -> None:
        """Write a paragraph."""
        super().write_text(text.replace("-", _HYPHEN))

    def write_dl(
        self, rows: Iterable[tuple[str, str]], col_max: int = 30, col_spacing: int = 2
    ) -> None:
        """Write a list of terms and their meanings."""
        whole = [(term, meaning.replace("-", _HYPHEN)) for term, meaning in rows]
        super().write_dl(whole, col_max, col_spacing)

    def getvalue(self) -> str:
        """Return all that was written."""
        return super().getvalue().replace(_HYPHEN, "-")


class HelpContext(click.Context):
    """Uses a formatter that breaks lines at blanks only."""

    formatter_class = _Formatter


class _DocumentedCommand(click.Command):
    """A command whose shared options stand in sections of their own."""

    context_class = HelpContext
    sections: Mapping[str, Collection[str]]
    """The names of the parameters of each section, in the order of the sections."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the sections of options; own ones and those of every command come first."""
        shared = {name: title for title, names in self.sections.items() for name in names}
        rows: dict[str, list[tuple[str, str]]] = {"Options": []}
        rows |= {title: [] for title in self.sections}
        for param in self.get_params(ctx):
            record = param.get_help_record(ctx)
            if record is not None and isinstance(param, click.Option):
                rows[shared.get(param.name or "", "Options")].append(record)
        for title, records in rows.items():
            if records:
                with formatter.section(title):
                    formatter.write_dl(records)


def _build_epilog(examples: Sequence[str]) -> str | None:
    """Return the examples as the end of the help; None without any."""
    if not examples:
        return None
    return "\n".join(["\b", "Examples:", *(f"  {example}" for example in examples)])


def command(
    name: str, *, is_watchable: bool = False, examples: Sequence[str] = ()
) -> Callable[[Callable[..., object]], click.Command]:
    """Return a decorator that makes a command of click: its own options first, then shared ones.

    Args:
        name: what users type.
        is_watchable: whether it has --watch: it reads its sources and prints once.
        examples: whole command lines, which the help ends with.
    """

    def decorate(run: Callable[..., object]) -> click.Command:
        params = [
            *options.list_params(run),
            *(options.list_params(_WatchOptions) if is_watchable else ()),
        ]
        sections = _find_sections(params)
        shared = frozenset().union(*sections.values())
        params.sort(key=lambda param: param.name in shared)

        @wraps(run)
        def call(**values: Any) -> object:  # noqa: ANN401 - click's
            def run_once() -> object:
                return run(**options.collect_values(run, values))

            if not values.get("watch"):
                return run_once()
            _watch(run_once, values["interval"])
            return None

        made = click.command(
            name, _DocumentedCommand, params=params, epilog=_build_epilog(examples)
        )(call)
        made.sections = sections
        return made

    return decorate


def _find_sections(params: Iterable[click.Parameter]) -> dict[str, frozenset[str]]:
    """Return the names of the shared options of a command by the title of their section."""
    own = {param.name or "" for param in params}
    groups = (("Sources", InputOptions, "reports"), ("Server", ServerOptions, "server"))
    return {
        title: frozenset(param.name or "" for param in options.list_params(owner))
        for title, owner, mark in groups
        if mark in own
    }


option: Final = partial(options.option, path=FILE)
argument: Final = partial(options.argument, path=FILE)


def duration(help: str, **settings: Any) -> Any:  # noqa: A002, ANN401 - click's
    """Declare an option with a time such as `30s`."""
    return option(help, type=parse_duration, metavar="DURATION", **settings)


def number(minimum: int, maximum: int, help: str, **settings: Any) -> Any:  # noqa: A002, ANN401
    """Declare an option with a whole number between two bounds, both included."""
    return option(help, type=WholeNumber(minimum, maximum), **settings)


def namespace(help: str, **settings: Any) -> Any:  # noqa: A002, ANN401 - click's
    """Declare an option with the name of a namespace."""
    return option(help, type=parse_namespace, metavar="NAME", **settings)


def since(help: str) -> Any:  # noqa: A002, ANN401 - click's
    """Declare an option with a date or a time."""
    return option(help, type=parse_since, metavar="DATE")


def kube(help: str) -> Any:  # noqa: A002, ANN401 - click's
    """Declare the options of a cluster, with the help of --kube."""
    return options.group(help)


def server(purpose: str) -> Any:  # noqa: ANN401 - click's
    """Declare --server and its credentials; `purpose` ends the help of --server."""
    return options.group(f"HOST:PORT of a `toponaut serve` {purpose}.")


class _WatchOptions(NamedTuple):
    watch: bool = option("Print again when the output changes; Ctrl-C ends.")
    interval: float = duration("Time between two reads with --watch.", default="5s")


def _watch(run: Callable[[], object], interval_s: float) -> None:
    """Run again and again, also after errors, such as a source that cannot be read for a while."""

    def run_once() -> None:
        with suppress(click.exceptions.Exit):
            try:
                run()
            except TopologyError as error:
                print_error(error)

    watch_output(run_once, interval_s=interval_s, pause=time.sleep)


class ClusterOptions(NamedTuple):
    """The options that name a cluster."""

    kube: bool = option("")  # a command says what for
    kubeconfig: str | None = option(
        "Kubeconfig file of the cluster.  [default: the file that kubectl uses; if there is "
        "none, the pod's service account]"
    )
    context: str | None = option("Context in the kubeconfig file.  [default: the current context]")

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


class CableOptions(NamedTuple):
    """The files that show cables; `ingest.sources` reads each of them by its name here."""

    reports: Path | None = option("Folder of NeighborReports from agents.", type=FOLDER)
    ibnetdiscover: tuple[Path, ...] = option(
        "Output of ibnetdiscover, ibdiagnet or opensm. Repeatable."
    )
    lldpcli: Path | None = option(
        "Folder of lldpcli output: DEVICE.neighbors.json0 (`lldpcli -f json0 show neighbors "
        "details` on the device) and DEVICE.chassis.json0 (`show chassis`).",
        type=FOLDER,
    )
    snmpwalk: Path | None = option(
        "Folder of DEVICE.snmpwalk.txt, the output of `snmpbulkwalk -On` for each switch.",
        type=FOLDER,
    )

    def list_paths(self, name: str) -> tuple[Path, ...]:
        """Return the values of an option; none if it is not given."""
        value: Path | tuple[Path, ...] | None = getattr(self, name)
        if isinstance(value, tuple):
            return value
        return (value,) if value else ()


class InputOptions(NamedTuple):
    """The sources of a fabric; `observation.parse_sources` makes sources of them."""

    cables: CableOptions
    hypernodes: Path | None = option("Folder of HyperNode objects.", type=FOLDER)
    node_labels: str | None = option(
        "Labels of the nodes that describe the tree: keys separated by commas, coarsest "
        f"first, or {', '.join(LABEL_PRESETS)}. Nodes come from --nodes or --kube.",
        metavar="KEYS",
    )
    topology: Path | None = option(
        "Topology of Kueue or KAI, ClusterNetworkTopology of Koordinator, or "
        "ClusterTopologyBinding of Grove, instead of --node-labels."
    )
    islands: bool = option(
        "Domains that no label or HyperNode joins share no cable, so no gang may span them."
    )
    nodes: Path | None = option(
        "Nodes of the cluster: output of `kubectl get nodes -o json`, or an inventory."
    )
    planes: Path | None = option("YAML file with the rules that assign ports to networks.")
    plane: str | None = option("Network to read.  [default: compute]", metavar="NAME")
    cluster: ClusterOptions = kube("Read the reports and nodes of the cluster.")
    files: tuple[Path, ...] = argument(nargs=-1)

    def without_cables(self) -> InputOptions:
        """Return the options for a tree that another system made of the same nodes."""
        cables = CableOptions._make([()] * len(self.cables))
        return self._replace(cables=cables, files=(), planes=None, plane=None)


TIER_NAMES: Final = option("Names of the tiers, lowest first.  [default: leaf,spine,core]")
PREVIOUS: Final = option(
    "TopologyTree (output of `toponaut tree -o json`) whose domain names are reused."
)
TREE: Final = option("TopologyTree to read instead of a source: output of `toponaut tree -o json`.")
"""A tree that `read_saved_tree` reads."""


class ServerEndpoint(NamedTuple):
    """The server to call, and the credentials for it."""

    address: str
    """`HOST:PORT`."""
    identity: ClientIdentity


class ServerOptions(NamedTuple):
    """The options that name a server, and the credentials for it."""

    server: str | None = option("")  # a command says what for
    ca_file: Path | None = option("CA file that verifies the server's certificate.")
    token_file: Path | None = option("File with a bearer token for the server.")
    client_cert: Path | None = option("Client certificate for the server.")
    client_key: Path | None = option("Key of the client certificate.")
    server_name: str | None = option(
        "Name in the server's certificate, if it differs from the address."
    )

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


class RequestOptions(NamedTuple):
    """The options that name a gang to place."""

    file: str | None = option(
        "PlacementRequest, or the manifests of one gang: its workload (Job, JobSet, RayJob "
        "and others), its pods, and objects of Volcano, Kueue, KAI, Koordinator, Gödel, Grove "
        "or kube-scheduler; YAML or JSON. Or an sbatch script. - is stdin.",
        "-f",
        "--file",
    )
    sbatch: str | None = option(
        'Options of sbatch instead of a file, such as "--nodes=16 --switches=1".',
        metavar="OPTIONS",
    )
    level: tuple[str, ...] = option(
        "Tier to use for the level NAME in a manifest of another system. Repeatable.",
        metavar="NAME=TIER",
    )


RUNNING: Final = option(
    "Running gangs: [{gang, priority, min, exclusive, pods: [{node, request, count, group}]}]."
)
TIMEOUT: Final = duration(
    "Time limit of the search; deadline_s in the request can shorten it.", default="10s"
)


NO_PODS_MESSAGE: Final = "give the source of pods: --pods, --running or --kube"


class PodOptions(NamedTuple):
    """The options that name the pods of a job."""

    pods: str | None = option(
        "Output of `kubectl get pods -A -o json`, or the pods of the job as `pod: node`; - "
        "is stdin.",
        metavar="FILE",
    )
    running: Path | None = option("Running gangs, in the format of `toponaut place --running`.")

    def refuse_both(self) -> None:
        """Refuse two sources of pods.

        Raises:
            click.UsageError: both are given.
        """
        if self.pods and self.running:
            raise click.UsageError("give only one of --pods and --running")


NAMESPACE: Final = namespace(
    "Namespace of objects of outputs that have one: where `toponaut serve` runs.",
    default="toponaut-system",
)


class HistoryOptions(NamedTuple):
    """The options that name a history."""

    store: Path | None = option("Folder that `toponaut serve` serves.", type=FOLDER)
    history: Path | None = option("File with the history, instead of the one in --store.")


SINCE: Final = since(
    "Compare with the fabric of this date or time: 2026-11-01, or 2026-11-01T08:00:00Z."
)
SILENCE: Final = option(
    "YAML file that lists known problems to silence: {kind, device, port, reason, "
    "until: YYYY-MM-DD}. Only port is optional."
)


def output_of(*formats: str, note: str = "") -> Any:  # noqa: ANN401 - click's
    """Declare the option `--output` with text, JSON, YAML and further formats."""
    return option(
        f"Format of the output.{note}",
        "--output",
        "-o",
        type=options.Choice(["text", *formats, "json", "yaml"]),
        default="text",
    )


OUTPUT: Final = output_of()
WIDE_OUTPUT: Final = output_of(WIDE, note=" text prints nodes as ranges, wide lists every node.")
