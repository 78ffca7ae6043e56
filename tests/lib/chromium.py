"""Chromium without a screen, asked over its DevTools protocol by a pipe: JSON that ends with a NUL."""

import fcntl
import json
import os
import pathlib
import shutil
import subprocess

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


class Page:
    """A page of its own Chromium. Use it with `with`."""

    def __init__(self, url: str, profile: pathlib.Path, *options: str):
        ours, theirs = os.pipe(), os.pipe()  # what it reads, what it writes
        # It reads from its descriptor 3 and writes to 4.
        reads, writes = (fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 10) for fd in (ours[0], theirs[1]))

        def give_both() -> None:
            os.dup2(reads, 3)
            os.dup2(writes, 4)

        self.browser = subprocess.Popen(
            [CHROMIUM, "--headless=new", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe",
             f"--user-data-dir={profile}", *options, "about:blank"],
            pass_fds=(3, 4), preexec_fn=give_both, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        for fd in (ours[0], theirs[1], reads, writes):
            os.close(fd)
        self.to, self.back = os.fdopen(ours[1], "wb", 0), os.fdopen(theirs[0], "rb")
        self.rest, self.number, self.session = b"", 0, None
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        self.ask("Page.enable")
        self.ask("Page.navigate", url=url)
        self.wait_for("Page.loadEventFired")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.to.close()
        self.back.close()
        self.browser.terminate()
        self.browser.wait(30)

    def answer(self) -> dict:
        while b"\0" not in self.rest:
            more = os.read(self.back.fileno(), 1 << 20)
            if not more:
                raise EOFError("Chromium ended")
            self.rest += more
        text, _, self.rest = self.rest.partition(b"\0")
        return json.loads(text)

    def wait_for(self, method: str) -> None:
        while self.answer().get("method") != method:
            pass

    def ask(self, method: str, **params: object) -> dict:
        self.number += 1
        command = {"id": self.number, "method": method, "params": params}
        if self.session:
            command["sessionId"] = self.session
        self.to.write(json.dumps(command).encode() + b"\0")
        while (answer := self.answer()).get("id") != self.number:
            pass
        assert "error" not in answer, (method, answer["error"])
        return answer["result"]

    def value(self, expression: str) -> object:
        """Returns what a JavaScript expression, or a promise, comes to."""
        done = self.ask("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in done, done["exceptionDetails"]
        return done["result"].get("value")
