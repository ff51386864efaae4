"""A work order on paper: hostile names stay text in each form, and no name breaks over lines."""

from __future__ import annotations

import csv
import re
from datetime import date
from html.parser import HTMLParser

import pytest

from generator.cli.output import render_csv
from generator.outputs.work_order import (
    CAUSES,
    COLUMNS,
    OrderHead,
    list_rows,
    render_html,
    render_markdown,
)
from topology.findings.work_order import Place, Step, WorkOrder

HOSTILE = (
    "=cmd|'/c calc'!A1",
    "<script>alert(1)</script>",
    "a|b`c`*d*_e_[x](http://x)",
    "<img src=x onerror=alert(1)>",
    "evil\n| ☐ | 99 | r1",
    "\x1b[31mred\u202e",
    "\\| escaped",
    "&lt;b&gt;",
)
HEAD = OrderHead("Work order", "Hall 3", date(2026, 11, 28), 9, CAUSES)

NOTHING = WorkOrder((), (), 0)


def build(name: str) -> WorkOrder:
    step = Step(Place(name, name), name, name, f"the cable to {name}", name, name, "down-port", "")
    return WorkOrder((step,), (), 1)


class _Reader(HTMLParser):
    """Collects the tags and the text of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.texts: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        assert not any(name.startswith("on") or name in {"src", "href"} for name, _ in attrs)

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def read(page: str) -> _Reader:
    reader = _Reader()
    reader.feed(page)
    reader.close()
    return reader


@pytest.mark.parametrize("name", HOSTILE, ids=range(len(HOSTILE)))
def test_a_hostile_name_is_text_on_the_page(name: str) -> None:
    plain = read(render_html(build("node-1"), HEAD))
    hostile = read(render_html(build(name), HEAD._replace(title=name, site=name)))
    assert set(hostile.tags) == set(plain.tags)
    assert hostile.tags.count("tr") == plain.tags.count("tr")
    assert "script" not in hostile.tags
    assert "".join(hostile.texts).replace("\n", "").isprintable()


@pytest.mark.parametrize("name", HOSTILE, ids=range(len(HOSTILE)))
def test_a_hostile_name_is_text_in_markdown(name: str) -> None:
    text = render_markdown(build(name), HEAD._replace(title=name, site=name))
    plain = render_markdown(build("node-1"), HEAD)
    assert len(text.splitlines()) == len(plain.splitlines())
    row = next(line for line in text.splitlines() if line.startswith("| ☐"))
    bare = re.sub(r"\\.", "", row)  # what is escaped is no markup
    assert bare.count("|") == 9
    assert not re.search(r"[`*_\[\]<>&!]", bare)


@pytest.mark.parametrize("name", HOSTILE, ids=range(len(HOSTILE)))
def test_a_hostile_name_is_no_formula(name: str) -> None:
    header, row = csv.reader(render_csv(COLUMNS, list_rows(build(name))).splitlines())
    assert len(header) == len(row) == len(COLUMNS)
    assert not any(cell.startswith(("=", "+", "-", "@", "\t", "\r")) for cell in row)


def test_the_head_counts_the_steps_and_the_causes_that_they_mend() -> None:
    for text in (render_html(build("x"), HEAD), render_markdown(build("x"), HEAD)):
        assert "1 step for 1 of 9 causes." in text


def test_each_step_says_what_its_fault_costs_and_errors_stand_out() -> None:
    (step,) = build("r1").steps
    cheap = step._replace(costs="1% of 2 nodes")
    dear = step._replace(costs="9% of 8 nodes", is_error=True)
    order = WorkOrder((cheap, dear, step), (), 3)
    page, text = render_html(order, HEAD), render_markdown(order, HEAD)
    assert re.findall(r"<br><span class=costs>(.*?)</span>", page) == [
        "costs 1% of 2 nodes",
        "<strong>error</strong>, costs 9% of 8 nodes",
    ]
    rows = [line for line in text.splitlines() if line.startswith("| ")]
    assert [row.split(" | ")[-1].removesuffix(" |") for row in rows] == [
        *("Costs", "1% of 2 nodes", "**error**, 9% of 8 nodes", "-")
    ]
    assert "Costs" not in render_markdown(WorkOrder((step,), (), 1), HEAD)


def test_what_comes_first_has_a_table_of_its_own() -> None:
    (step,) = build("r1").steps
    order = WorkOrder((step._replace(is_first=True), step), (), 2)
    page, text = render_html(order, HEAD), render_markdown(order, HEAD)
    assert re.findall(r"## (.*)", text) == ["First: rack r1", "Rack r1"]
    assert page.index(">First: rack r1<") < page.index(">Rack r1<")


def test_each_sheet_repeats_the_title_and_the_rack_and_has_its_number() -> None:
    first, second = (build(name).steps for name in ("r1", "r2"))
    page = render_html(WorkOrder((*first, *second), (), 2), HEAD)
    heads = re.findall(r"<thead>(.*?)</thead>", page)
    assert [re.findall(r"<th colspan=7>(.*?)</th>", head) for head in heads] == [
        ["Work order, Hall 3, 2026-11-28", "Rack r1"],
        ["Work order, Hall 3, 2026-11-28", "Rack r2"],
    ]
    assert "thead { display: table-header-group }" in page
    assert 'content: counter(page) " / " counter(pages)' in page


def test_the_page_breaks_no_name_and_no_step() -> None:
    page = render_html(build("leaf-s01-p04-g08-r2"), HEAD)
    assert "<span class=name>leaf-s01-p04-g08-r2</span>" in page
    assert ".name { display: inline-block; max-width: 100%;" in page
    assert "tr { break-inside: avoid }" in page
    assert "break-before" not in page
    assert "page-break" not in page


def test_a_list_of_names_breaks_after_its_commas() -> None:
    page = render_html(build("spine-p01-19,spine-p02-19,leaf-1"), HEAD)
    assert (
        "<span class=name>spine-p01-19,</span><wbr><span class=name>spine-p02-19,</span><wbr>"
        "<span class=name>leaf-1</span>"
    ) in page


def test_a_name_and_its_port_stay_together() -> None:
    page = render_html(build("leaf-1 port 9 <> spine-1 port 3"), HEAD)
    assert "<span class=name>leaf-1 port 9</span> <span class=name>&lt;&gt;</span> " in page
    assert "<span class=name>spine-1 port 3</span>" in page


def test_no_text_takes_the_room_of_another_column() -> None:
    page = render_html(build("x"), HEAD)
    assert "table-layout: fixed" in page
    assert page.count("<col ") + page.count("<col>") == 7


def test_the_last_line_counts_what_needs_nobody_at_a_rack() -> None:
    for num, text in ((1, "1 cause needs nobody"), (2, "2 causes need nobody")):
        order = WorkOrder((), ("silent-node",) * num, 0)
        assert f"{text} at a rack \\(silent-node\\): see toponaut findings" in (
            render_markdown(order, HEAD)
        )
        assert f"{text} at a rack (silent-node)" in render_html(order, HEAD)


def test_the_head_says_where_and_when() -> None:
    for text in (render_html(NOTHING, HEAD), render_markdown(NOTHING, HEAD)):
        assert "Work order" in text
        assert "Hall 3, 2026-11-28, nothing to do." in text
