"""`toponaut explain`: what a kind of finding means, or what a field of a document holds."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

import click

from generator.cli import options
from generator.cli.schemas import (
    SCHEMAS,
    build_schema,
    describe_type,
    resolve_field,
    resolve_holder,
)
from runtime.options import suggest_names
from topology.findings.kind_descriptions import KIND_DESCRIPTIONS
from topology.model.errors import ConfigError, list_some, show
from topology.model.facts import FindingKind

_LINK: Final = re.compile(r"\[([^\]]+)\]\(([^)#]+)[^)]*\)")
_MAX_NAMES: Final = 40
_NO_DEFAULTS: Final[tuple[object, ...]] = (None, "", [], {})
"""Defaults that mean that nothing is set."""


@options.command(
    "explain",
    examples=(
        "toponaut explain missing-link",
        "toponaut explain fabric.spec.changeBudget",
    ),
)
def command(*, topic: str | None = options.argument(required=False)) -> None:
    """Explain a kind of finding, or a field of an object or file.

    TOPIC is a kind of finding such as missing-link, or the path of a field such as
    fabric.spec.changeBudget, request.spec.groups or tree. Paths begin with fabric, planes, report,
    request, reservation or tree. Without TOPIC, list all kinds and the roots of paths.
    """
    if topic is None:
        click.echo("\n".join(_list_topics()))
        return
    if topic in set(FindingKind):
        click.echo("\n".join(_explain_kind(FindingKind(topic))))
        return
    root = topic.partition(".")[0]
    if root not in SCHEMAS:
        names = [*sorted(SCHEMAS), *sorted(FindingKind)]
        raise ConfigError(f"nothing is called '{show(root)}'{_suggest(root, names)}")
    click.echo("\n".join(explain_field(build_schema(root), topic)))


def _list_topics() -> Iterator[str]:
    """Yield what can be explained: a line per kind of finding, then the roots of paths."""
    width = max(map(len, FindingKind))
    yield "Kinds of findings:"
    for kind in sorted(FindingKind):
        meaning = _LINK.sub(r"\1", KIND_DESCRIPTIONS[kind].meaning)
        yield f"  {kind.value.ljust(width)}  {meaning.partition('. ')[0].rstrip('.')}"
    yield ""
    yield f"Fields, as paths such as fabric.spec.outputs: {', '.join(sorted(SCHEMAS))}"


def _suggest(name: str, known: Iterable[str]) -> str:
    """Return the end of a message: the names that are most like an unknown one, or all."""
    known = list(known)
    return suggest_names(name, known) or f"; known: {list_some(known, _MAX_NAMES)}"


def _explain_kind(kind: FindingKind) -> Iterator[str]:
    """Yield the lines of a kind; links become names of files."""
    row = KIND_DESCRIPTIONS[kind]
    yield f"finding {kind.value} ({row.severities})"
    yield ""
    yield _render_links(row.meaning)
    yield ""
    yield f"What to do: {_render_links(row.advice)}"


def _render_links(text: str) -> str:
    """Return a text with the file of each link behind its words, which the sentence needs."""
    return _LINK.sub(r"\1 (docs/\2)", text)


def _find_field(document: Mapping[str, Any], topic: str) -> tuple[Mapping[str, Any], bool]:
    """Return the schema of a field, and whether it is required.

    Raises:
        ConfigError: there is no such field.
    """
    found: Mapping[str, Any] = document
    is_required = True
    for name in topic.split(".")[1:]:
        holder = resolve_holder(document, found, name)
        fields = holder.get("properties", {})
        if name not in fields:
            known = _suggest(name, fields) if fields else "; it has no fields"
            raise ConfigError(f"{show(topic)}: there is no field '{show(name)}'{known}")
        found, is_required = fields[name], name in holder.get("required", ())
    return found, is_required


def _render_default(value: object) -> str:
    """Return a default as a person writes it in YAML or JSON, without fields that are absent."""

    def drop_absent(part: object) -> object:
        if isinstance(part, Mapping):
            return {name: drop_absent(row) for name, row in part.items() if row not in _NO_DEFAULTS}
        return [drop_absent(row) for row in part] if isinstance(part, list) else part

    return json.dumps(drop_absent(value), ensure_ascii=False)


def explain_field(document: Mapping[str, Any], topic: str) -> Iterator[str]:
    """Yield the type and the description of a field of a schema, and the fields inside it.

    Raises:
        ConfigError: there is no such field.
    """
    field, is_required = _find_field(document, topic)
    holder = resolve_field(document, field)
    head = f"{topic}: {describe_type(document, field)}"
    notes = ["required"] if is_required and "." in topic else []
    default = field.get("default") if not isinstance(field.get("default"), Mapping) else None
    if default not in _NO_DEFAULTS:
        notes.append(f"default {_render_default(default)}")
    yield f"{head} ({', '.join(notes)})" if notes else head
    text = field.get("description") or holder.get("description")
    if text:
        yield ""
        yield str(text)
    if "enum" in holder:
        yield ""
        yield f"One of: {', '.join(map(str, holder['enum']))}"
    fields: Mapping[str, Mapping[str, Any]] = holder.get("properties", {})
    if fields:
        yield ""
        width = max(map(len, fields))
        for name, row in fields.items():
            text = row.get("description") or resolve_field(document, row).get("description") or ""
            first = str(text).split("\n", 1)[0]
            yield f"  {name.ljust(width)}  {describe_type(document, row)}  {first}".rstrip()
