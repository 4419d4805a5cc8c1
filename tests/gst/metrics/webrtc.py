#!/usr/bin/env python3
"""clwatch by WebRTC: a peer of GStreamer receives a camera's pictures; offers that are refused, viewers that leave, hang or are too many.

    webrtc.py      GST_PLUGIN_PATH as in the environment; exit status 77 without the plug-ins of WebRTC or their bindings for Python
"""
import http.client
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time

from metrics import check, free_port

PATIENCE = 120
ELEMENTS = ("clwatch", "webrtcbin", "nicesrc", "dtlssrtpenc", "vp8enc")
BINDINGS = "import gi\nfor name in ('Gst', 'GstSdp', 'GstWebRTC'): gi.require_version(name, '1.0')\nfrom gi.repository import Gst, GstSdp, GstWebRTC"
MOST = 16
# Of a viewer that never comes.
OFFER = "\r\n".join([
    "v=0", "o=- 1 1 IN IP4 127.0.0.1", "s=-", "t=0 0", "a=group:BUNDLE 0", "m=video 9 UDP/TLS/RTP/SAVPF 97 96", "c=IN IP4 0.0.0.0",
    "a=ice-ufrag:abcd", "a=ice-pwd:0123456789012345678901234", "a=fingerprint:sha-256 " + ":".join(["AB"] * 32), "a=setup:actpass", "a=mid:0",
    "a=recvonly", "a=rtcp-mux", "a=rtpmap:97 H264/90000", "a=rtpmap:96 VP8/90000", "a=candidate:1 1 UDP 2015364095 192.0.2.1 9999 typ host", ""])
PEER = BINDINGS + """
import http.client, sys
Gst.init(None)
SDP = GstWebRTC.WebRTCSDPType
pipeline, port = Gst.Pipeline(), int(sys.argv[1])
peer = Gst.ElementFactory.make("webrtcbin")
peer.set_property("bundle-policy", GstWebRTC.WebRTCBundlePolicy.MAX_BUNDLE)
pipeline.add(peer)
ice = peer.get_property("ice-agent")  # kept: Python has taken webrtcbin's own reference
ice.emit("add-local-ip-address", "127.0.0.1")  # else libnice sends by another network than the one that clwatch listens to

def decode(_, pad):
    decoder = Gst.parse_bin_from_description("rtpvp8depay ! vp8dec ! fakesink name=sink signal-handoffs=true sync=false", True)
    sink = decoder.get_by_name("sink")
    def show(_, buffer, pad):
        size = pad.get_current_caps().get_structure(0)
        print(size.get_int("width").value, size.get_int("height").value, hash(buffer.extract_dup(0, buffer.get_size())), flush=True)
    sink.connect("handoff", show)
    pipeline.add(decoder)
    decoder.sync_state_with_parent()
    pad.link(decoder.sinkpads[0])

def ask(signal, *arguments):
    promise = Gst.Promise.new()
    peer.emit(signal, *arguments, promise)
    promise.wait()
    reply = promise.get_reply()  # owns the offer
    return reply.get_value("offer").sdp.as_text() if signal == "create-offer" else None

def description(kind, text):
    return GstWebRTC.WebRTCSessionDescription.new(kind, GstSdp.SDPMessage.new_from_text(text)[1])

peer.connect("pad-added", decode)
peer.emit("add-transceiver", GstWebRTC.WebRTCRTPTransceiverDirection.RECVONLY,
          Gst.Caps.from_string("application/x-rtp,media=video,encoding-name=VP8,clock-rate=90000,payload=98"))
pipeline.set_state(Gst.State.PLAYING)
offer = ask("create-offer", None)
ask("set-local-description", description(SDP.OFFER, offer))
connection = http.client.HTTPConnection("localhost", port)
connection.request("POST", "/webrtc/0", offer, {"Content-Type": "application/sdp"})
reply = connection.getresponse()
ask("set-remote-description", description(SDP.ANSWER, reply.read().decode()))
message = pipeline.get_bus().timed_pop_filtered(Gst.CLOCK_TIME_NONE, Gst.MessageType.ERROR)
sys.exit(message.parse_error()[0].message)
"""


def python_with_bindings():
    for python in (sys.executable, os.environ.get("CLINFER_PYTHON"), shutil.which("python3"), "/usr/bin/python3"):
        if python and subprocess.run([python, "-c", BINDINGS], capture_output=True, check=False).returncode == 0:
            return python
    return None


def ask(port, method, path, content=None, kind="application/sdp"):
    """Status, headers and text of a reply."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        connection.request(method, path, content, {"Content-Type": kind} if content is not None else {})
        reply = connection.getresponse()
        return reply.status, reply.headers, reply.read().decode()
    finally:
        connection.close()


def state(port):
    return json.loads(ask(port, "GET", "/state.json")[2])


def wait_until(what, true, patience=PATIENCE):
    end = time.monotonic() + patience
    while not true():
        check(what + " in time", time.monotonic() < end)
        time.sleep(0.2)


def plays(port):
    try:
        return [camera["frames"] > 0 for camera in state(port)["cameras"]] == [True, True]
    except OSError:
        return False


def threads(pid):
    return len(list(pathlib.Path(f"/proc/{pid}/task").iterdir()))


def check_offers(port):
    status, headers, answer = ask(port, "POST", "/webrtc/0", OFFER)
    check(f"an answer: {status} {answer}", status == 201 and headers["Content-Type"] == "application/sdp" and "a=sendonly" in answer)
    check(f"VP8 by the offer's number: {answer}", "a=rtpmap:96 VP8/90000" in answer and "H264" not in answer)
    addresses = [line.split()[4] for line in answer.splitlines() if line.startswith("a=candidate:")]
    check(f"addresses of this machine only: {addresses}", addresses and set(addresses) == {"127.0.0.1"})
    viewer = headers["Location"]
    check("it is counted", state(port)["viewers"] == 1)
    check("it ends", ask(port, "DELETE", viewer)[0] == 200 and state(port)["viewers"] == 0)
    check("once", ask(port, "DELETE", viewer)[0] == 404)
    for path, content, kind, expected in (
            ("/webrtc/0", OFFER, "text/plain", 415), ("/webrtc/0", OFFER + "a=x:" + "y" * 65536, "application/sdp", 413),
            ("/webrtc/2", OFFER, "application/sdp", 404), ("/webrtc/0x", OFFER, "application/sdp", 404), ("/", OFFER, "application/sdp", 404),
            ("/webrtc/1", OFFER, "application/sdp", 404),  # webrtc=false
            ("/webrtc/0", "", "application/sdp", 400), ("/webrtc/0", "hello", "application/sdp", 400),
            ("/webrtc/0", OFFER.replace("VP8", "VP9"), "application/sdp", 400), ("/webrtc/0", OFFER.replace("m=video", "m=audio"), "application/sdp", 400),
            ("/webrtc/0", OFFER + OFFER[OFFER.index("m="):], "application/sdp", 400),
            ("/webrtc/0", OFFER.replace("a=fingerprint", "a=f"), "application/sdp", 400),
            ("/webrtc/0", OFFER.replace("a=ice-", "a=i-"), "application/sdp", 400)):
        status, _, text = ask(port, "POST", path, content, kind)
        check(f"{status} {text} instead of {expected} for {path} {content[-300:]!r}", status == expected and text.count("\n") == 1)
    # As a page of another origin would ask whether it may send one.
    check("other origins are not let in", ask(port, "OPTIONS", "/webrtc/0")[0] == 405)
    wait_until("none of them stays", lambda: state(port)["viewers"] == 0)


def check_bound(port):
    for number in range(MOST):
        status, _, text = ask(port, "POST", "/webrtc/0", OFFER)
        check(f"viewer {number}: {status} {text}", status == 201)
    status, _, text = ask(port, "POST", "/webrtc/0", OFFER)
    check(f"one too many: {status} {text}", status == 503 and f"All {MOST} connections" in text)
    wait_until("those that do not come are forgotten", lambda: state(port)["viewers"] == 0, 30)


def start_peer(python, port):
    return subprocess.Popen([python, "-c", PEER, str(port)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def pictures(peer, count):
    """The next pictures that a peer decodes: width, height, and a number that their bytes give."""
    found = []
    while len(found) < count:
        line = peer.stdout.readline()
        check(f"pictures go on: {'' if line else peer.stderr.read()}", line)
        found.append(line.split())
    return found


def check_peer(python, port, pid):
    before = threads(pid)
    peer = start_peer(python, port)
    hung = start_peer(python, port)
    try:
        for one in (peer, hung):
            found = pictures(one, 30)
            check(f"their size: {found[0]}", {tuple(picture[:2]) for picture in found} == {("320", "240")})
            check("they change", len({picture[2] for picture in found}) > 10)
        check("both are counted", state(port)["viewers"] == 2)
        hung.send_signal(signal.SIGSTOP)
        peer.kill()
        peer.communicate()
        begin, frames = time.monotonic(), state(port)["cameras"][0]["frames"]
        wait_until("viewers that have left or hang are forgotten", lambda: state(port)["viewers"] == 0, 60)
        rate = (state(port)["cameras"][0]["frames"] - frames) / (time.monotonic() - begin)
        check(f"frames went on meanwhile, at {rate:.1f} of 15 a second", rate > 10)
        wait_until(f"what they took is given back: {threads(pid)} threads after {before}", lambda: threads(pid) <= before, 30)
    finally:
        for one in (peer, hung):
            one.kill()
            one.communicate()


def main():
    missing = [name for name in ELEMENTS if subprocess.run(["gst-inspect-1.0", name], capture_output=True, check=False).returncode != 0]
    python = python_with_bindings()
    if missing or python is None:
        print(f"SKIPPED, GStreamer has no {missing[0]}" if missing else "SKIPPED, no Python here has GStreamer's bindings for WebRTC",
              "(pipelines/install test)")
        sys.exit(77)
    port = free_port()
    camera = "videotestsrc is-live=true pattern=ball name={} ! video/x-raw,width=320,height=240,framerate=15/1 ! jpegenc ! clwatch port={} {}"
    running = subprocess.Popen(["gst-launch-1.0", "-q", *camera.format("a", port, "").split(), *camera.format("b", port, "webrtc=false").split()])
    try:
        wait_until("both cameras", lambda: plays(port))
        first, second = state(port)["cameras"]
        check(f"what is offered: {first}, {second}", first["webrtc"] == "/webrtc/0" and first["only_mjpeg"] == ""
              and "webrtc" not in second and second["only_mjpeg"] == "webrtc=false")
        check_offers(port)
        check_bound(port)
        check_peer(python, port, running.pid)
        peer = start_peer(python, port)  # is there when the pipeline ends
        pictures(peer, 5)
        running.send_signal(signal.SIGINT)
        check("the pipeline ends", running.wait(60) == 0)
        peer.kill()
        peer.communicate()
    finally:
        running.kill()
        running.wait()
    print("ok")


if __name__ == "__main__":
    main()
