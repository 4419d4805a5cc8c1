#!/usr/bin/env python3
"""clcamera silent-after: RTSP cameras that stay connected and answer, but send no pictures, at first or after a while, are begun anew; a camera whose
pictures wait for the rest of the pipeline is not.

    silent_camera.py      GST_PLUGIN_PATH as in the environment; exit status 77 without GStreamer's RTSP elements
"""
import os
import pathlib
import re
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "metrics"))
from metrics import check  # noqa: E402

PATIENCE = 120
PICTURE = 64 * 48


class Camera:
    """An RTSP server with one stream of JPEG over the connection itself (interleaved). `silent`: of each session, the seconds after which it sends nothing
    more; the last one counts for all later sessions. None: it never stops."""

    def __init__(self, *silent):
        self.silent, self.sessions = silent, []
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.uri = f"rtspt://127.0.0.1:{self.socket.getsockname()[1]}/camera"
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                connection, _ = self.socket.accept()
            except OSError:
                return
            threading.Thread(target=self.serve, args=(connection,), daemon=True).start()

    def serve(self, connection):
        lock, over = threading.Lock(), threading.Event()
        with connection, connection.makefile("rb") as source:
            try:
                while (first := source.read(1)):
                    if first == b"$":  # a report of the client's
                        _, length = struct.unpack(">BH", source.read(3))
                        source.read(length)
                        continue
                    method = (first + source.readline()).split()[0].decode()
                    headers = {}
                    while (line := source.readline().strip()):
                        name, value = line.decode().split(":", 1)
                        headers[name.lower()] = value.strip()
                    body, more = b"", ["Session: 1;timeout=60"] if method != "OPTIONS" else ["Public: OPTIONS, DESCRIBE, SETUP, PLAY, GET_PARAMETER, TEARDOWN"]
                    if method == "DESCRIBE":
                        body = (b"v=0\r\no=- 0 0 IN IP4 127.0.0.1\r\ns=camera\r\nc=IN IP4 0.0.0.0\r\nt=0 0\r\nm=video 0 RTP/AVP 26\r\n"
                                b"a=rtpmap:26 JPEG/90000\r\na=control:stream=0\r\n")
                        more += ["Content-Type: application/sdp", f"Content-Base: {self.uri}/", f"Content-Length: {len(body)}"]
                    if method == "SETUP":
                        more.append("Transport: RTP/AVP/TCP;unicast;interleaved=0-1")
                    text = "\r\n".join(["RTSP/1.0 200 OK", f"CSeq: {headers['cseq']}", *more, "", ""]).encode()
                    with lock:
                        connection.sendall(text + body)
                    if method == "PLAY":
                        self.sessions.append(time.monotonic())
                        seconds = self.silent[min(len(self.sessions), len(self.silent)) - 1]
                        threading.Thread(target=self.send, args=(connection, lock, over, seconds), daemon=True).start()
                    if method == "TEARDOWN":
                        break
            except (OSError, ValueError, struct.error, IndexError):
                pass
            finally:
                over.set()

    @staticmethod
    def send(connection, lock, over, seconds):
        end = None if seconds is None else time.monotonic() + seconds
        words = ("videotestsrc is-live=true ! video/x-raw,format=I420,width=64,height=48,framerate=15/1 ! jpegenc ! rtpjpegpay ! rtpstreampay ! fdsink").split()
        with subprocess.Popen(["gst-launch-1.0", "-q", *words], stdout=subprocess.PIPE) as pictures:
            try:
                while not over.is_set() and (end is None or time.monotonic() < end):
                    packet = pictures.stdout.read(struct.unpack(">H", pictures.stdout.read(2))[0])
                    with lock:
                        connection.sendall(b"$\0" + struct.pack(">H", len(packet)) + packet)
            except (OSError, struct.error):
                pass
            pictures.kill()

    def close(self):
        self.socket.close()


class Pipeline:
    """`rest`: what takes the pictures, PICTURE bytes each, on their way to a file."""

    def __init__(self, folder, camera, properties, rest="identity"):
        self.file = pathlib.Path(folder) / "pictures"
        self.file.unlink(missing_ok=True)
        words = (f"clcamera uri={camera.uri} retry-after=100 {properties} ! videoconvert ! video/x-raw,format=GRAY8,width=64,height=48 ! {rest} ! "
                 f"filesink buffer-mode=unbuffered async=false location={self.file}").split()
        self.log = tempfile.TemporaryFile("w+", encoding="utf-8")
        self.process = subprocess.Popen(["gst-launch-1.0", *words], stdout=self.log, stderr=subprocess.STDOUT)

    def pictures(self):
        return self.file.stat().st_size // PICTURE if self.file.exists() else 0

    def said(self):
        self.log.seek(0)
        return self.log.read()

    def wait_until(self, what, true):
        end = time.monotonic() + PATIENCE
        while not true():
            check(f"{what} in time: {self.said()}", time.monotonic() < end and self.process.poll() is None)
            time.sleep(0.1)

    def stop(self):
        self.process.send_signal(signal.SIGINT)
        self.process.wait(60)
        return re.findall(r"failed and is tried again in [\d.]+ s: (.*)", self.said())


def check_silent(folder, name, *silent):
    camera = Camera(*silent)
    pipeline = Pipeline(folder, camera, "silent-after=1500")
    try:
        pipeline.wait_until(f"{name}: it is begun anew", lambda: len(camera.sessions) > 1)
        took = camera.sessions[1] - camera.sessions[0]
        before = pipeline.pictures()
        pipeline.wait_until(f"{name}: pictures come again", lambda: pipeline.pictures() > before + 10)
    finally:
        failures = pipeline.stop()
        camera.close()
    check(f"{name}: it is said once: {failures}", len(failures) == 1 and "sends nothing" in failures[0])
    print(f"ok   {name}: the second session came {took:.1f} s after the first")


def check_not_silent(folder, name, properties, rest, seconds, *silent):
    camera = Camera(*silent)
    pipeline = Pipeline(folder, camera, properties, rest)
    try:
        pipeline.wait_until(f"{name}: a picture", lambda: pipeline.pictures() > 0)
        time.sleep(seconds)
        check(f"{name}: one session", len(camera.sessions) == 1)
    finally:
        failures = pipeline.stop()
        camera.close()
    check(f"{name}: no failure: {failures}", not failures)
    print(f"ok   {name}")


def main():
    for element in ("rtspsrc", "rtpjpegdepay", "rtpstreampay"):
        if subprocess.run(["gst-inspect-1.0", element], capture_output=True, check=False).returncode != 0:
            print(f"SKIPPED, there is no {element}")
            sys.exit(77)
    os.environ.pop("GST_DEBUG", None)
    with tempfile.TemporaryDirectory() as folder:
        check_silent(folder, "a camera that freezes", 2, None)
        check_silent(folder, "a camera that never sends", 0, None)
        check_not_silent(folder, "a pipeline that takes its time", "silent-after=1000", "identity sleep-time=2500000", 8, None)
        check_not_silent(folder, "without a bound", "silent-after=0", "identity", 5, 1)
    print("ok")


if __name__ == "__main__":
    main()
