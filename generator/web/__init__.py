"""The fabric as a page for a browser: one file that opens from disk, or served live, read-only.

- page_document: the tree, the links and the findings as the compact JSON that the page reads. Pure
- job_view: running gangs, free capacity, and what gangs of each size would get. Pure
- change_view: the held plan, also as a diagram, and the history, as changes of the tree. Pure
- page: the HTML with its scripts, its styles and its Content-Security-Policy
- live_document: the document of a running server, built when a reader asks
- login: who may read, by a token in a header or a cookie
- site: the addresses of the page, and what they answer
- http_server: the port of the page, with its limits, deadlines and certificates
- static: the scripts and the styles of the page, and in `vendor` the libraries that they use
"""

from generator.web.page import render_page
from generator.web.page_document import build_page_document

__all__ = ["build_page_document", "render_page"]
