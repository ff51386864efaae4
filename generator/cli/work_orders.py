"""The options of a work order, the racks that its steps are sorted by, and its print."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import click

from generator.cli import options
from generator.cli.output import print_csv
from runtime.clock import utc_now
from topology.findings.work_order import Place
from topology.model.errors import list_some, show
from topology.model.ids import natural_key

if TYPE_CHECKING:
    from generator.objects.inventory import Inventory
    from generator.outputs.work_order import OrderSource
    from topology.findings.work_order import WorkOrder

_MARKDOWN, _CSV, _HTML = "work-order", "work-order-csv", "work-order-html"
ORDERS: Final = (_MARKDOWN, _CSV, _HTML)
"""The formats."""
_MAX_NAMES_SHOWN: Final = 5


class OrderOptions(NamedTuple):
    """What a work order says beside its steps."""

    site: str | None = options.option("Site that a work order names.", metavar="NAME")
    title: str | None = options.option("Title of a work order.", metavar="TEXT")
    racks: Path | None = options.option(
        "CSV with the columns device (or name), rack and unit (or position), such as the devices "
        "that NetBox exports. Rows of text name the racks, and the steps of a work order are "
        "sorted by them. Labels of nodes whose keys end in /rack and /unit count too."
    )

    def check_format(self, output: str) -> None:
        """Refuse what no other format prints.

        Raises:
            click.UsageError: the format is no work order, and a site or a title is given.
        """
        if output not in ORDERS and (self.site or self.title):
            raise click.UsageError("--site and --title apply to work orders only")


class Places(NamedTuple):
    """Where devices are."""

    by_device: Mapping[str, Place]
    in_file: Collection[str] = ()
    """The devices that the file of `--racks` names."""


def read_places(inventory: Inventory | None, racks: Path | None) -> Places:
    """Return where devices are, by the labels of nodes and by a file, which counts more."""
    from generator.objects.rack_table import MAX_RACK_BYTES, find_labelled_places, parse_places
    from generator.store.local_files import read_input

    labelled = find_labelled_places(inventory) if inventory else {}
    if racks is None:
        return Places(labelled)
    source, raw = read_input(str(racks), MAX_RACK_BYTES)
    listed = parse_places(raw, source=source)
    return Places({**labelled, **listed}, listed)


def warn_of_racks(places: Places, unknown: Collection[str], shown: Iterable[str]) -> None:
    """Name on stderr what the file of racks and the fabric do not share.

    Args:
        places: where devices are.
        unknown: names in the file that match no device.
        shown: the devices that the output names.
    """
    if unknown:
        what = "1 name matches" if len(unknown) == 1 else f"{len(unknown)} names match"
        click.echo(f"racks: {what} no device: {_list(unknown)}", err=True)
    homeless = {name for name in shown if not places.by_device.get(name, Place()).rack}
    if homeless:
        what = "1 device has" if len(homeless) == 1 else f"{len(homeless)} devices have"
        click.echo(f"racks: {what} no rack: {_list(homeless)}", err=True)


def _list(names: Collection[str]) -> str:
    return list_some(map(show, sorted(names, key=natural_key)), _MAX_NAMES_SHOWN)


def print_order(
    order: WorkOrder, given: OrderOptions, output: str, *, num_all: int, source: OrderSource
) -> None:
    """Print what a technician has to do, of so many causes or differences."""
    from generator.outputs import work_order

    title, today = given.title or "Work order: cables", utc_now().date()
    head = work_order.OrderHead(title, given.site or "", today, num_all, source)
    if output == _CSV:
        print_csv(work_order.COLUMNS, work_order.list_rows(order))
    elif output == _HTML:
        click.echo(work_order.render_html(order, head), nl=False)
    else:
        click.echo(work_order.render_markdown(order, head), nl=False)
