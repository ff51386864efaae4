"""Renders the page: one HTML file that contains its document, its scripts and its styles.

The Content-Security-Policy allows the one script and the one style of the file by their hashes,
and no address at all. The document is a data block, which a browser never runs.
"""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Mapping
from functools import cache
from hashlib import sha256
from importlib.resources import files
from string import Template
from typing import Any, Final

_SCRIPTS: Final = ("layout.js", "picture.js", "findings.js", "page.js")
"""One module in the page, in this order."""


def render_page(document: Mapping[str, Any]) -> str:
    """Return the HTML file of a document that `build_page_document` built."""
    script = "\n".join(map(_read_static, _SCRIPTS))
    style = _read_static("page.css")
    return Template(_read_static("page.html")).substitute(
        policy=build_policy(script, style),
        style=style,
        script=script,
        document=_render_block(document),
    )


def build_policy(script: str, style: str) -> str:
    """Return a Content-Security-Policy that allows this script and this style, and nothing else."""
    return "; ".join(
        (
            "default-src 'none'",
            f"script-src {_hash(script)}",
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
