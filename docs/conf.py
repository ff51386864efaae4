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


def show_examples(_app, _ctx, lines):  # noqa: ANN001, ANN201 - sphinx's
    """Show the examples below the options of a command as commands: they hold `*` and quotes."""
    examples = [line.removeprefix("|").strip() for line in lines if line.startswith("|  ")]
    if examples:
        shown = (f"   {example}" for example in examples)
        lines[:] = [".. rubric:: Examples", "", ".. code-block:: shell", "", *shown, ""]


def setup(app):  # noqa: ANN001, ANN201 - sphinx's
    """Connect what changes the pages of commands."""
    app.connect("sphinx-click-process-epilog", show_examples)
