"""A work order as Markdown, as a table for spreadsheets, and as a page to print. Pure.

Names are foreign text: they are escaped for each form, and on paper never broken over lines.
"""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Iterator, Sequence
from datetime import date
from hashlib import sha256
from html import escape
from itertools import groupby
from typing import Final, NamedTuple

from topology.findings.work_order import Step, WorkOrder
from topology.model.errors import show

COLUMNS: Final = (
    *("step", "rack", "unit", "device", "port", "unplug", "plug into", "done"),
    *("toponaut shows", "kind", "costs"),
)
_BOX: Final = "☐"
_MAX_TEXT: Final = 600
_MARKDOWN: Final = re.compile(r"([\\`*_{}\[\]<>()#+!|~&$])")
_STYLE: Final = """
@page { size: A4 landscape; margin: 12mm 12mm 16mm;
  @bottom-right { content: counter(page) " / " counter(pages); font: 8pt system-ui, sans-serif } }
body { font: 9pt/1.35 system-ui, sans-serif; color: #000; margin: 1.5em }
h1 { font-size: 15pt; margin: 0 0 .2em } p { margin: 0 0 .8em }
table { border-collapse: collapse; table-layout: fixed; width: 100%; margin: 0 0 1em }
col { width: 22% } col.few { width: 4% } col.box { width: 3% } col.device { width: 17% }
th, td { border: .5pt solid #888; padding: 3pt 4pt; text-align: left; vertical-align: top }
thead { display: table-header-group } tr { break-inside: avoid }
thead th { background: #eee } thead .soft { display: none }
.name { display: inline-block; max-width: 100%; overflow-wrap: anywhere }
.box { font-size: 14pt; line-height: 1; text-align: center }
.soft, .costs { color: #444 }
strong { color: #000 }
@media print { body { margin: 0 } thead .soft { display: table-row } }
"""
_STYLE_HASH: Final = b64encode(sha256(_STYLE.encode()).digest()).decode()
_POLICY: Final = f"default-src 'none'; style-src 'sha256-{_STYLE_HASH}'"


class OrderSource(NamedTuple):
    """What a work order is made from."""

    noun: str
    command: str
    others: tuple[str, str]
    """What is said of one without a step, and of several."""


CAUSES: Final = OrderSource(
    *("cause", "toponaut findings"), ("needs nobody at a rack", "need nobody at a rack")
)
# Its device may be off, or only not be collected.
DIFFERENCES: Final = OrderSource(
    *("difference", "toponaut diff"), ("gives no move", "give no move")
)


class OrderHead(NamedTuple):
    """What stands above the steps."""

    title: str
    site: str
    """Empty: unknown."""
    day: date
    num_all: int
    """How many causes or differences there are, also those that the order leaves out."""
    source: OrderSource


def list_rows(order: WorkOrder) -> list[tuple[object, ...]]:
    """Return a row for each step, in the order of `COLUMNS`."""
    return [
        (
            *(number, step.place.rack, step.place.unit, step.device, step.port, step.unplug),
            *(step.plug, "", step.shows, step.kind, step.costs),
        )
        for number, step in enumerate(order.steps, 1)
    ]


def render_markdown(order: WorkOrder, head: OrderHead) -> str:
    """Return the order as Markdown, with a table for each rack."""
    lines = [f"# {_mark(head.title)}", "", _mark(_describe(order, head)), ""]
    has_costs = any(step.is_error or step.costs for step in order.steps)
    titles = ["Done", "Step", "Unit", "Device", "Port", "Unplug", "Plug into", "Toponaut shows"]
    titles += ["Costs"] if has_costs else []
    for rack, steps in _group_by_rack(order.steps):
        lines += [f"## {_mark(rack)}", "", f"| {' | '.join(titles)} |"]
        lines += [f"|{'---|' * len(titles)}"]
        for number, step in steps:
            cells = (step.place.unit, step.device, step.port, step.unplug, step.plug, step.shows)
            shown = " | ".join(_mark(cell) or "-" for cell in cells)
            costs = [*(["**error**"] if step.is_error else ()), *filter(None, [_mark(step.costs)])]
            shown += f" | {', '.join(costs) or '-'}" if has_costs else ""
            lines.append(f"| {_BOX} | {number} | {shown} |")
        lines.append("")
    lines += [_mark(line) for line in _describe_others(order, head.source)]
    return "\n".join(lines).rstrip() + "\n"


def render_html(order: WorkOrder, head: OrderHead) -> str:
    """Return the order as one page to print; it loads nothing and runs nothing.

    On paper each sheet repeats the title and the rack, and has its number.
    """
    titles = ("", "Step", "Unit", "Device and port", "Unplug", "Plug into", "Toponaut shows")
    columns = "".join(f"<th scope=col>{title}</th>" for title in titles)
    widths = "<col class=box><col class=few><col class=few><col class=device><col><col><col>"
    title = _text(head.title)
    above = f"<tr class=soft><th colspan=7>{title}, {_text(_name_day(head))}</th></tr>"
    others = "".join(
        f"<p class=soft>{_text(line)}</p>" for line in _describe_others(order, head.source)
    )
    tables = "".join(
        f"<table><colgroup>{widths}</colgroup><thead>{above}"
        f"<tr><th colspan=7>{_text(rack)}</th></tr><tr>{columns}</tr></thead><tbody>"
        f"{''.join(map(_render_step, steps))}</tbody></table>"
        for rack, steps in _group_by_rack(order.steps)
    )
    return (
        f"<!doctype html>\n<html lang=en><head><meta charset=utf-8><title>{title}</title>"
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
        f"<style>{_STYLE}</style></head><body><h1>{title}</h1>"
        f"<p>{_text(_describe(order, head))}</p>{tables}{others}</body></html>\n"
    )


def _render_step(row: tuple[int, Step]) -> str:
    number, step = row
    port = f"<br><span class=name>port {_text(step.port)}</span>" if step.port else ""
    costs = [f"costs {_text(step.costs)}"] if step.costs else []
    costs[:0] = ["<strong>error</strong>"] if step.is_error else []
    below = f"<br><span class=costs>{', '.join(costs)}</span>" if costs else ""
    device = f"<span class=name>{_text(step.device)}</span>{port}{below}"
    cells = [_text(step.place.unit), device]
    cells += [_keep_names(text) for text in (step.unplug, step.plug, step.shows)]
    shown = "".join(f"<td>{cell}</td>" for cell in cells)
    return f"<tr><td class=box>{_BOX}</td><td>{number}</td>{shown}</tr>"


def _keep_names(text: str) -> str:
    """Return text as HTML in which a line breaks at blanks and after commas only.

    A name and its port stay together, and a list of names may break between them.
    """
    words = re.split(r"(\S+ port \S+| +|(?<=,)(?=[^ ]))", show(text, _MAX_TEXT))
    return "".join(
        f"<span class=name>{escape(word)}</span>{'<wbr>' if word.endswith(',') else ''}"
        if word.strip()
        else escape(word)
        for word in words
    )


def _group_by_rack(steps: Sequence[Step]) -> Iterator[tuple[str, list[tuple[int, Step]]]]:
    for title, group in groupby(enumerate(steps, 1), key=lambda row: _name_rack(row[1])):
        yield title, list(group)


def _name_rack(step: Step) -> str:
    rack = step.place.rack or "unknown"
    return f"First: rack {rack}" if step.is_first else f"Rack {rack}"


def _name_day(head: OrderHead) -> str:
    return f"{head.site}, {head.day.isoformat()}" if head.site else head.day.isoformat()


def _describe(order: WorkOrder, head: OrderHead) -> str:
    num = len(order.steps)
    whole = _count(head.num_all, head.source.noun)
    steps = f"{_count(num, 'step')} for {order.num_mended} of {whole}"
    return (
        f"{_name_day(head)}, {steps if num else 'nothing to do'}. "
        "Names are as the devices report them."
    )


def _describe_others(order: WorkOrder, source: OrderSource) -> Iterator[str]:
    num = len(order.others)
    if num:
        what = f"{_count(num, source.noun)} {source.others[num > 1]}"
        kinds = ", ".join(sorted({*order.others}))
        yield f"{what} ({kinds}): see {source.command}."


def _count(num: int, noun: str) -> str:
    return f"{num} {noun}{'' if num == 1 else 's'}"


def _mark(text: str) -> str:
    """Return text as Markdown that shows it, in a cell of a table."""
    return _MARKDOWN.sub(r"\\\1", show(text, _MAX_TEXT))


def _text(text: str) -> str:
    return escape(show(text, _MAX_TEXT))
