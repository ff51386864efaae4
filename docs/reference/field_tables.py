"""A Sphinx extension: the page of fields, made from the models of the documents.

`toponaut explain` prints the same types and descriptions.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from sphinx.application import Sphinx

from generator.cli.schemas import SCHEMAS, build_schema, describe_type

_PAGE = "reference/fields"


def setup(app: Sphinx) -> dict[str, Any]:
    """Add the tables to the page when Sphinx reads it."""
    app.connect("source-read", _add_tables)
    return {"parallel_read_safe": True}


def _add_tables(app: Sphinx, page: str, source: list[str]) -> None:
    del app
    if page == _PAGE:
        source[0] += "".join(f"\n{line}" for name in sorted(SCHEMAS) for line in _describe(name))


def _describe(name: str) -> Iterator[str]:
    """Yield the lines of a document: its own fields, then those of each object inside it."""
    document = build_schema(name)
    yield f"## {name}"
    yield from _describe_object(document, document)
    for title, row in document.get("$defs", {}).items():
        yield f"### {name}: {title}"
        yield from _describe_object(document, row)


def _describe_object(document: Mapping[str, Any], row: Mapping[str, Any]) -> Iterator[str]:
    yield _in_cell(row.get("description", "")).replace("<br>", " ")
    yield ""
    if "enum" in row:
        yield "One of: " + ", ".join(f"`{value}`" for value in row["enum"])
        yield ""
    fields = row.get("properties", {})
    if not fields:
        return
    yield "| Field | Type | Default | Description |"
    yield "|---|---|---|---|"
    for field, of_field in fields.items():
        is_required = field in row.get("required", ())
        default = "required" if is_required else f"`{of_field.get('default')}`"
        text = _in_cell(of_field.get("description", ""))
        yield f"| `{field}` | {describe_type(document, of_field)} | {default} | {text} |"
    yield ""


def _in_cell(text: str) -> str:
    """Return a description for the cell of a table; docstrings are plain text, not Markdown."""
    for sign in "<>*[]|":
        text = text.replace(sign, f"\\{sign}")
    return " ".join(text.split())
