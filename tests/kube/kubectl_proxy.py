"""What `kubectl proxy` does: HTTP on loopback to the API server, with the credentials of a user."""

import http.client
import ssl
from collections.abc import Iterator
from contextlib import closing, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

from tests.lab.api_server import ADMIN, ApiServer

_HOP_BY_HOP = frozenset({"connection", "keep-alive", "transfer-encoding", "content-length"})
_TIMEOUT_S = 30.0


@contextmanager
def proxying(api: ApiServer) -> Iterator[str]:
    """Forward every request to an API server, and yield the address without a slash at its end."""
    tls = ssl.create_default_context(cafile=str(api.ca))

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            connection = http.client.HTTPSConnection(
                "127.0.0.1", api.port, timeout=_TIMEOUT_S, context=tls
            )
            headers = {
                name: value
                for name, value in self.headers.items()
                if name.lower() not in {*_HOP_BY_HOP, "host", "authorization"}
            }
            headers["Authorization"] = f"Bearer {api.tokens[ADMIN]}"
            with closing(connection):
                connection.request(self.command, self.path, body or None, headers)
                answer = connection.getresponse()
                content = answer.read()
            self.send_response_only(answer.status)
            for name, value in answer.getheaders():
                if name.lower() not in _HOP_BY_HOP:
                    self.send_header(name, value)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        do_POST = do_GET  # noqa: N815 - the name that http.server looks for

        def log_message(self, *_: object) -> None:
            """Print nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
