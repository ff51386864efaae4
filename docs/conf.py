"""The site and the man pages: `make docs` builds both with Sphinx from the pages in docs/."""

import sys
from importlib.metadata import version as version_of
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "reference"))

project = "Toponaut"
author = "The Toponaut authors"
version = release = version_of("toponaut")
extensions = ["myst_parser", "sphinx_click", "field_tables", "metric_tables"]
root_doc = "index"
exclude_patterns = ["images/*.md"]
nitpicky = True

myst_heading_anchors = 4
myst_enable_extensions = ["colon_fence"]

html_theme = "furo"
html_title = f"Toponaut {version}"
html_copy_source = False
html_show_sphinx = False

man_pages = [
    (
        "reference/commands",
        "toponaut",
        "discover how a GPU cluster is wired, and place gangs of pods",
        [author],
        1,
    ),
    (
        "reference/agent-commands",
        "toponaut-agent",
        "report the network neighbors of a node",
        [author],
        1,
    ),
]
