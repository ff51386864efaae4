"""`toponaut export`: the tree in the formats of schedulers and other tools."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import click
import yaml

from generator.cli.exit_codes import exit_with_problems, exit_without_data
from generator.cli.observation import (
    LoadedObservation,
    read_observation,
    read_saved_tree,
    refuse_without_hosts,
)
from generator.cli.options.value_types import is_label
from generator.cli.output import show_count
from generator.cli.source_values import parse_sources
from generator.observe.observation import ObservationCache
from generator.outputs.catalog import Export
from generator.outputs.formats import ExportFormat, ExportSettings
from generator.outputs.kueue import FlavorSpec
from generator.outputs.node_labels import LabelFamily
from generator.reconcile.export_check import render_checked_export
from generator.store.object_files import YAML_DUMPER, write_file
from generator.web import build_page_document, render_page
from topology.model.errors import ParseError, list_some, show
from topology.planes.plane import PlaneSplit

_MAX_NAMES: Final = 5
PAGE: Final = "html"
_TEXT_FORMATS: Final = "a format of its own: give no --output"


def run(ctx: click.Context, /, chosen: str, **options: Any) -> None:  # noqa: ANN401 - click's
    """Run `toponaut export` with the values of its options."""
    settings, output, folder = _parse_settings(options), options.pop("output"), options.pop("out")
    names, previous = options.pop("tier_names"), options.pop("previous")
    memory = ObservationCache(has_updates=False) if chosen == PAGE else None
    read = _read_tree(options, names_of_tiers=names, previous=previous, memory=memory)
    refuse_without_hosts(read)
    export = (
        _render_page(read, memory.split)
        if memory is not None
        else render_checked_export(read.observation.tree, ExportFormat(chosen), settings)
    )
    problems = (*read.problems, *_list_left_out(chosen, export))
    if export.is_empty:
        empty = f"no node has a place that {chosen} can hold: nothing is written"
        exit_without_data([*problems, ParseError(empty, source="tree")])
    if export.text is not None and output is not None:
        raise click.UsageError(f"{chosen} has {_TEXT_FORMATS}")
    text = _render_documents(export.documents, output) if export.text is None else export.text
    if folder is None:
        click.echo(text, nl=False)
    else:
        _write(folder, export, text)
    exit_with_problems(ctx, problems)


def _read_tree(
    options: dict[str, Any],
    *,
    names_of_tiers: str | None,
    previous: Path | None,
    memory: ObservationCache | None,
) -> LoadedObservation:
    """Read the sources, or a saved tree; with a list of nodes, only its nodes.

    Raises:
        click.UsageError: both are given, or options that do not fit.
    """
    tree, sources = options.pop("tree"), parse_sources(options)
    if tree is None:
        return read_observation(
            sources, names_of_tiers=names_of_tiers, previous=previous, memory=memory
        )
    if names_of_tiers or previous or sources.planes or sources.plane:
        raise click.UsageError(
            "--tree has its own names: give no --tier-names, --previous, --planes and --plane"
        )
    return read_saved_tree(tree, sources, is_restricted=True)


def _parse_settings(options: dict[str, Any]) -> ExportSettings:
    """Remove the settings from the parameters of the command, and return them.

    Raises:
        click.BadParameter: a label of the flavor has another form than KEY=VALUE.
        click.UsageError: labels of a flavor without a flavor, or the reverse.
    """
    flavor, rows = options.pop("flavor"), options.pop("flavor_label")
    if (flavor is None) != (not rows):
        raise click.UsageError("a ResourceFlavor needs both --flavor and --flavor-label")
    labels: dict[str, str] = {}
    for row in rows:
        key, separator, value = row.partition("=")
        if not key or not separator:
            raise click.BadParameter(f"'{show(row)}' is not KEY=VALUE", param_hint="--flavor-label")
        if not is_label(key, value):
            raise click.BadParameter(
                f"'{show(row)}' is not a label of a node", param_hint="--flavor-label"
            )
        labels[key] = value
    return ExportSettings(
        name=options.pop("name"),
        namespace=options.pop("namespace"),
        label_prefix=options.pop("label_prefix"),
        label_families=tuple(map(LabelFamily, options.pop("compat"))),
        is_padded=not options.pop("no_padding"),
        flavor=None if flavor is None else FlavorSpec(flavor, labels),
        has_aliases=not options.pop("no_aliases"),
    )


def _render_page(read: LoadedObservation, split: PlaneSplit | None) -> Export:
    """Return the page; without cables and planes if only a tree was read."""
    document = build_page_document(read.observation.tree, split, read.observation.findings)
    return Export("fabric.html", text=render_page(document))


def _render_documents(documents: Sequence[dict[str, Any]], output: str | None) -> str:
    """Return objects as YAML documents, or as one List in JSON."""
    if output == "json":
        items = {"apiVersion": "v1", "kind": "List", "items": [*documents]}
        return json.dumps(items, indent=2, ensure_ascii=True) + "\n"
    return yaml.dump_all(
        documents, Dumper=YAML_DUMPER, sort_keys=False, allow_unicode=False, explicit_start=True
    )


def _write(folder: Path, export: Export, text: str) -> None:
    path = folder / export.file_name
    is_changed = write_file(path, text)
    what = show_count(len(export.documents), "object") if export.text is None else "the topology"
    state = f"wrote {what} to" if is_changed else "unchanged:"
    click.echo(f"{state} {show(str(path), 1024)}", err=True)


def _list_left_out(chosen: str, export: Export) -> tuple[ParseError, ...]:
    if not export.left_out:
        return ()
    names = list_some([show(name) for name in export.left_out], _MAX_NAMES)
    what = show_count(len(export.left_out), "name")
    return (ParseError(f"{what} that {chosen} cannot hold: {names}", source="tree"),)
