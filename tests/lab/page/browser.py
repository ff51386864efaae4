"""Chromium without a window, driven by its DevTools protocol."""

from __future__ import annotations

import json
import shutil
import subprocess
from base64 import b64decode
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path
from typing import Any, Final

import websocket

from tests.lab.tools import require_tools
from tests.lab.wait import wait_until

SOON_S: Final = 60.0
FLAGS: Final = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
    "--window-size=1400,800",
)
_SHOWN: Final = "`${location.href}: ${document.documentElement?.innerText}`"
_KEY_CODES: Final = {"Tab": 9, "Enter": 13, " ": 32, "ArrowLeft": 37, "ArrowRight": 39}


class NavigatedError(AssertionError):
    """The tab left for another address while a call ran there."""


class Browser:
    """One tab."""

    def __init__(self, address: str) -> None:
        """Connect to the tab whose DevTools are at this address."""
        self._socket = websocket.create_connection(address, timeout=SOON_S, suppress_origin=True)
        self._num_calls = 0
        self.problems: list[str] = []
        """Errors that the page has logged, violations of its policy included."""
        for domain in ("Page", "Runtime", "Log"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **params: object) -> dict[str, Any]:
        """Call a method of the protocol, and return its result."""
        self._num_calls += 1
        self._socket.send(json.dumps({"id": self._num_calls, "method": method, "params": params}))
        while True:
            message = json.loads(self._socket.recv())
            self._keep_problem(message)
            if message.get("id") == self._num_calls:
                if "navigated" in message.get("error", {}).get("message", ""):
                    raise NavigatedError(message["error"]["message"])
                assert "error" not in message, message
                found: dict[str, Any] = message["result"]
                return found

    def run(self, script: str) -> Any:  # noqa: ANN401 - whatever the script returns
        """Return the value of an expression in the page; a promise is awaited."""
        found = self.call(
            "Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True
        )
        assert "exceptionDetails" not in found, found["exceptionDetails"]
        return found["result"].get("value")

    def open(self, address: str, *, ready: str = "document.body.dataset.readyMs") -> None:
        """Open an address, and wait until an expression is true there."""
        self.leave()
        self.call("Page.navigate", url=address)
        self.wait_for(f"location.href !== 'about:blank' && {ready}")

    def leave(self) -> None:
        """Open an empty page."""
        self.call("Page.navigate", url="about:blank")
        self.wait_for("location.href === 'about:blank'")

    def wait_for(self, expression: str) -> None:
        """Wait until an expression is true in the page; while it loads or leaves, it is not."""
        guarded = (
            f"(() => {{ try {{ return Boolean({expression}); }} catch {{ return false; }} }})()"
        )

        def look() -> object:
            try:
                return not self.run(guarded) and self.run(_SHOWN)
            except NavigatedError as error:
                return error

        wait_until(look, deadline_s=SOON_S, what=expression)

    def press(self, *keys: str) -> None:
        """Press keys, one after the other."""
        for key in keys:
            text = {"Enter": "\r"}.get(key, key if len(key) == 1 else "")
            code = _KEY_CODES.get(key, ord(key.upper()) if len(key) == 1 else 0)
            event = {"key": key, "text": text, "windowsVirtualKeyCode": code}
            self.call("Input.dispatchKeyEvent", type="keyDown", **event)
            self.call("Input.dispatchKeyEvent", type="keyUp", **event)

    def type_text(self, text: str) -> None:
        """Type a text where the focus is."""
        self.call("Input.insertText", text=text)

    def focus_by_tab(self, selector: str) -> None:
        """Press Tab until an element has the focus, as a person without a mouse does."""
        for _ in range(100):
            if self.run(f"document.activeElement.matches({json.dumps(selector)})"):
                return
            self.press("Tab")
        raise AssertionError(f"Tab does not reach {selector}")

    def take_picture(self) -> bytes:
        """Return the tab as PNG."""
        return b64decode(self.call("Page.captureScreenshot", format="png")["data"])

    def set_colors(self, scheme: str) -> None:
        """Prefer light or dark colors."""
        feature = {"name": "prefers-color-scheme", "value": scheme}
        self.call("Emulation.setEmulatedMedia", features=[feature])

    def close(self) -> None:
        self._socket.close()

    def _keep_problem(self, message: dict[str, Any]) -> None:
        params = message.get("params", {})
        if message.get("method") == "Log.entryAdded" and params["entry"]["level"] == "error":
            self.problems.append(f"{params['entry']['text']} {params['entry'].get('url', '')}")
        if message.get("method") == "Runtime.exceptionThrown":
            self.problems.append(json.dumps(params["exceptionDetails"]))


@contextmanager
def chromium(folder: Path, *flags: str) -> Iterator[Browser]:
    """Start Chromium with a profile in a folder, and yield its tab."""
    require_tools("chromium")
    profile = folder / "profile"
    words: Sequence[str] = ("chromium", *FLAGS, *flags, "--remote-debugging-port=0")
    with (folder / "chromium.log").open("wb") as log:
        program = subprocess.Popen(
            [*words, f"--user-data-dir={profile}", "about:blank"], stdout=log, stderr=log
        )
    try:
        port_file = profile / "DevToolsActivePort"
        wait_until(
            lambda: not (port_file.exists() and port_file.read_text().count("\n")),
            deadline_s=SOON_S,
            what="port of Chromium",
        )
        browser = Browser(_find_tab(int(port_file.read_text().split()[0])))
        try:
            yield browser
        finally:
            browser.close()
    finally:
        program.terminate()
        program.wait(SOON_S)
        shutil.rmtree(profile, ignore_errors=True)


def _find_tab(port: int) -> str:
    client = HTTPConnection("127.0.0.1", port, timeout=SOON_S)
    try:
        client.request("PUT", "/json/new?about:blank")
        found = json.loads(client.getresponse().read())
    finally:
        client.close()
    return str(found["webSocketDebuggerUrl"])
