#!/usr/bin/env python3
"""A group of cameras without Ray: one camera freezes, one ends, the others go on; the file of cameras changes; SIGTERM drains.

    group.py GROUP.PY      gst-launch's elements alone; exit status 77 without GStreamer's bindings
"""
import pathlib
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

from site_of_nodes import check, needs, wait_until

WIDTH, HEIGHT = 64, 48


class FrozenCamera:
    """Sends 40 frames to whoever connects, and then nothing, with the connection open."""

    def __init__(self):
        self.server = socket.create_server(("127.0.0.1", 0))
        self.port = self.server.getsockname()[1]
        self.connections = []
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            try:
                connection, _ = self.server.accept()
                self.connections.append(connection)
                connection.sendall(bytes(WIDTH * HEIGHT) * 40)
            except OSError:
                if self.server.fileno() < 0:
                    return


def main():
    needs(ray=False)
    script = sys.argv[1]
    frozen = FrozenCamera()
    with socket.create_server(("127.0.0.1", 0)) as steady, tempfile.TemporaryDirectory() as folder:
        running = threading.Event()

        def serve_steadily():
            while True:
                try:
                    connection, _ = steady.accept()
                    running.set()
                    while True:
                        connection.sendall(bytes(WIDTH * HEIGHT))
                        time.sleep(0.04)
                except OSError:
                    running.clear()
                    if steady.fileno() < 0:
                        return

        threading.Thread(target=serve_steadily, daemon=True).start()
        cameras, launch = pathlib.Path(folder, "cameras.txt"), pathlib.Path(folder, "camera.launch")
        launch.write_text("tcpclientsrc host=127.0.0.1 port={address} name={camera} ! rawvideoparse width=64 height=48 format=gray8 "
                          "! fakesink sync=false")
        cameras.write_text(f"# two cameras\nsteady {steady.getsockname()[1]}\nfrozen {frozen.port}\n")
        log = pathlib.Path(folder, "log")
        group = subprocess.Popen([sys.executable, script, cameras, launch, "--frozen-after", "2", "--worker", "here"], stdout=log.open("w"),
                                 stderr=subprocess.STDOUT)
        try:
            wait_until("the frozen camera is begun again", lambda: len(frozen.connections) >= 3, 120)
            check("the steady camera was begun once", log.read_text().count("steady: frames flow") == 1 and "steady: no" not in log.read_text())
            check("the log says why: " + log.read_text(), "here: frozen: no frame for 2 s; starts again in 1 s" in log.read_text())
            cameras.write_text("steady\n")
            wait_until("a bad file is told", lambda: "cameras.txt:1: a line is a name" in log.read_text(), 60)
            check("the cameras go on", group.poll() is None and running.is_set())
            cameras.write_text(f"frozen {frozen.port}\n")
            wait_until("the steady camera is ended", lambda: not running.is_set(), 60)
            frozen.connections[-1].close()
            frozen.server.close()
            wait_until("a camera that cannot be reached is tried again",
                       lambda: len(re.findall(r"frozen: .*; starts again", log.read_text())) >= 4, 120)
            group.send_signal(signal.SIGTERM)
            check("SIGTERM ends it well", group.wait(timeout=60) == 0)
        finally:
            group.kill()
            group.wait()
        for text, why in (("a b c\n", ":1: a line is"), ("a b\na c\n", ":2: there are two cameras a"), ("a b!c\n", ":1: a line is"), (None, "cannot be read")):
            cameras.unlink(missing_ok=True)
            if text is not None:
                cameras.write_text(text)
            run = subprocess.run([sys.executable, script, cameras, launch], capture_output=True, text=True, timeout=60)
            check(f"{text!r} is refused: {run.stderr}", run.returncode == 1 and why in run.stderr and run.stderr.count("\n") == 1)
        cameras.write_text("a b\n")
        launch.write_text("videotestsrc ! fakesink name=$NOT_THERE")
        run = subprocess.run([sys.executable, script, cameras, launch], capture_output=True, text=True, timeout=60)
        check(f"a missing variable is refused: {run.stderr}", run.returncode == 1 and "$NOT_THERE" in run.stderr and run.stderr.count("\n") == 1)
    print("ok")


if __name__ == "__main__":
    main()
