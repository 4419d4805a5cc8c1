#!/usr/bin/env python3
"""Runs the cameras of a site on the machines of a Ray cluster: groups that share a model, placed by what machines have, restarted elsewhere.

    cameras.py CAMERAS LAUNCH [--group 8] [--gpus 0.5] [--resource NAME=AMOUNT]... [--port 9464] [--answer-within 5] [--rebalance-after 30]
    cameras.py --status

CAMERAS and LAUNCH are those of group.py. Each group of --group cameras is an actor of Ray, which holds --cpus, --gpus and each --resource of its
machine. Ray starts it again on another machine when its own dies; this program kills one that does not answer, gives new cameras to groups that
have room, and moves a group when a machine with room has come back. Frozen cameras are the groups' own business. Actors outlive this program:
killed and started again, it finds them by name. SIGTERM or Ctrl-C drains and ends all of them. RAY_ADDRESS names the cluster.
Needs `pip install ray`, and on each machine python3-gst-1.0, clinfer and the model.
"""
import argparse
import collections
import os
import pathlib
import select
import signal
import socket
import sys
import threading
import time

import group as cameras_of_a_group
from group import CameraGroup, Refused, read_cameras

try:
    import ray
    from ray.exceptions import ActorDiedError, ActorUnavailableError, RayActorError, RayError
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy
except ImportError:
    sys.exit(f"cameras.py: {sys.executable} has no Ray: pip install ray")

NAMESPACE = "clinfer"


class GroupActor:
    """A CameraGroup in a process of its own. SIGTERM, of a machine that shuts down, drains it, and Ray starts it again elsewhere."""

    def __init__(self, cameras, launch, port, settings):
        self._group = None
        # Ray's loop may keep the interpreter from running Python's handlers; the descriptor is written at once.
        read, write = os.pipe()
        os.set_blocking(write, False)
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, lambda *_: None)
            signal.set_wakeup_fd(write, warn_on_full_buffer=False)
        threading.Thread(target=self._watch_machine, args=(read, os.getppid()), daemon=True).start()
        self._node = ray.get_runtime_context().get_node_id()
        self._worker = f"{socket.gethostname()}-{os.getpid()}"
        self._group = CameraGroup(cameras, launch, self._worker, port, settings["frozen_after"], settings["start_within"])

    def _watch_machine(self, signals, raylet):
        """Drains at SIGTERM; ends at once with Ray's process of this machine, for then its cameras have begun elsewhere."""
        while os.getppid() == raylet:
            if select.select([signals], [], [], 1)[0] and signal.SIGTERM in os.read(signals, 100):
                if self._group is not None:
                    self._group.drain()
                break
        os._exit(0)

    def health(self):
        return {"node": self._node, "worker": self._worker, "cameras": self._group.health()}

    def set_cameras(self, cameras):
        self._group.set_cameras(cameras)

    def drain(self, seconds):
        self._group.drain(seconds)


class Group:
    """What the supervisor knows of one actor."""

    def __init__(self, index):
        self.index = index
        self.name = f"cameras-{index}"
        self.actor = None
        self.cameras = {}
        self.question = None  # the call of health() under way
        self.asked = 0.0
        self.answer = None  # the last answer of the actor as it runs now
        self.told = ""  # the last line about its state


def spread(groups, cameras, size):
    """Gives each camera a group: those that have one stay, others fill groups with room and then new ones. Changes `groups`."""
    for group in groups:
        group.cameras = {name: cameras[name] for name in group.cameras if name in cameras}
    placed = {name for group in groups for name in group.cameras}
    for name in cameras:
        if name in placed:
            continue
        room = [group for group in groups if len(group.cameras) < size]
        if not room:
            free = min(set(range(len(groups) + 1)) - {group.index for group in groups})
            room = [Group(free)]
            groups.append(room[0])
        room[0].cameras[name] = cameras[name]
    return [group for group in groups if not group.cameras]


def move_to(counts, room):
    """(from, to): machines between which one group should move, of {node: groups} and {node: groups that it could still take}; or None."""
    free = [node for node, groups in room.items() if groups > 0]
    if not counts or not free:
        return None
    least = min(free, key=lambda node: counts.get(node, 0))
    most = max(counts, key=counts.get)
    return (most, least) if counts[most] - counts.get(least, 0) >= 2 else None


class Supervisor:
    def __init__(self, options):
        self.options = options
        self.launch = pathlib.Path(options.launch).read_text(encoding="utf-8")
        self.groups = []
        self.cameras = None
        self.complained = ""
        self.uneven_since = None
        self.alive = set()  # ids of the machines that Ray counts on
        self.over = threading.Event()
        self.needs = {"CPU": options.cpus, "GPU": options.gpus, **options.resource}
        ray.cloudpickle.register_pickle_by_value(cameras_of_a_group)  # so that other machines need no copy of these files

    def say(self, text):
        print(f"cameras.py: {text}", flush=True)

    def start(self, group, node=None):
        place = NodeAffinitySchedulingStrategy(node, soft=True) if node else "SPREAD"
        actor = ray.remote(GroupActor).options(
            name=group.name, namespace=NAMESPACE, get_if_exists=True, lifetime="detached", max_restarts=-1, max_task_retries=0,
            num_cpus=self.options.cpus, num_gpus=self.options.gpus, resources=self.options.resource, scheduling_strategy=place)
        group.actor = actor.remote(group.cameras, self.launch, self.options.port + group.index,
                                   {"frozen_after": self.options.frozen_after, "start_within": self.options.start_within})
        group.question = group.answer = None
        group.asked = time.monotonic()

    def find(self):
        """Takes over the actors that an earlier supervisor left."""
        for known in ray.util.list_named_actors(all_namespaces=True):
            if known["namespace"] != NAMESPACE or not known["name"].startswith("cameras-"):
                continue
            group = Group(int(known["name"].removeprefix("cameras-")))
            group.actor, group.asked = ray.get_actor(group.name, NAMESPACE), time.monotonic()
            try:
                answer = ray.get(group.actor.health.remote(), timeout=self.options.answer_within)
                group.cameras = {name: camera["address"] for name, camera in answer["cameras"].items()}
            except RayError:
                pass  # it is being started again: it gets its cameras by the first round that it answers
            self.groups.append(group)

    def read(self):
        try:
            cameras = read_cameras(self.options.cameras)
        except Refused as error:
            if self.cameras is None:
                raise
            if str(error) != self.complained:
                self.say(f"{error}; the cameras stay as they are")
                self.complained = str(error)
            return
        self.complained = ""
        if cameras == self.cameras:
            return
        self.cameras = cameras
        for empty in spread(self.groups, cameras, self.options.group):
            self.groups.remove(empty)
            if empty.actor is not None:
                ray.kill(empty.actor)

    def look_at(self, group, now):
        if group.actor is None:
            self.start(group)
        if group.question is None:
            group.question, group.asked = group.actor.health.remote(), now if group.answer else group.asked
        ready, _ = ray.wait([group.question], timeout=0)
        if not ready:
            if group.answer is not None and group.answer["node"] not in self.alive:
                self.restarts(group, now)
            elif group.answer is not None and now - group.asked > self.options.answer_within:
                self.tell(group, f"no answer for {self.options.answer_within:g} s; it is killed, and started again")
                ray.kill(group.actor, no_restart=False)
                group.question = group.answer = None
                group.asked = now
            elif group.answer is None and now - group.asked > 30:
                self.tell(group, "no machine has had room for 30 s: add machines, or ask for less (--cpus, --gpus, --resource, --group)")
            return
        question, group.question = group.question, None
        try:
            answer = ray.get(question)
        except ActorDiedError as error:
            if group.answer is None and "GroupActor.__init__" in str(error):
                raise Refused(str(error).strip().splitlines()[-1]) from error
            self.tell(group, "its actor is gone; a new one begins")
            group.actor = None
            return
        except (ActorUnavailableError, RayActorError):
            if group.answer is not None:
                self.restarts(group, now)
            return
        if group.answer is None or group.answer["worker"] != answer["worker"]:
            self.tell(group, f"{len(group.cameras)} cameras on {answer['worker']}")
        group.answer = answer
        if {name: camera["address"] for name, camera in answer["cameras"].items()} != group.cameras:
            group.actor.set_cameras.remote(group.cameras)

    def restarts(self, group, now):
        """Ray has noticed by itself: a call to the actor that is gone may never be answered, and the new one must not be killed for it."""
        self.tell(group, "its machine or process is gone; Ray starts it elsewhere")
        group.question = group.answer = None
        group.asked = now

    def tell(self, group, text):
        if text != group.told:
            self.say(f"{group.name}: {text}")
            group.told = text

    def rebalance(self, nodes, now):
        """Moves one group when a machine has had two fewer than another, and room, for --rebalance-after seconds."""
        if self.options.rebalance_after <= 0 or any(group.answer is None for group in self.groups):
            self.uneven_since = None
            return
        counts = collections.Counter(group.answer["node"] for group in self.groups)
        room = {}
        for node in nodes:
            fit = min((node["Resources"].get(name, 0) / amount for name, amount in self.needs.items() if amount > 0), default=0)
            room[node["NodeID"]] = int(fit + 1e-6) - counts[node["NodeID"]]
        move = move_to(counts, room)
        if move is None:
            self.uneven_since = None
            return
        self.uneven_since = self.uneven_since or now
        if now - self.uneven_since < self.options.rebalance_after:
            return
        self.uneven_since = None
        group = next(group for group in self.groups if group.answer["node"] == move[0])
        self.tell(group, "moves to a machine with more room")
        self.end([group])
        self.start(group, move[1])

    def end(self, groups):
        """Drains these groups and ends their actors."""
        calls = [group.actor.drain.remote(self.options.drain) for group in groups if group.actor is not None]
        ray.wait(calls, num_returns=len(calls), timeout=self.options.drain + 5)
        for group in groups:
            if group.actor is not None:
                ray.kill(group.actor)
        gone = time.monotonic() + 10
        while time.monotonic() < gone and any(self.exists(group.name) for group in groups):
            time.sleep(0.05)

    @staticmethod
    def exists(name):
        try:
            ray.get_actor(name, NAMESPACE)
            return True
        except ValueError:
            return False

    def run(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: self.over.set())
        self.find()
        while not self.over.wait(0.5):
            self.read()
            now = time.monotonic()
            nodes = [node for node in ray.nodes() if node["Alive"]]
            self.alive = {node["NodeID"] for node in nodes}
            for group in self.groups:
                self.look_at(group, now)
            self.rebalance(nodes, now)
        self.end(self.groups)


def status():
    """Prints what each camera does."""
    for known in sorted(ray.util.list_named_actors(all_namespaces=True), key=lambda known: known["name"]):
        if known["namespace"] != NAMESPACE:
            continue
        try:
            answer = ray.get(ray.get_actor(known["name"], NAMESPACE).health.remote(), timeout=5)
        except RayError as error:
            print(f"{known['name']}\tno answer\t{type(error).__name__}")
            continue
        for name, camera in sorted(answer["cameras"].items()):
            print(f"{known['name']}\t{answer['worker']}\t{name}\t{camera['frames']} frames, the last {camera['age']:.1f} s ago, "
                  f"{camera['starts']} starts{', ' + camera['why'] if camera['why'] else ''}")


def resource(text):
    name, _, amount = text.partition("=")
    return name, float(amount)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cameras", nargs="?")
    parser.add_argument("launch", nargs="?")
    parser.add_argument("--group", type=int, default=8, help="cameras that share a process, a model and its batches")
    parser.add_argument("--cpus", type=float, default=1, help="processors that a group takes")
    parser.add_argument("--gpus", type=float, default=0, help="GPUs that a group takes: 0.5 for two groups a GPU")
    parser.add_argument("--resource", type=resource, action="append", default=[], help="what else a group takes of its machine: NAME=AMOUNT")
    parser.add_argument("--port", type=int, default=9464, help="{port} in LAUNCH is this one plus the number of the group")
    parser.add_argument("--frozen-after", type=float, default=10)
    parser.add_argument("--start-within", type=float, default=180)
    parser.add_argument("--answer-within", type=float, default=5, help="seconds after which a group that does not answer is killed")
    parser.add_argument("--rebalance-after", type=float, default=30, help="seconds; 0: groups never move")
    parser.add_argument("--drain", type=float, default=10)
    parser.add_argument("--status", action="store_true")
    options = parser.parse_args()
    options.resource = dict(options.resource)
    if not options.status and options.launch is None:
        parser.error("CAMERAS and LAUNCH are needed")
    try:
        if not options.status:
            read_cameras(options.cameras)
        ray.init(address=os.environ.get("RAY_ADDRESS", "auto"), namespace=NAMESPACE, log_to_driver=not options.status, logging_level="warning")
        if options.status:
            status()
        else:
            Supervisor(options).run()
    except (Refused, OSError, ConnectionError) as error:
        sys.exit(f"cameras.py: {error}")


if __name__ == "__main__":
    main()
