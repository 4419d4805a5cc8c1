#!/usr/bin/env python3
"""Three workers share six cameras by leases in Redis; one is killed, the others take its cameras over, and the frames between are counted.
Then Redis is away for longer than a lease: nobody may run a camera meanwhile.

    machines.py WORKER MODEL.xml [--lease 10] [--rate 5]      GST_PLUGIN_PATH as in the environment; exit status 77 without redis-server
"""
import argparse
import collections
import datetime
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

from brokers import Redis
from examples import gi_python

CAMERAS = ["gate", "dock", "hall", "yard", "roof", "lane"]
WORKERS = ["north", "south", "west"]
PATIENCE = 240  # seconds, for a loaded machine


def wait_until(what, true):
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        if true():
            return
        time.sleep(0.2)
    sys.exit(f"FAIL {what}: not within {PATIENCE} s")


def lines_of(broker):
    """By camera: (time of capture in seconds, number of the frame, worker), in the order in which they came."""
    cameras = collections.defaultdict(list)
    for text in broker.received("results", None):
        line = json.loads(text)
        taken = datetime.datetime.fromisoformat(line["system_timestamp"].replace("Z", "+00:00")).timestamp()
        cameras[line["source"]].append((taken, line["frame"], line["tags"]["worker"]))
    return cameras


def owners(broker):
    """The worker of each camera's last line."""
    return {camera: lines[-1][2] for camera, lines in lines_of(broker).items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("worker")
    parser.add_argument("model")
    parser.add_argument("--lease", type=float, default=10)
    parser.add_argument("--rate", type=int, default=5)
    options = parser.parse_args()
    python = gi_python()
    for missing in [p for p in Redis.needs if shutil.which(p) is None] + ([] if python else ["python3-gst-1.0"]):
        print(f"SKIPPED, there is no {missing} (pipelines/install brokers test)")
        sys.exit(77)
    with tempfile.TemporaryDirectory() as folder:
        broker = Redis(folder)
        environment = {**os.environ, "REDIS_CLI": f"redis-cli -p {broker.port}", "BROKER": f"127.0.0.1:{broker.port}", "MODEL": options.model,
                       "RATE": str(options.rate), "XDG_CACHE_HOME": folder}
        launch = pathlib.Path(folder, "camera.launch")
        launch.write_text("videotestsrc is-live=true pattern=ball name={address} ! video/x-raw,width=160,height=120,framerate=$RATE/1 "
                          "! clinfer model=$MODEL model-instance-id=all ! cltrack ! clpublish method=redis address=$BROKER topic=results "
                          'source={camera} tags="{\\"worker\\":\\"{worker}\\"}" ! fakesink')
        for camera in CAMERAS:
            subprocess.run(["redis-cli", "-p", str(broker.port), "HSET", "cameras", camera, f"at-{camera}"], check=True, stdout=subprocess.DEVNULL)
        workers = {name: subprocess.Popen([python, options.worker, launch, "--name", name, "--most", "4", "--lease", str(options.lease)],
                                          env=environment) for name in WORKERS}
        try:
            wait_until("all cameras are published", lambda: len(lines_of(broker)) == len(CAMERAS))
            before = owners(broker)
            count = collections.Counter(before.values())
            print(f"shares before: {dict(count)}", flush=True)
            victim = count.most_common(1)[0][0]
            orphans = [camera for camera, worker in before.items() if worker == victim]
            workers[victim].kill()
            workers[victim].wait()
            print(f"killed {victim}, which had {orphans}", flush=True)
            wait_until("its cameras are taken over", lambda: victim not in owners(broker).values())
            cameras = lines_of(broker)
            lost = 0
            for camera in orphans:
                last = max(i for i, line in enumerate(cameras[camera]) if line[2] == victim)
                gap = cameras[camera][last + 1][0] - cameras[camera][last][0]
                missing = round(gap * options.rate) - 1
                lost += missing
                print(f"{camera}: {victim} -> {cameras[camera][last + 1][2]}, {missing} frames lost in {gap:.2f} s")
            kept = [camera for camera in CAMERAS if camera not in orphans and len({line[2] for line in cameras[camera]}) == 1]
            print(f"{lost} frames of {len(orphans)} cameras lost; {len(kept)} cameras of the other workers went on")
            for camera in kept:
                numbers = [line[1] for line in cameras[camera]]
                if numbers != list(range(len(numbers))):
                    sys.exit(f"FAIL {camera} lost frames although its worker lives: {numbers}")
            # Without Redis for longer than a lease, others may have the cameras: both workers stop them, and begin again with Redis.
            broker.interrupt(options.lease + 3)
            back = time.time()
            wait_until("all cameras are published after Redis was away",
                       lambda: sum(lines[-1][0] > back for lines in lines_of(broker).values()) == len(CAMERAS))
            for camera, lines in lines_of(broker).items():
                if camera in kept and not any(line[1] == 0 and line[0] > lines[0][0] for line in lines):
                    sys.exit(f"FAIL {camera} went on without a lease")
            for name in set(WORKERS) - {victim}:
                workers[name].terminate()
                if workers[name].wait(timeout=PATIENCE) != 0:
                    sys.exit(f"FAIL {name} ended with {workers[name].returncode}")
            leases = subprocess.run(["redis-cli", "-p", str(broker.port), "KEYS", "lease:*"], capture_output=True, text=True).stdout.split()
            if leases:
                sys.exit(f"FAIL workers that were stopped did not give back {leases}")
        finally:
            for worker in workers.values():
                worker.kill()
                worker.wait()
            broker.end()


if __name__ == "__main__":
    main()
