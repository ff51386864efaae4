"""Renders the page: one HTML file with all its parts, or the HTML of a server's page.

The Content-Security-Policy allows the scripts and the style of the file by their hashes, and no
address at all. The document is a data block, which a browser never runs.
"""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Mapping, Sequence
from functools import cache
from hashlib import sha256
from html import escape
from importlib.resources import files
from string import Template
from typing import Any, Final

SCRIPT_FILE: Final = "page.js"
STYLE_FILE: Final = "page.css"
LIBRARY_FILE: Final = "libraries.js"
_LIBRARIES: Final = ("vendor/echarts.min.js", "vendor/tabulator.min.js")
"""Unchanged files of others: charts and tables. `vendor/SOURCE.md` says where they come from."""
_SCRIPTS: Final = (
    "elements.js",
    "document.js",
    "fabric.js",
    "charts.js",
    "tables.js",
    "partition.js",
    "overview.js",
    "grids.js",
    "place.js",
    "findings.js",
    "jobs.js",
    "changes.js",
    "page.js",
)
"""One module in the page, in this order."""
_STYLES: Final = ("vendor/tabulator.min.css", "page.css")


def render_page(document: Mapping[str, Any]) -> str:
    """Return the HTML file of a document that `build_page_document` built."""
    libraries, script, style = read_libraries(), read_script(), read_style()
    policy = build_policy((libraries, script), style)
    return Template(_read_static("page.html")).substitute(
        head=f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        f"<style>{style}</style>",
        session="",
        document=_render_block(document),
        script=f'<script>{libraries}</script>\n<script type="module">{script}</script>',
    )


def render_live_page(*, has_login: bool) -> str:
    """Return the HTML of the page of a server, which reads its document from the same server."""
    leave = '<form method="post" action="logout"><button type="submit">Log out</button></form>'
    return Template(_read_static("page.html")).substitute(
        head=f'<link rel="stylesheet" href="{STYLE_FILE}">',
        session=leave if has_login else "",
        document="null",
        script=f'<script src="{LIBRARY_FILE}"></script>\n'
        f'<script type="module" src="{SCRIPT_FILE}"></script>',
    )


def render_login(problem: str) -> str:
    """Return the form that asks for a token, and why the last one was refused."""
    return Template(_read_static("login.html")).substitute(
        style=STYLE_FILE, problem=escape(problem)
    )


def read_script() -> str:
    """Return the scripts of the page as one module."""
    return "\n".join(map(_read_static, _SCRIPTS))


def read_libraries() -> str:
    """Return the libraries of the page as one script that defines their names."""
    return "\n".join(map(_read_static, _LIBRARIES))


def read_style() -> str:
    """Return the styles of the page."""
    return "\n".join(map(_read_static, _STYLES))


def build_policy(scripts: Sequence[str], style: str) -> str:
    """Return a Content-Security-Policy that allows these scripts and this style alone."""
    return "; ".join(
        (
            "default-src 'none'",
            f"script-src {' '.join(map(_hash, scripts))}",
            f"style-src {_hash(style)}",
            "base-uri 'none'",
            "form-action 'none'",
        )
    )


def _hash(text: str) -> str:
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"


def _render_block(document: Mapping[str, Any]) -> str:
    """Return JSON in ASCII that cannot end the script element or start a comment in it."""
    text = json.dumps(document, separators=(",", ":"), ensure_ascii=True)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


@cache
def _read_static(name: str) -> str:
    return (files("generator.web") / "static" / name).read_text(encoding="utf-8")
