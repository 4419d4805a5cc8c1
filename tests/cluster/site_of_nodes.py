"""A Ray cluster of several nodes on this machine, whose nodes can be killed and frozen."""
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time

PATIENCE = 240  # seconds, for a loaded machine


def check(what, true):
    if not true:
        sys.exit(f"FAIL {what}")


def wait_until(what, true, patience=PATIENCE):
    end = time.monotonic() + patience
    while time.monotonic() < end:
        if true():
            return
        time.sleep(0.2)
    sys.exit(f"FAIL {what}: not within {patience} s")


def needs(ray=True):
    """Goes on in a Python that has GStreamer's bindings and, with `ray`, Ray; ends with status 77, and a line that says why, where none has."""
    wants = "import gi; gi.require_version('Gst', '1.0'); from gi.repository import Gst" + ("; import ray.cluster_utils" if ray else "")
    for python in (sys.executable, os.environ.get("CLINFER_PYTHON"), shutil.which("python3"), "/usr/bin/python3"):
        if python and subprocess.run([python, "-c", wants], capture_output=True, check=False).returncode == 0:
            if python != sys.executable:
                os.execv(python, [python, *sys.argv])
            return
    print(f"SKIPPED, no Python here has {'Ray (pip install ray) and ' if ray else ''}GStreamer's bindings (python3-gst-1.0, pipelines/install test)")
    sys.exit(77)


def descendants(pid):
    children = {}
    for entry in pathlib.Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parent = int(entry.joinpath("stat").read_text().rsplit(")", 1)[1].split()[1])
            except OSError:
                continue
            children.setdefault(parent, []).append(int(entry.name))
    found, todo = [], [pid]
    while todo:
        found.append(todo.pop())
        todo += children.get(found[-1], [])
    return found


def runs(pid):
    """Whether a process is there, and is no zombie."""
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


class Site:
    """`nodes` by name; the head's own node takes groups for `cpus_of_head` processors. `health`: milliseconds between two health checks, those that
    an answer may take, and how many may fail."""

    def __init__(self, names, resources, cpus=3, health=(1000, 1000, 5), redis=None, cpus_of_head=0):
        os.environ.update(RAY_USAGE_STATS_ENABLED="0", RAY_DEDUP_LOGS="0", RAY_enable_metrics_collection="0")
        if redis is not None:
            os.environ["RAY_REDIS_ADDRESS"] = redis
        from ray.cluster_utils import Cluster
        period, answer, failures = health
        config = {"health_check_initial_delay_ms": 2000, "health_check_period_ms": period, "health_check_timeout_ms": answer,
                  "health_check_failure_threshold": failures}
        self.cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": cpus_of_head, "include_dashboard": False, "_system_config": config,
                                                                     "object_store_memory": 80 << 20})
        self.resources, self.cpus = resources, cpus
        self.nodes = {name: self.add() for name in names}

    def add(self):
        return self.cluster.add_node(num_cpus=self.cpus, resources=self.resources, object_store_memory=80 << 20)

    def processes(self, name):
        from ray._private.ray_constants import PROCESS_TYPE_RAYLET
        return descendants(self.nodes[name].all_processes[PROCESS_TYPE_RAYLET][0].process.pid)

    def send(self, name, number):
        for pid in self.processes(name):
            try:
                os.kill(pid, number)
            except ProcessLookupError:
                pass

    def run(self, script, *words, **options):
        return subprocess.Popen([sys.executable, script, *map(str, words)], env={**os.environ, "RAY_ADDRESS": self.cluster.address}, **options)

    def end(self):
        for name in self.nodes:
            self.send(name, signal.SIGCONT)
            self.send(name, signal.SIGKILL)
        self.cluster.shutdown()
