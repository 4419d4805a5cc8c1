#!/usr/bin/env python3
"""How a site on Ray grows with its cameras: pipelines/cluster/cameras.py places, asks and starts again groups that only pretend to play.

    cluster_growth.py [--cameras 100 300 1000] [--group 10] [--machines 10 10 10] [--seconds 30] [--health MS MS FAILURES]

All machines are nodes of Ray on this one. For each number of cameras the supervisor of cameras.py places the groups, asks them for --seconds,
and loses a machine, which is killed with all its processes. Printed are the seconds until all groups ran and until those of the lost machine ran
elsewhere, the answers that the supervisor got in a second and how long one round of its questions took, and processor time and memory of what
runs once for all machines: Ray's head (its GCS) and the supervisor. Starting processes is this machine's work and not the head's: with --group
10 each 10 cameras are a process of Python. A node takes about 0.2 GB. Health checks are quick, but give an answer 10 s, so that nodes that wait for
this machine's processors do not count as dead; a killed one refuses its checks at once. Needs `pip install ray`.
"""
import argparse
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "pipelines/cluster"), str(ROOT / "tests/cluster")]
import cameras  # noqa: E402
from site_of_nodes import Site, wait_until  # noqa: E402

BASE_PORT = 9464  # the number of a group is its port less this one
PATIENCE = 1800  # seconds, for a loaded machine
TICK = os.sysconf("SC_CLK_TCK")


class PretendGroup:
    """What a CameraGroup tells of cameras that give 25 frames a second. LAUNCH is a folder, in which each group notes when it began."""

    def __init__(self, wanted, launch, worker, port, *_):
        self._wanted, self._begun = dict(wanted), time.monotonic()
        pathlib.Path(launch, f"{port - BASE_PORT}:{worker}").write_text(repr(time.time()))

    def health(self):
        frames = int(25 * (time.monotonic() - self._begun))
        return {name: {"address": address, "frames": frames, "moved": 0.0, "starts": 1, "why": "", "age": 0.04}
                for name, address in self._wanted.items()}

    def set_cameras(self, wanted):
        self._wanted = dict(wanted)

    def drain(self, seconds=0.0):
        self._wanted = {}


class CountingSupervisor(cameras.Supervisor):
    """Counts its rounds and the answers that it gets."""

    answers = rounds = 0

    def look_at(self, group, now):
        before = group.answer
        super().look_at(group, now)
        self.answers += group.answer is not None and group.answer is not before

    def rebalance(self, nodes, now):
        super().rebalance(nodes, now)
        self.rounds += 1
        counts = pathlib.Path(self.launch, "counts")
        counts.with_suffix(".new").write_text(json.dumps({
            "answers": self.answers, "rounds": self.rounds, "known": sum(group.answer is not None for group in self.groups)}))
        counts.with_suffix(".new").rename(counts)


def supervise(words):
    """cameras.py's own program, with the two classes above."""
    cameras.CameraGroup, cameras.Supervisor = PretendGroup, CountingSupervisor
    cameras.ray.cloudpickle.register_pickle_by_value(cameras)
    sys.argv = ["cameras.py", *words]
    cameras.main()


def processor_seconds(pid):
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICK


def megabytes(pid):
    lines = pathlib.Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmRSS:"))


def head_of(site):
    """The process of Ray's head that knows all nodes."""
    return site.cluster.head_node.all_processes["gcs_server"][0].process.pid


def begun(folder):
    """{(group, worker): when it began}"""
    return {tuple(file.name.split(":")): float(file.read_text() or 0) for file in folder.glob("*:*")}


def measure(site, count, options):
    groups = -(-count // options.group)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        listed, launch = folder / "cameras.txt", folder / "launch"
        listed.write_text("".join(f"camera-{index} at-{index}\n" for index in range(count)))
        launch.write_text(name)
        head = head_of(site)
        at_first = processor_seconds(head)
        start = time.time()
        supervisor = site.run(__file__, "--supervise", listed, launch, "--group", options.group, "--cpus", 0.001, "--resource", "room=1",
                              "--rebalance-after", 0, "--answer-within", 60, stdout=subprocess.DEVNULL)

        def counts():
            file = folder / "counts"
            return json.loads(file.read_text()) if file.exists() else {"answers": 0, "rounds": 0, "known": 0}

        try:
            wait_until("all groups answer", lambda: counts()["known"] == groups, PATIENCE)
            first = {}
            for (group, _), when in begun(folder).items():
                first[group] = min(when, first.get(group, when))
            row = {"cameras": count, "machines": len(site.nodes), "groups": groups, "placed_s": max(first.values()) - start,
                   "head_s_to_place": processor_seconds(head) - at_first, "supervisor_s_to_place": processor_seconds(supervisor.pid)}
            before, begin = (counts(), processor_seconds(head), processor_seconds(supervisor.pid)), time.monotonic()
            time.sleep(options.seconds)
            after, seconds = (counts(), processor_seconds(head), processor_seconds(supervisor.pid)), time.monotonic() - begin
            row |= {"answers_a_second": (after[0]["answers"] - before[0]["answers"]) / seconds,
                    "round_s": seconds / max(after[0]["rounds"] - before[0]["rounds"], 1),
                    "head_percent": 100 * (after[1] - before[1]) / seconds, "supervisor_percent": 100 * (after[2] - before[2]) / seconds,
                    "head_mb": megabytes(head), "supervisor_mb": megabytes(supervisor.pid)}
            ran = begun(folder)
            by_node = {}
            for node in site.nodes:
                pids = set(map(str, site.processes(node)))
                by_node[node] = {group for group, worker in ran if worker.rsplit("-", 1)[1] in pids}
            lost = max(by_node, key=lambda node: len(by_node[node]))
            orphans, killed = by_node[lost], time.time()
            site.send(lost, signal.SIGKILL)

            def again():
                return {group: when for (group, _), when in begun(folder).items() if group in orphans and when > killed}

            wait_until("the groups of the lost machine run again", lambda: again().keys() == orphans, PATIENCE)
            row |= {"lost_groups": len(orphans), "first_again_s": min(again().values()) - killed, "all_again_s": max(again().values()) - killed}
            site.cluster.remove_node(site.nodes.pop(lost), allow_graceful=False)
        finally:
            supervisor.send_signal(signal.SIGTERM)
            supervisor.wait()
        return row


def main():
    if sys.argv[1:2] == ["--supervise"]:
        supervise(sys.argv[2:])
        return
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cameras", type=int, nargs="+", default=[100, 300, 1000])
    parser.add_argument("--group", type=int, default=10)
    parser.add_argument("--machines", type=int, nargs="+", default=[10, 10, 10])
    parser.add_argument("--seconds", type=float, default=30)
    parser.add_argument("--health", type=int, nargs=3, default=(250, 10000, 3),
                        help="milliseconds between health checks, those that an answer may take, and how many may fail")
    options = parser.parse_args()
    if len(options.cameras) != len(options.machines):
        parser.error("--cameras and --machines go by pairs")
    # Twice what a machine has to take, so that the others have room for one that is lost.
    room = max(2 * -(-(-(-count // options.group)) // machines) for count, machines in zip(options.cameras, options.machines))
    os.environ["RAY_worker_niceness"] = "0"
    site = Site([], {"room": room}, cpus=1, health=options.health)
    try:
        for count, machines in zip(options.cameras, options.machines):
            for number in range(machines - len(site.nodes)):
                site.nodes[f"{count}-{number}"] = site.add()
            print(json.dumps({name: round(value, 2) for name, value in measure(site, count, options).items()}), flush=True)
    finally:
        site.end()


if __name__ == "__main__":
    main()
