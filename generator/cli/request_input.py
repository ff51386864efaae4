"""Placement requests from files and command lines, of Toponaut or of another system.

The manifest of another system becomes a PlacementRequest. Its fields that a PlacementRequest cannot
express are listed on stderr.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, NamedTuple

import click

from generator.cli.exit_codes import ExitCode
from generator.cli.output import MAX_PROBLEMS_SHOWN
from generator.manifests.fields import IgnoredField, Note, Relevance
from generator.manifests.gang_pods import walk_leaves
from generator.manifests.kinds.unlisted_resources import parse_share_name, warn_of_unknown_memory
from generator.manifests.manifest_request import KIND, Translation, translate, translate_job
from generator.manifests.resource_units import (
    fit_running,
    fit_units,
    leave_out_ports,
)
from generator.manifests.slurm.batch_job import parse_batch_job
from generator.manifests.slurm.command_line import is_script, split_words
from generator.manifests.slurm.loads import build_node_capacity
from generator.objects.inventory import Inventory
from generator.objects.yaml_document import describe_documents, list_documents
from generator.placement.answer import UNMET, WITHOUT, DomainVerdict, Placement
from generator.placement.cluster.nodes import RunningGang, RunningPods
from generator.placement.quantities import count_request
from generator.placement.request import PlacementRequest, parse_request
from generator.store.file_kinds import FileKind, expect_kind
from generator.store.local_files import read_input, read_whole_file
from topology.model.errors import ConfigError, PlacementRequestError, list_some, show
from topology.model.tree import API_VERSION

MAX_REQUEST_BYTES: Final = 4 << 20
_MAX_NAMES_SHOWN: Final = 12
_SBATCH_OPTION: Final = "--sbatch"
_NO_VARIABLES: Final[Mapping[str, str]] = MappingProxyType({})
_UNUSED_FIELD: Final = "options.arguments"
"""A field of PlacementRequest that is accepted, so that requests can have it, but has no effect."""


class LoadedRequest(NamedTuple):
    """A request as a PlacementRequest document, and its source."""

    source: str
    """The file or option, for messages."""
    document: dict[str, Any]
    translation: Translation | None
    """None if the file is a PlacementRequest itself."""

    @property
    def code(self) -> ExitCode | None:
        """The exit code of an answer: 3 if a field without effect may matter, else None."""
        if self.translation is None:
            is_skipped = bool(find_unused_fields(self.document))
        else:
            is_skipped = any(
                row.relevance is Relevance.POSSIBLE for row in self.translation.ignored
            )
        return ExitCode.SKIPPED if is_skipped else None

    def build_document(self, preset: str | None) -> dict[str, Any]:
        """Return the document; a given preset replaces the preset of the request."""
        document, spec = self.document, self.document.get("spec")
        if preset is not None and isinstance(spec, dict):
            return document | {"spec": spec | {"preset": preset}}
        return document

    def to_request(self, preset: str | None) -> PlacementRequest:
        """Return the request; a given preset replaces the preset of the request.

        Raises:
            ConfigError: the request is invalid; the message names the file and the field.
        """
        try:
            return parse_request(self.build_document(preset))
        except PlacementRequestError as error:
            where = "" if self.translation is None else "in the request that --translate prints: "
            raise ConfigError(f"{self.source}: {where}{error}") from error

    def with_given_names(self, placement: Placement) -> Placement:
        """Return the answer with the names that the user gave to the bounds in it."""
        names = self.translation.names if self.translation else {}
        changes = {f"{WITHOUT}{field}": f"{WITHOUT}{name}" for field, name in names.items()}
        alternatives = tuple(
            replace(row, change=changes.get(row.change, row.change))
            for row in placement.alternatives
        )
        verdicts = tuple(_name_unmet(row, names) for row in placement.domain_verdicts)
        return replace(placement, alternatives=alternatives, domain_verdicts=verdicts)

    def fit_to_nodes(self, inventory: Inventory | None, nodes: Sequence[str]) -> LoadedRequest:
        """Return the request in the units that the nodes list.

        Args:
            inventory: the listed nodes.
            nodes: the nodes of the tree.

        Raises:
            ConfigError: a job names a node that does not exist.
        """
        if self.translation is None:
            return self
        listed = [node.spec for node in inventory.nodes] if inventory else []
        if self.translation.job is None:
            room = find_max_resources(inventory)
            spec, notes = fit_units(self.document["spec"], room)
            running = fit_running(self.translation.running, room)
            warnings = warn_of_unknown_memory(_list_resources(spec), listed)
            translation = replace(self.translation, running=running)
            return self._replace(translation=translation).with_spec(spec, (*notes, *warnings))
        try:
            translation = translate_job(self.translation.job, build_node_capacity(listed, nodes))
        except PlacementRequestError as error:
            raise ConfigError(f"{self.source}: {error}") from error
        return self._replace(document=translation.document, translation=translation)

    def with_spec(self, spec: dict[str, Any], notes: Sequence[Note]) -> LoadedRequest:
        """Return the request with another spec, and with notes on what was converted."""
        translation = None if self.translation is None else self.translation.with_notes(notes)
        return self._replace(document=self.document | {"spec": spec}, translation=translation)

    def build_running(self, request: PlacementRequest) -> tuple[RunningGang | None, RunningGang]:
        """Return the pods of the gang that the file says run, and all other pods of the file.

        Raises:
            ConfigError: a pod requests more than can be counted.
        """
        rows: dict[bool, list[RunningPods]] = {True: [], False: []}
        for row in self.translation.running if self.translation else ():
            indices = () if row.rank is None else (row.rank,)
            try:
                need = count_request(row.request)
            except ValueError as error:
                raise ConfigError(f"{self.source}: a pod on {row.node}: {error}") from error
            rows[row.group is not None].append(RunningPods(row.node, need, 1, row.group, indices))
        own = RunningGang(request.gang, tuple(rows[True]), request.priority)
        others = RunningGang(f"other pods of {self.source}", tuple(rows[False]), preemptible=False)
        return own if own.pods else None, others

    def fit_to_server(self) -> LoadedRequest:
        """Return the request without ports of the host, which a server does not count.

        Raises:
            ConfigError: pods take shares of GPUs, which a server does not count either.
        """
        if self.translation is None:
            return self
        shares = sorted(filter(parse_share_name, _list_resources(self.document["spec"])))
        if shares:
            problem = "a server does not count shares of GPUs; give --tree or a source instead"
            raise ConfigError(f"{self.source}: {', '.join(shares)}: {problem}")
        return self.with_spec(*leave_out_ports(self.document["spec"]))


def _name_unmet(verdict: DomainVerdict, names: Mapping[str, str]) -> DomainVerdict:
    room, unmet, fields = verdict.needs.rpartition(UNMET)
    if not unmet:
        return verdict
    given = " and ".join(names.get(field, field) for field in fields.split(" and "))
    return replace(verdict, needs=f"{room}{unmet}{given}")


def _list_resources(spec: Mapping[str, Any]) -> set[str]:
    """Return the resources that pods request."""
    return {name for row in walk_leaves(spec["groups"]) for name in row.get("request", ())}


def load_request(
    file: str | None,
    sbatch: str | None,
    levels: Mapping[str, str],
    variables: Mapping[str, str] = _NO_VARIABLES,
) -> LoadedRequest:
    """Read a request of Toponaut or of another system, from a file or from options of sbatch.

    Args:
        file: the file name; `-` is stdin.
        sbatch: options of sbatch instead of a file.
        levels: tiers by the names that other systems give them.
        variables: the environment variables, which may set options of sbatch.

    Raises:
        ConfigError: there is not exactly one request; the message names the file, the document and
            the field.
    """
    if sbatch is not None:
        return _load_job(_SBATCH_OPTION, sbatch, None, variables)
    source, raw = read_input(file or "-", MAX_REQUEST_BYTES)
    text = raw.decode("utf-8", errors="replace") if raw.startswith(b"#!") else ""
    if is_script(text):
        return _load_job(source, "", text, variables)
    with expect_kind(Path(file or ""), FileKind.REQUEST):
        return _load_file(source, raw, levels)


def _load_file(source: str, raw: bytes, levels: Mapping[str, str]) -> LoadedRequest:
    documents = list_documents(raw, source=source)
    is_own = any(_is_own_kind(document.value) for document in documents)
    if not documents or (is_own and len(documents) > 1):
        raise ConfigError(f"{source}: expected one document, {describe_documents(documents)}")
    if is_own:
        return LoadedRequest(source, documents[0].value, None)
    if len(documents) == 1:
        _check_kind(documents[0].value, source)
    try:
        numbered = [(document.line, document.value) for document in documents]
        translation = translate(numbered, levels=levels)
    except PlacementRequestError as error:
        raise ConfigError(f"{source}: {error}") from error
    return LoadedRequest(source, translation.document, translation)


def _load_job(
    source: str, options: str, script: str | None, variables: Mapping[str, str]
) -> LoadedRequest:
    try:
        job = parse_batch_job(
            split_words(options), script, environment=variables, read_text=_read_text
        )
        translation = translate_job(job)
    except PlacementRequestError as error:
        raise ConfigError(f"{source}: {error}") from error
    return LoadedRequest(source, translation.document, translation)


def _read_text(file: str) -> str | None:
    """Return the text of a file that options of sbatch name; None if it cannot be read."""
    raw = read_whole_file(Path(file), MAX_REQUEST_BYTES)
    return raw.decode("utf-8", errors="replace") if isinstance(raw, bytes) else None


def _is_own_kind(value: object) -> bool:
    return (
        isinstance(value, dict)
        and value.get("kind") == KIND
        and value.get("apiVersion") == API_VERSION
    )


def _check_kind(value: object, source: str) -> None:
    """Refuse a document that is not an object, and other versions of PlacementRequest.

    Raises:
        ConfigError: the document is one of these.
    """
    if not isinstance(value, dict):
        raise ConfigError(
            f"{source}: expected {FileKind.REQUEST.value}, got a {type(value).__name__}"
        )
    version, kind = value.get("apiVersion"), value.get("kind")
    if kind == KIND or kind is None:
        raise ConfigError(
            f"{source}: apiVersion: expected kind {KIND} of {API_VERSION}, "
            f"got kind {show(str(kind or 'none'))}, apiVersion {show(str(version or 'none'))}"
        )


def find_max_resources(inventory: Inventory | None) -> dict[str, int]:
    """Return the largest capacity of any node, by resource.

    Empty without an inventory; then each node has one slot.
    """
    capacity: dict[str, int] = {}
    for node in inventory.nodes if inventory else ():
        for name, quantity in node.spec.capacity.items():
            capacity[name] = max(quantity, capacity.get(name, 0))
    return capacity


def print_translation(loaded: LoadedRequest) -> None:
    """Print on stderr how the manifest of another system was understood, and its ignored fields."""
    translation = loaded.translation
    if translation is None:
        _print_ignored(find_unused_fields(loaded.document))
        return
    click.echo(f"read as a request of {translation.system}", err=True)
    for note in translation.notes:
        click.echo(f"note: {show(str(note), 600)}", err=True)
    _print_ignored(translation.ignored)


def find_unused_fields(document: Mapping[str, Any]) -> tuple[IgnoredField, ...]:
    """Return the fields of a PlacementRequest without effect: arguments of Volcano's plugins."""
    spec = document.get("spec")
    options = spec.get("options") if isinstance(spec, dict) else None
    if isinstance(options, dict) and options.get("arguments"):
        return (IgnoredField(_UNUSED_FIELD, Relevance.POSSIBLE),)
    return ()


def _print_ignored(ignored: Sequence[IgnoredField]) -> None:
    """Print on stderr which fields had no effect."""
    risky = [row for row in ignored if row.relevance is Relevance.POSSIBLE]
    for row in risky[:MAX_PROBLEMS_SHOWN]:
        reason = show(row.reason or row.relevance.value, 300)
        click.echo(f"ignored: {show(str(row), 300)}: {reason}", err=True)
    if len(risky) > MAX_PROBLEMS_SHOWN:
        click.echo(f"ignored: {len(risky) - MAX_PROBLEMS_SHOWN} more that may matter", err=True)
    rest: dict[str, list[str]] = {}
    for row in ignored:
        if row.relevance is Relevance.NONE:
            rest.setdefault(row.reason, []).append(show(str(row), 300))
    for reason, rows in rest.items():
        why = f": {reason}" if reason else ""
        names = list_some(rows, _MAX_NAMES_SHOWN)
        click.echo(f"ignored, {Relevance.NONE.value}: {names}{why}", err=True)
