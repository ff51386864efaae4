"""Draw each view of the scene for the docs: `make screenshots`."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Final

from tests.lab.page.browser import chromium
from tests.lab.page.scene import PageScene
from tests.repository import ROOT

FOLDER: Final = ROOT / "docs" / "images"
VIEWS: Final = {
    "fabric": "view=fabric",
    "place": "view=fabric&device={swapped}",
    "findings": "view=findings",
    "jobs": "view=jobs&size=64&gang=ml/llm-pretrain",
    "changes": "view=changes",
}
"""By picture, the part of the page's address after `#`."""


def draw_views(folder: Path) -> None:
    """Write one picture per view."""
    with tempfile.TemporaryDirectory() as root:
        scene = PageScene(Path(root) / "scene")
        with scene.serve() as address, chromium(Path(root)) as browser:
            for view, rest in VIEWS.items():
                browser.open(f"{address}#{rest.format(swapped=scene.swapped[0])}")
                (folder / f"page-{view}.png").write_bytes(browser.take_picture())


if __name__ == "__main__":
    draw_views(FOLDER)
