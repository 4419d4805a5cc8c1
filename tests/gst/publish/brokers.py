#!/usr/bin/env python3
"""clpublish against real brokers that are taken away while it publishes: nothing is lost and the order stays.

    brokers.py [--messages 100000] [--only redis,mqtt,kafka] [--kafka-cluster PROGRAM]      gst-launch-1.0 and GST_PLUGIN_PATH as in the environment

Servers: redis-server, mosquitto (pipelines/install brokers), and librdkafka's cluster in memory, read by kcat. One that is not there is
skipped, and said. Redis is killed and started again, mosquitto stopped and started again, the brokers of the cluster go down and up. A
message may arrive twice.
Exit status 77 where no server is there at all.
"""
import argparse
import contextlib
import io
import json
import os
import pathlib
import random
import shutil
import socket
import subprocess
import sys
import tempfile
import time


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def wait_for(port, seconds=60):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        with socket.socket() as s:
            if s.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.05)
    sys.exit(f"nothing listens on port {port}")


class Redis:
    needs = ["redis-server", "redis-cli"]

    def __init__(self, folder):
        self.folder, self.port = folder, free_port()
        self.begin()

    def begin(self):
        self.server = subprocess.Popen(["redis-server", "--port", str(self.port), "--bind", "127.0.0.1", "--dir", self.folder, "--save", "",
                                        "--appendonly", "yes", "--appendfsync", "always"], stdout=subprocess.DEVNULL)
        wait_for(self.port)
        # It listens while it still reads its file, and answers with an error until then.
        for _ in range(600):
            if "PONG" in subprocess.run(["redis-cli", "-p", str(self.port), "PING"], capture_output=True, text=True).stdout:
                return
            time.sleep(0.1)
        sys.exit("redis-server does not answer")

    def interrupt(self, away):
        self.server.kill()
        self.server.wait()
        time.sleep(away)
        self.begin()

    def received(self, topic, enough):
        text = subprocess.run(["redis-cli", "-p", str(self.port), "XRANGE", topic, "-", "+"], capture_output=True, text=True).stdout
        return [line for line in text.splitlines() if line.startswith("{")]

    def end(self):
        self.server.kill()
        self.server.wait()


class Mosquitto:
    needs = ["mosquitto", "mosquitto_sub"]
    topic = "cameras/{source}"

    def __init__(self, folder):
        self.folder, self.port = pathlib.Path(folder), free_port()
        (self.folder / "conf").write_text(f"listener {self.port} 127.0.0.1\nallow_anonymous true\npersistence true\nmax_queued_messages 0\n"
                                          f"persistence_location {folder}/\nuser {os.environ.get('USER', 'root')}\n")
        self.out = open(self.folder / "received", "w")
        self.begin()
        # A session that outlives the broker, which keeps its messages on the disk.
        self.reader = None
        self.subscribe()

    def begin(self):
        self.server = subprocess.Popen(["mosquitto", "-c", str(self.folder / "conf")], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        wait_for(self.port)

    def subscribe(self):
        self.reader = subprocess.Popen(["mosquitto_sub", "-p", str(self.port), "-q", "1", "-c", "-i", "reader", "-t", "cameras/#"],
                                       stdout=self.out, stderr=subprocess.DEVNULL)
        time.sleep(0.5)

    def interrupt(self, away):
        self.server.terminate()  # a kill would lose what it confirmed and had not written yet
        self.server.wait()
        time.sleep(away)
        self.begin()

    def received(self, topic, enough):
        path, last, end = self.folder / "received", -1, time.monotonic() + 60
        while time.monotonic() < end:
            lines = path.read_text().splitlines()
            if enough(lines):
                break
            if len(lines) == last and self.reader.poll() is not None:
                self.subscribe()
            last = len(lines)
            time.sleep(0.5)
        return path.read_text().splitlines()

    def end(self):
        for process in (self.reader, self.server):
            process.kill()
            process.wait()


class Kafka:
    needs = ["kcat"]

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.server = subprocess.Popen([options.kafka_cluster, "cameras"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.address = self.server.stdout.readline().strip()
        self.out = open(self.folder / "received", "w")
        self.reader = None

    def begin_reading(self, topic):
        self.reader = subprocess.Popen(["kcat", "-C", "-E", "-u", "-q", "-b", self.address, "-t", topic, "-o", "beginning"], stdout=self.out,
                                       stderr=subprocess.DEVNULL)

    def interrupt(self, away):
        for word in ("down", "up"):
            self.server.stdin.write(word + "\n")
            self.server.stdin.flush()
            time.sleep(away)

    def received(self, topic, enough):
        end = time.monotonic() + 60
        while time.monotonic() < end and not enough((self.folder / "received").read_text().splitlines()):
            time.sleep(0.5)
        return (self.folder / "received").read_text().splitlines()

    def end(self):
        for process in (self.reader, self.server):
            if process is not None:
                process.kill()
                process.wait()


METHODS = {"redis": Redis, "mqtt": Mosquitto, "kafka": Kafka}


def publish(method, address, topic, source, messages, more=()):
    return subprocess.Popen(["gst-launch-1.0", "videotestsrc", f"num-buffers={messages}", "pattern=black", "!",
                             "video/x-raw,format=GRAY8,width=16,height=16,framerate=1000/1", "!", "clpublish", f"method={method}",
                             f"address={address}", f"topic={topic}", f"source={source}", *more, "!", "fakesink"],
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def check(method, lines, sources, messages):
    """Whether each source's messages are all there, the first of each number in order."""
    following = dict.fromkeys(sources, 0)
    twice = 0
    for line in lines:
        record = json.loads(line)
        source, number = record["source"], record["frame"]
        if number < following[source]:
            twice += 1
        elif number == following[source]:
            following[source] += 1
        else:
            return f"{method}: of {source}, message {number} came where {following[source]} was due"
    for source, number in following.items():
        if number != messages:
            return f"{method}: {number} of {messages} messages of {source} arrived"
    print(f"{method}: {len(sources)} sources, {messages} messages each, all there in order, {twice} of them twice")
    return None


def test(method, messages):
    kind = METHODS[method]
    # Each in a partition of its own: the cluster in memory keeps the last 5 MB of each.
    sources = ["south", "dock", "north", "hall"]
    each = messages // len(sources)
    topic = {"redis": "cameras", "mqtt": "cameras/{source}", "kafka": "cameras"}[method]
    with tempfile.TemporaryDirectory() as folder:
        broker = kind(folder)
        address = getattr(broker, "address", None) or f"127.0.0.1:{broker.port}"
        try:
            if method == "kafka":
                broker.begin_reading(topic)
            begin = time.monotonic()
            senders = [publish(method, address, topic, source, each) for source in sources]
            for away in (0.5, 2.0):
                time.sleep(random.uniform(0.3, 1.0))
                broker.interrupt(away)
            for sender in senders:
                output = sender.communicate(timeout=500)[0]
                if sender.returncode != 0 or "not with the broker" in output:
                    return f"{method}: clpublish failed: {output}"
            seconds = time.monotonic() - begin

            def enough(lines):
                return len(lines) >= messages and not check("", lines, sources, each)

            with contextlib.redirect_stdout(io.StringIO()):
                lines = broker.received(topic, enough)
            print(f"{method}: {messages} messages in {seconds:.1f} s, the broker was away twice")
            return check(method, lines, sources, each)
        finally:
            broker.end()


def test_kill(messages):
    """A publisher is killed while the broker is away; the next one sends what it left in queue-dir."""
    with tempfile.TemporaryDirectory() as folder:
        broker = Redis(folder)
        broker.server.kill()
        broker.server.wait()
        try:
            queue = [f"queue-dir={folder}/queue"]
            sender = publish("redis", f"127.0.0.1:{broker.port}", "cameras", "east", messages, queue)
            path = pathlib.Path(folder, "queue")
            end = time.monotonic() + 60
            while time.monotonic() < end and sum(f.read_bytes().count(b"\n") for f in path.glob("*.queue")) < messages:
                time.sleep(0.1)
            sender.kill()
            sender.wait()
            broker.begin()
            sender = publish("redis", f"127.0.0.1:{broker.port}", "cameras", "east", 1, queue)
            output = sender.communicate(timeout=60)[0]
            if sender.returncode != 0:
                return f"queue-dir: {output}"
            numbers = [json.loads(line)["frame"] for line in broker.received("cameras", None)]
            if numbers != list(range(messages)) + [0]:
                return f"queue-dir: {len(numbers)} messages instead of {messages} and one"
            print(f"queue-dir: {messages} messages of a killed publisher, all sent by the next one")
            return None
        finally:
            broker.end()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--messages", type=int, default=6000)
    parser.add_argument("--only", default="redis,mqtt,kafka")
    parser.add_argument("--kafka-cluster", default="", help="the program of kafka_cluster.cpp")
    global options
    options = parser.parse_args()
    inspected = subprocess.run(["gst-inspect-1.0", "clpublish"], capture_output=True, text=True).stdout
    ran, problems = 0, []
    for method in options.only.split(","):
        if method == "kafka" and not options.kafka_cluster:
            print("kafka: SKIPPED, librdkafka was absent at build")
            continue
        missing = [program for program in METHODS[method].needs if shutil.which(program) is None]
        if missing:
            print(f"{method}: SKIPPED, there is no {missing[0]} (pipelines/install brokers)")
            continue
        if any(f"({number}): {method} " in line and "not built in" in line for number in range(4) for line in inspected.splitlines()):
            print(f"{method}: SKIPPED, not built in")
            continue
        ran += 1
        problems.append(test(method, options.messages))
        if method == "redis":
            problems.append(test_kill(min(options.messages, 20000)))
    problems = [p for p in problems if p]
    if problems:
        sys.exit("\n".join(problems))
    sys.exit(0 if ran else 77)


if __name__ == "__main__":
    main()
