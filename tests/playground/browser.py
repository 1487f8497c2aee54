# SPDX-FileCopyrightText: The scalewise authors
# SPDX-License-Identifier: MIT
"""A page in Chromium without a window, by the DevTools protocol over a pair of pipes."""

import functools
import json
import os
import shutil
import subprocess
import tempfile


@functools.cache
def chromium():
    """The program; None where there is none that runs, such as a script that only names a package."""
    for program in filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))):
        if subprocess.run([program, "--version"], capture_output=True, check=False).returncode == 0:
            return program
    return None


class Browser:
    """One page. `errors` has what scripts threw or logged as errors, `requests` every address that was loaded."""

    def __init__(self):
        self.errors, self.requests, self._last = [], [], 0
        self._profile = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        command_read, self._write = os.pipe()
        self._read, answer_write = os.pipe()
        # Chromium reads commands from file 3 and writes to file 4.
        script = f'exec "$@" 3<&{command_read} 4>&{answer_write}'
        self._process = subprocess.Popen(
            ["bash", "-c", script, "bash", chromium(), "--headless=new", "--no-sandbox", "--disable-gpu",
             "--disable-dev-shm-usage", "--remote-debugging-pipe", "--no-first-run", "--disable-extensions",
             "--disable-background-networking", "--disable-component-update", "--hide-scrollbars",
             f"--user-data-dir={self._profile.name}", "about:blank"],
            pass_fds=(command_read, answer_write), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL, env={**os.environ, "HOME": self._profile.name})
        os.close(command_read)
        os.close(answer_write)
        self._input = os.fdopen(self._read, "rb")
        self._session = None
        pages = [t for t in self._call("Target.getTargets")["targetInfos"] if t["type"] == "page"]
        target = pages[0]["targetId"] if pages else self._call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self._call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self._call(f"{domain}.enable")

    def close(self):
        try:
            self._call("Browser.close")
        except (EOFError, OSError):
            pass
        try:
            self._process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        os.close(self._write)
        self._input.close()
        self._profile.cleanup()

    def _message(self):
        text = bytearray()
        while (byte := self._input.read1(65536)):
            text += byte
            if text.endswith(b"\0"):
                return text[:-1].split(b"\0")
        raise EOFError("the browser ended")

    def _note(self, message):
        method, p = message.get("method"), message.get("params", {})
        if method == "Runtime.exceptionThrown":
            details = p["exceptionDetails"]
            self.errors.append(details.get("exception", {}).get("description") or details["text"])
        elif method == "Log.entryAdded" and p["entry"]["level"] == "error":
            self.errors.append(p["entry"]["text"])
        elif method == "Runtime.consoleAPICalled" and p["type"] in ("error", "assert"):
            self.errors.append(str([a.get("value", a.get("description")) for a in p["args"]]))
        elif method == "Network.requestWillBeSent":
            self.requests.append(p["request"]["url"][:200])

    def _call(self, method, **parameters):
        self._last += 1
        command = {"id": self._last, "method": method, "params": parameters}
        if self._session and not method.startswith(("Browser.", "Target.")):
            command["sessionId"] = self._session
        os.write(self._write, json.dumps(command).encode() + b"\0")
        while True:
            found = None
            for text in self._message():
                message = json.loads(text)
                self._note(message)
                if message.get("id") == self._last:
                    found = message
            if found:
                if "error" in found:
                    raise RuntimeError(f"{method}: {found['error']['message']}")
                return found["result"]

    def evaluate(self, expression):
        """The value of an expression; of a promise, what it becomes."""
        result = self._call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in result:
            raise RuntimeError(result["exceptionDetails"].get("exception", {}).get("description", "exception"))
        return result["result"].get("value")

    def open(self, address, first="", ready="true"):
        """Returns when the page says that it is ready, or "false". `first`: a script that runs before its own."""
        self._call("Page.navigate", url="about:blank")
        script = self._call("Page.addScriptToEvaluateOnNewDocument", source=first)["identifier"]
        self._call("Page.navigate", url=address)
        self.evaluate("""new Promise((done, fail) => {
            const start = Date.now();
            (function look() {
              if (document.documentElement?.dataset.ready === "STATE") done(true);
              else if (Date.now() - start > 20000) fail(new Error("not ready: " + document.body?.innerText));
              else setTimeout(look, 20);
            })(); })""".replace("STATE", ready))
        self._call("Page.removeScriptToEvaluateOnNewDocument", identifier=script)

    def resize(self, width, height=900, dark=False):
        self._call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1,
                   mobile=width < 600)
        self._call("Emulation.setEmulatedMedia",
                   features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])

    def press(self, key, **more):
        for kind in ("keyDown", "keyUp"):
            self._call("Input.dispatchKeyEvent", type=kind, key=key, **more)
