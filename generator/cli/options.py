"""Options: how a command declares them, and those that several commands share.

A parameter of a command declares its option where a default would be, and so does each field of a
NamedTuple that is such a parameter: `depth: int | None = number(1, 9, "Levels to print.")` is
`--depth`. A `bool` is a flag, a `tuple` a repeatable option, a `Path` a file to read, and an enum a
choice of its values.

Every `--help` loads this module, so it imports only what names options and their values.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from enum import Enum
from functools import wraps
from pathlib import Path
from types import NoneType
from typing import Any, Final, NamedTuple, get_args, get_origin, get_type_hints

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

FILE: Final = InputFile()
FOLDER: Final = InputFolder()


def command(
    name: str, *, is_watchable: bool = False
) -> Callable[[Callable[..., object]], click.Command]:
    """Return a decorator that makes a command of click, whose options have the declared order.

    Args:
        name: what users type.
        is_watchable: whether it has --watch: it reads its sources and prints once.
    """

    def decorate(run: Callable[..., object]) -> click.Command:
        params = [*_list_params(run), *(_list_params(_WatchOptions) if is_watchable else ())]

        @wraps(run)
        def call(**values: Any) -> object:  # noqa: ANN401 - click's
            def run_once() -> object:
                return run(**_collect(run, values))

            if not values.get("watch"):
                return run_once()
            _watch(run_once, values["interval"])
            return None

        return click.command(name, params=params)(call)

    return decorate


def option(help: str, *flags: str, **settings: Any) -> Any:  # noqa: A002, ANN401 - click's
    """Declare an option.

    Args:
        help: its help.
        flags: empty: `--` and the name of the parameter.
        settings: of click, as far as they do not follow from the type of the value.
    """

    def declare(name: str, kind: Any) -> click.Parameter:  # noqa: ANN401 - a type
        found = {
            "type": _find_type(kind),
            "is_flag": kind is bool or None,  # with False, a value is optional
            "multiple": get_origin(kind) is tuple,
            "show_default": settings.get("default") is not None or None,
        }
        given = [*(flags or (f"--{name.replace('_', '-')}",)), name]
        return click.Option(given, help=help, **found | settings)

    return declare


def argument(**settings: Any) -> Any:  # noqa: ANN401 - click's
    """Declare a positional argument."""
    return lambda name, kind: click.Argument([name], **{"type": _find_type(kind)} | settings)


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
    return _Group(help)


def server(purpose: str) -> Any:  # noqa: ANN401 - click's
    """Declare --server and its credentials; `purpose` ends the help of --server."""
    return _Group(f"HOST:PORT of a `toponaut serve` {purpose}.")


class _Group(NamedTuple):
    help: str
    """Of its first option."""


def _list_params(owner: Any) -> Iterator[click.Parameter]:  # noqa: ANN401 - a function or a class
    for name, kind, declared in _list_fields(owner):
        if not _is_group(declared):
            yield declared(name, kind)
            continue
        inner = list(_list_params(kind))
        if isinstance(declared, _Group) and isinstance(inner[0], click.Option):
            inner[0].help = declared.help
        yield from inner


def _collect(owner: Any, values: Mapping[str, Any]) -> dict[str, Any]:  # noqa: ANN401
    """Return the values of the parameters or fields of an owner."""
    return {
        name: kind(**_collect(kind, values))
        if _is_group(declared)
        else _convert(kind, values[name])
        for name, kind, declared in _list_fields(owner)
    }


def _list_fields(owner: Any) -> Iterator[tuple[str, Any, Any]]:  # noqa: ANN401
    """Yield the name, the type and the declaration of each parameter or field."""
    declared = getattr(owner, "_field_defaults", None) or owner.__kwdefaults__
    for name, kind in get_type_hints(owner).items():
        if name != "return":
            yield name, kind, declared.get(name)


def _is_group(declared: object) -> bool:
    return declared is None or isinstance(declared, _Group)


def _convert(kind: Any, value: Any) -> Any:  # noqa: ANN401 - a type, and click's value
    """Return the value of an option; members of an enum for their texts."""
    inner = _find_inner(kind)
    if value is None or not issubclass(inner, Enum):
        return value
    return tuple(map(inner, value)) if isinstance(value, tuple) else inner(value)


def _find_type(kind: Any) -> Any:  # noqa: ANN401 - a type, and click's
    inner = _find_inner(kind)
    if issubclass(inner, Enum):
        return click.Choice([row.value for row in inner])
    return FILE if inner is Path else None


def _find_inner(kind: Any) -> type:  # noqa: ANN401 - a type
    """Return the type of one value: `Path` of `tuple[Path, ...]` or `Path | None`."""
    found: type = next((row for row in get_args(kind) if row is not NoneType), kind)
    return found


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


class InputOptions(NamedTuple):
    """The sources of a fabric; `observation.parse_sources` makes sources of them."""

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
        type=click.Choice(["text", *formats, "json", "yaml"]),
        default="text",
    )


OUTPUT: Final = output_of()
WIDE_OUTPUT: Final = output_of(WIDE, note=" text prints nodes as ranges, wide lists every node.")
