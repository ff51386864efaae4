"""`toponaut schema`: JSON schemas of documents that Toponaut reads, writes and prints."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

import click

if TYPE_CHECKING:
    from pydantic import BaseModel

DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"


def _load_report() -> type[BaseModel]:
    from topology.reports.neighbor_report import NeighborReport  # noqa: PLC0415 - loads one model only

    return NeighborReport


def _load_request() -> type[BaseModel]:
    from generator.placement.wire import Document  # noqa: PLC0415

    return Document


def _load_tree() -> type[BaseModel]:
    from generator.objects.tree_document import TreeDocument  # noqa: PLC0415

    return TreeDocument


def _load_planes() -> type[BaseModel]:
    from generator.objects.plane_config import PlanesFile  # noqa: PLC0415

    return PlanesFile


def _load_fabric() -> type[BaseModel]:
    from generator.objects.fabric import FabricDocument  # noqa: PLC0415

    return FabricDocument


def _load_reservation() -> type[BaseModel]:
    from generator.objects.reservation import PlacementReservation  # noqa: PLC0415

    return PlacementReservation


SCHEMAS: Final[Mapping[str, Callable[[], type[BaseModel]]]] = {
    "fabric": _load_fabric,
    "planes": _load_planes,
    "report": _load_report,
    "request": _load_request,
    "reservation": _load_reservation,
    "tree": _load_tree,
}


def build_schema(name: str) -> dict[str, Any]:
    """Return a schema, with the descriptions of its fields."""
    from generator.cli.commands.reference.field_docs import add_field_docs  # noqa: PLC0415 - loads pydantic

    model = SCHEMAS[name]()
    return add_field_docs(model.model_json_schema(by_alias=True), model)


def render_schema(name: str) -> str:
    """Return a schema as indented JSON; `docs/schema/` holds the same text."""
    return json.dumps({"$schema": DIALECT, **build_schema(name)}, indent=2, sort_keys=True) + "\n"


def run(name: str) -> None:
    """Run `toponaut schema` with the values of its options."""
    click.echo(render_schema(name), nl=False)
