"""The fabric as a page for a browser: one file, which opens from disk and needs no network. Pure.

- page_document: the tree, the links and the findings as the compact JSON that the page reads
- page: the HTML file with its scripts, its styles and its Content-Security-Policy
- static: the scripts and the styles of the page, written by hand, without dependencies

Imports `topology` only.
"""

from generator.web.page import render_page
from generator.web.page_document import build_page_document

__all__ = ["build_page_document", "render_page"]
