#!/usr/bin/env python3
"""Twelve cameras in groups on three nodes of Ray: one node is killed, one frozen, a new one gets a group, the cluster's head and the
supervisor die and come back, and a stop drains everything. Frames without a result are counted by their times of capture.

    cameras.py CAMERAS.PY MODEL.xml [--rate 5] [--health MS MS FAILURES] [--answer-within 20]      GST_PLUGIN_PATH as in the environment; exit status 77 without ray or redis-server
"""
import argparse
import collections
import datetime
import json
import os
import pathlib
import shutil
import signal
import sys
import tempfile
import time

from site_of_nodes import Site, check, needs, runs, wait_until

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "gst/publish"))
from brokers import Redis  # noqa: E402

CAMERAS = [f"camera-{i}" for i in range(12)]


def lines_of(broker):
    """By camera: (time of capture in seconds, worker), in the order in which they came."""
    cameras = collections.defaultdict(list)
    for text in broker.received("results", None):
        line = json.loads(text)
        taken = datetime.datetime.fromisoformat(line["system_timestamp"].replace("Z", "+00:00")).timestamp()
        cameras[line["source"]].append((taken, line["tags"]["worker"]))
    return cameras


def workers(broker):
    """The worker of each camera's last line."""
    return {camera: lines[-1][1] for camera, lines in lines_of(broker).items()}


def flowing(broker, since):
    """Cameras with a frame that was taken after `since`."""
    return {camera for camera, lines in lines_of(broker).items() if lines[-1][0] > since}


def pauses_after(broker, lost):
    """By camera: the time from the last frame of the worker that is lost, {camera: worker}, to the first one of its successor."""
    lines = lines_of(broker)
    pauses = {}
    for camera, worker in lost.items():
        last = max(taken for taken, by in lines[camera] if by == worker)
        pauses[camera] = min(taken for taken, by in lines[camera] if taken > last and by != worker) - last
    return pauses


def longest_pause(broker, since):
    """The longest time between two frames of a camera after `since`."""
    return max(b - a for lines in lines_of(broker).values()
               for (a, _), (b, _) in zip(lines, lines[1:]) if b > since)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("script")
    parser.add_argument("model")
    parser.add_argument("--rate", type=int, default=5)
    parser.add_argument("--health", type=int, nargs=3, default=(1000, 1000, 5),
                        help="milliseconds between health checks, those that an answer may take, and how many may fail")
    parser.add_argument("--answer-within", type=float, default=20)
    options = parser.parse_args()
    needs()
    for missing in [program for program in Redis.needs if shutil.which(program) is None]:
        print(f"SKIPPED, there is no {missing} (pipelines/install brokers)")
        sys.exit(77)
    with tempfile.TemporaryDirectory() as folder:
        pathlib.Path(folder, "head").mkdir()
        broker, memory = Redis(folder), Redis(f"{folder}/head")
        os.environ.update(BROKER=f"127.0.0.1:{broker.port}", MODEL=options.model, RATE=str(options.rate), XDG_CACHE_HOME=folder)
        launch, cameras = pathlib.Path(folder, "camera.launch"), pathlib.Path(folder, "cameras.txt")
        launch.write_text("videotestsrc is-live=true pattern=ball name={address} ! video/x-raw,width=160,height=120,framerate=$RATE/1 "
                          "! clinfer model=$MODEL model-instance-id=all ! cltrack ! clpublish method=redis address=$BROKER topic=results "
                          'source={camera} tags="{\\"worker\\":\\"{worker}\\"}" ! fakesink')
        cameras.write_text("# the name and the address of each\n" + "".join(f"{name} at-{name}\n" for name in CAMERAS))
        site = Site(["north", "south", "west"], {"site": 12}, health=options.health, redis=f"127.0.0.1:{memory.port}")
        words = (options.script, cameras, launch, "--group", 4, "--resource", "site=4", "--cpus", 0.1, "--rebalance-after", 5, "--answer-within", options.answer_within)
        supervisor = site.run(*words)
        try:
            wait_until("all cameras are published", lambda: len(flowing(broker, 0)) == len(CAMERAS))
            before = workers(broker)
            check(f"three processes: {before}", sorted(collections.Counter(before.values()).values()) == [4, 4, 4])
            alive = dict(site.nodes)

            def lose(name, number, what):
                """Sends a signal to the node's processes, waits until its cameras flow elsewhere, and says for how long they did not."""
                pids = {str(pid) for pid in site.processes(name)}
                now = workers(broker)
                orphans = [camera for camera, worker in now.items() if worker.rsplit("-", 1)[1] in pids]
                check(f"{name} has a group", len(orphans) == 4)
                site.send(name, number)
                wait_until(f"the cameras of {name} flow again",
                           lambda: all(workers(broker)[camera] != now[camera] for camera in orphans))
                pauses = pauses_after(broker, {camera: now[camera] for camera in orphans})
                print(f"{name} {what}: {len(orphans)} cameras without frames for {min(pauses.values()):.1f} to {max(pauses.values()):.1f} s", flush=True)
                others = [camera for camera in CAMERAS if camera not in orphans]
                check("the other cameras go on", all(workers(broker)[camera] == now[camera] for camera in others))
                del alive[name]

            lose("north", signal.SIGKILL, "killed")
            # The one of the two that has one group is frozen, so that the other one has room for all.
            counts = collections.Counter(workers(broker).values())
            frozen = min(alive, key=lambda name: sum(counts[w] for w in counts if w.rsplit("-", 1)[1] in {str(p) for p in site.processes(name)}))
            lose(frozen, signal.SIGSTOP, "frozen")
            thawed = site.processes(frozen)
            site.send(frozen, signal.SIGCONT)
            wait_until("processes of a machine that was given up end", lambda: not any(runs(pid) for pid in thawed))
            del site.nodes["north"]
            site.nodes["new"] = site.add()
            stood = set(workers(broker).values())

            def has_moved():
                groups = collections.Counter(workers(broker).values())
                return sorted(groups.values()) == [4, 4, 4] and len(groups.keys() - stood) == 1

            wait_until("a group moves to the new machine", has_moved)
            print("a new machine got one of the three groups", flush=True)

            # The head dies and comes back with what Redis has; then the supervisor. Cameras do not notice.
            held, away = workers(broker), time.time()
            site.cluster.head_node.kill_gcs_server()
            time.sleep(3)
            site.cluster.head_node.start_gcs_server()
            supervisor.kill()
            supervisor.wait()
            supervisor = site.run(*words)
            time.sleep(10)
            now = time.time()
            wait_until("frames flow", lambda: len(flowing(broker, now)) == len(CAMERAS))
            check(f"no camera moved while head and supervisor were away: {held}, {workers(broker)}", workers(broker) == held)
            print(f"head and supervisor came back; longest pause {longest_pause(broker, away):.1f} s", flush=True)

            # A camera more and one less.
            cameras.write_text("".join(f"{name} at-{name}\n" for name in CAMERAS[1:] + ["late"]))
            wait_until("the new camera is published", lambda: "late" in flowing(broker, 0))
            supervisor.send_signal(signal.SIGTERM)
            check("the supervisor ends well", supervisor.wait(timeout=240) == 0)
            time.sleep(1)
            end = time.time()
            time.sleep(2)
            check("no camera goes on", not flowing(broker, end))
        finally:
            supervisor.kill()
            supervisor.wait()
            site.end()
            broker.end()
            memory.end()
    print("ok")


if __name__ == "__main__":
    main()
