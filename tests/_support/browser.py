"""Debian's Chromium without a window, driven over a pipe: pages, their errors and their requests."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
from pathlib import Path
from select import select
from time import monotonic
from typing import Any

__all__ = ["Browser", "find_chromium"]


def find_chromium() -> str | None:
    """Return the command of an installed Chromium, or None."""
    return next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


class Browser:
    """One tab. ``errors`` and ``requests`` are those of the page that was opened last."""

    def __init__(self, command: str, profile: Path, seconds: float = 120.0) -> None:
        self._seconds, self._number, self._rest = seconds, 0, b""
        to_browser, self._write = os.pipe()
        self._read, from_browser = os.pipe()

        def descriptors() -> None:
            # Chromium reads commands from 3 and answers on 4. They may be each other's numbers: copy first.
            ours = os.dup(to_browser), os.dup(from_browser)
            os.dup2(ours[0], 3)
            os.dup2(ours[1], 4)

        self._process = subprocess.Popen(
            [
                command, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
                "--remote-debugging-pipe", f"--user-data-dir={profile}", "--no-first-run", "about:blank",
            ],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            preexec_fn=descriptors, close_fds=False,
        )  # fmt: skip
        os.close(to_browser)
        os.close(from_browser)
        self.errors: list[str] = []
        self.requests: list[str] = []
        self._loaded = False
        self._session: str | None = None
        target = self.send("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.send(f"{domain}.enable")

    def send(self, method: str, **params: Any) -> dict[str, Any]:
        """Give a command of the DevTools protocol and return its result."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": params}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        while True:
            found = self._receive()
            if found.get("id") == self._number:
                if "error" in found:
                    raise RuntimeError(f"{method}: {found['error']}")
                return found["result"]

    def open(self, url: str, width: int = 1280, height: int = 900) -> None:
        """Load a page at a width, and wait until it and its formulas are there."""
        self.send(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1,
            mobile=width < 600,
        )  # fmt: skip
        self.errors, self.requests, self._loaded = [], [], False
        self.send("Page.navigate", url=url)
        while not self._loaded:
            self._receive()
        self.evaluate("window.MathJax && MathJax.startup && MathJax.startup.promise.then(() => 1)")

    def evaluate(self, expression: str) -> Any:
        """Return the value of an expression in the page; promises are waited for."""
        found = self.send("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in found:
            raise RuntimeError(found["exceptionDetails"]["text"])
        return found["result"].get("value")

    def picture(self, file: Path, whole: bool = False) -> None:
        """Write what the page looks like."""
        found = self.send("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        file.write_bytes(base64.b64decode(found["data"]))

    def close(self) -> None:
        """End the browser."""
        self._process.terminate()
        self._process.wait(timeout=30)
        os.close(self._write)
        os.close(self._read)

    def _receive(self) -> dict[str, Any]:
        end = monotonic() + self._seconds
        while b"\0" not in self._rest:
            ready, _, _ = select([self._read], [], [], max(0.0, end - monotonic()))
            if not ready:
                raise TimeoutError(f"the browser did not answer in {self._seconds:g} s")
            part = os.read(self._read, 1 << 20)
            if not part:
                raise EOFError("the browser has ended")
            self._rest += part
        text, self._rest = self._rest.split(b"\0", 1)
        message = json.loads(text)
        self._note(message.get("method"), message.get("params", {}))
        return message

    def _note(self, event: str | None, params: dict[str, Any]) -> None:
        if event == "Page.loadEventFired":
            self._loaded = True
        elif event == "Network.requestWillBeSent":
            self.requests.append(params["request"]["url"])
        elif event == "Network.loadingFailed" and not params.get("canceled"):
            self.errors.append(f"not loaded: {params['errorText']}")
        elif event == "Runtime.exceptionThrown":
            self.errors.append(params["exceptionDetails"]["text"])
        elif event == "Log.entryAdded" and params["entry"]["level"] in ("error", "warning"):
            self.errors.append(params["entry"]["text"])
        elif event == "Runtime.consoleAPICalled" and params["type"] in ("error", "warning"):
            self.errors.append(" ".join(str(part.get("value")) for part in params["args"]))
