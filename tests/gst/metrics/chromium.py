"""A page in headless Chromium, by its debugging protocol over a pipe: text of the page, and screenshots."""
import base64
import json
import os
import select
import shutil
import subprocess
import tempfile
import time


def program():
    """The browser's path; None without."""
    return shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


class Page:
    """`size`: width and height in CSS pixels. `phone`: with touch and a phone's width."""

    def __init__(self, url, size, phone=False):
        self.folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        to_read, self.to = os.pipe()
        self.source, from_write = os.pipe()

        def in_child():
            os.dup2(to_read, 3, inheritable=True)
            os.dup2(from_write, 4, inheritable=True)

        # High numbers, so that neither is 3 or 4 already.
        to_read, from_write = (self.high(fd) for fd in (to_read, from_write))
        self.browser = subprocess.Popen(
            [program(), "--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--no-first-run", "--disable-background-networking",
             f"--user-data-dir={self.folder.name}", "--remote-debugging-pipe", "about:blank"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            close_fds=False, preexec_fn=in_child)
        os.close(to_read)
        os.close(from_write)
        self.number, self.rest, self.session, self.problems = 0, b"", None, []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        self.call("Runtime.enable")
        self.call("Page.enable")
        self.call("Emulation.setDeviceMetricsOverride", width=size[0], height=size[1], deviceScaleFactor=2 if phone else 1, mobile=phone)
        self.call("Page.navigate", url=url)

    @staticmethod
    def high(fd):
        import fcntl
        number = fcntl.fcntl(fd, fcntl.F_DUPFD, 50)
        os.close(fd)
        return number

    def call(self, method, patience=120, **parameters):
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.to, json.dumps(message).encode() + b"\0")
        end = time.monotonic() + patience
        while time.monotonic() < end:
            while b"\0" in self.rest:
                text, self.rest = self.rest.split(b"\0", 1)
                answer = json.loads(text)
                if answer.get("method") == "Runtime.exceptionThrown":
                    self.problems.append(json.dumps(answer["params"]["exceptionDetails"])[:500])
                if answer.get("id") == self.number:
                    if "error" in answer:
                        raise RuntimeError(f"{method}: {answer['error']}")
                    return answer["result"]
            if select.select([self.source], [], [], 1)[0]:
                self.rest += os.read(self.source, 1 << 20)
            elif self.browser.poll() is not None:
                raise RuntimeError(f"the browser ended with {self.browser.returncode}")
        raise RuntimeError(f"{method}: no answer within {patience} s")

    def evaluate(self, expression):
        return self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)["result"].get("value")

    def wait_for(self, expression, patience=120):
        end = time.monotonic() + patience
        while time.monotonic() < end:
            if self.evaluate(expression):
                return True
            time.sleep(0.3)
        return False

    def screenshot(self, path, whole=False):
        data = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)["data"]
        with open(path, "wb") as file:
            file.write(base64.b64decode(data))

    def close(self):
        self.browser.kill()
        self.browser.wait()
        os.close(self.to)
        os.close(self.source)
        self.folder.cleanup()
