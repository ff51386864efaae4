"""`toponaut schema`: JSON schemas of documents that Toponaut reads, writes and prints."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, Final

import click

DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"


def _build_report_schema() -> dict[str, Any]:
    from topology.reports.neighbor_report import NeighborReport  # noqa: PLC0415 - loads one schema only

    return NeighborReport.model_json_schema(by_alias=True)


def _build_request_schema() -> dict[str, Any]:
    from generator.placement.wire import Document  # noqa: PLC0415

    return Document.model_json_schema()


def _build_tree_schema() -> dict[str, Any]:
    from generator.objects.tree_document import TreeDocument  # noqa: PLC0415

    return TreeDocument.model_json_schema(by_alias=True)


def _build_planes_schema() -> dict[str, Any]:
    from generator.objects.plane_config import PlanesFile  # noqa: PLC0415

    return PlanesFile.model_json_schema(by_alias=True)


def _build_fabric_schema() -> dict[str, Any]:
    from generator.objects.fabric import FabricDocument  # noqa: PLC0415

    return FabricDocument.model_json_schema(by_alias=True)


def _build_reservation_schema() -> dict[str, Any]:
    from generator.objects.reservation import PlacementReservation  # noqa: PLC0415

    return PlacementReservation.model_json_schema(by_alias=True)


SCHEMAS: Final[Mapping[str, Callable[[], dict[str, Any]]]] = {
    "fabric": _build_fabric_schema,
    "planes": _build_planes_schema,
    "report": _build_report_schema,
    "request": _build_request_schema,
    "reservation": _build_reservation_schema,
    "tree": _build_tree_schema,
}


def render_schema(name: str) -> str:
    """Return a schema as indented JSON; `docs/schema/` holds the same text."""
    return json.dumps({"$schema": DIALECT, **SCHEMAS[name]()}, indent=2, sort_keys=True) + "\n"


@click.command(name="schema")
@click.argument("name", type=click.Choice(sorted(SCHEMAS)))
def command(name: str) -> None:
    """Print the JSON schema of a kind of document."""
    click.echo(render_schema(name), nl=False)
