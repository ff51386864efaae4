"""A Sphinx extension: the page of metrics, from the lists that the programs' tests keep current.

`make golden` rewrites a list from the metrics that a program serves, and `make test` compares them.
"""

from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

_PAGE = "reference/metrics"
_ROOT = Path(__file__).parents[2]
_LISTS = {
    "The generator": _ROOT / "tests/generator/telemetry/metrics.txt",
    "The agent": _ROOT / "tests/agent/telemetry/metrics.txt",
}


def setup(app: Sphinx) -> dict[str, Any]:
    """Add the tables to the page when Sphinx reads it."""
    app.connect("source-read", _add_tables)
    return {"parallel_read_safe": True}


def _add_tables(app: Sphinx, page: str, source: list[str]) -> None:
    del app
    if page == _PAGE:
        source[0] += "".join(_describe(title, file) for title, file in _LISTS.items())


def _describe(title: str, file: Path) -> str:
    """Return a table of a program's metrics; a counter is served with `_total` at its end."""
    rows = [f"\n## {title}", "", "| metric | type | meaning |", "|---|---|---|"]
    for line in file.read_text(encoding="utf-8").splitlines():
        head, _, meaning = line.partition(": ")
        name, kind = head.split()
        served = f"{name}_total" if kind == "counter" else name
        rows.append(f"| `{served}` | {kind} | {meaning} |")
    return "\n".join((*rows, ""))
