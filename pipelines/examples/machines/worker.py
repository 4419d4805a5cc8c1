#!/usr/bin/env python3
"""Runs the pipelines of some of the cameras; the workers of all machines share the cameras by leases in Redis.

    worker.py LAUNCH_FILE [--name NAME] [--most 16] [--lease 3]      REDIS_CLI="redis-cli -h HOST --tls" and the like in the environment

The Redis hash `cameras` has the address of each camera by its name: redis-cli HSET cameras gate rtsp://gate/stream. LAUNCH_FILE has a
pipeline in gst-launch's words; {camera}, {address}, {worker} and variables of the environment ($BROKER) in it are replaced. A camera's lease is the key lease:NAME with the worker
as its value; who cannot renew it for --lease seconds stops the camera's pipeline, and another worker starts it. Needs python3-gst-1.0.
"""
import argparse
import os
import pathlib
import shlex
import signal
import socket
import subprocess
import sys
import time

import gi
gi.require_version("Gst", "1.0")
from gi.repository import GLib, Gst

# Renews what is held and takes one free camera a round, so that workers that begin together get equal shares. Answers with names and addresses.
ROUND = """
local held, count, free = {}, 0, nil
local cameras = redis.call('HGETALL', 'cameras')
for i = 1, #cameras, 2 do
  local lease = 'lease:' .. cameras[i]
  local owner = redis.call('GET', lease)
  if owner == ARGV[1] then
    redis.call('PEXPIRE', lease, ARGV[2])
    held[#held + 1] = cameras[i]
    held[#held + 1] = cameras[i + 1]
    count = count + 1
  elseif not owner and not free and not string.find(ARGV[4], '|' .. cameras[i] .. '|', 1, true) then
    free = i
  end
end
if free and count < tonumber(ARGV[3]) and redis.call('SET', 'lease:' .. cameras[free], ARGV[1], 'NX', 'PX', ARGV[2]) then
  held[#held + 1] = cameras[free]
  held[#held + 1] = cameras[free + 1]
end
return held
"""
GIVE_BACK = "if redis.call('GET', KEYS[1]) == ARGV[1] then redis.call('DEL', KEYS[1]) end"


def redis(*words):
    """The lines of Redis' answer; OSError or subprocess.SubprocessError when there is none."""
    run = subprocess.run([*shlex.split(os.environ.get("REDIS_CLI", "redis-cli")), "-e", *words], capture_output=True, text=True, timeout=2,
                         check=True)
    return run.stdout.splitlines()


class Worker:
    def __init__(self, options):
        self.options = options
        self.launch = os.path.expandvars(pathlib.Path(options.launch).read_text())
        self.pipelines = {}  # by camera
        self.resting = {}  # cameras that failed here, and until when another worker may try
        self.renewed = time.monotonic()
        self.loop = GLib.MainLoop()

    def say(self, text):
        print(f"{self.options.name}: {text}", flush=True)

    def round(self):
        now = time.monotonic()
        self.resting = {camera: until for camera, until in self.resting.items() if until > now}
        try:
            lines = redis("EVAL", ROUND, "0", self.options.name, str(int(self.options.lease * 1000)), str(self.options.most),
                          "|" + "|".join(self.resting) + "|")
            self.renewed = now
        except (OSError, subprocess.SubprocessError) as error:
            if time.monotonic() - self.renewed > self.options.lease and self.pipelines:
                self.say(f"no answer from Redis, so others may have the cameras now: {getattr(error, 'stderr', '') or error}".strip())
                for camera in list(self.pipelines):
                    self.end(camera)
            return True
        held = dict(zip(lines[::2], lines[1::2]))
        for camera in self.pipelines.keys() - held.keys():
            self.end(camera)
        for camera in held.keys() - self.pipelines.keys():
            self.begin(camera, held[camera])
        return True

    def begin(self, camera, address):
        self.say(f"begins {camera}")
        launch = self.launch
        for name, value in (("camera", camera), ("address", address), ("worker", self.options.name)):
            launch = launch.replace("{" + name + "}", value)
        try:
            pipeline = Gst.parse_launch(launch)
        except GLib.Error as error:
            sys.exit(f"{self.options.launch}: {error.message}")
        self.pipelines[camera] = pipeline
        bus = pipeline.get_bus()
        bus.add_signal_watch()
        bus.connect("message::error", self.failed, camera)
        bus.connect("message::eos", self.failed, camera)
        pipeline.set_state(Gst.State.PLAYING)

    def end(self, camera):
        self.say(f"ends {camera}")
        pipeline = self.pipelines.pop(camera)
        pipeline.get_bus().remove_signal_watch()
        pipeline.set_state(Gst.State.NULL)

    def failed(self, _bus, message, camera):
        """A camera that fails here is given back, and left to others for a while."""
        why = message.parse_error()[0].message if message.type == Gst.MessageType.ERROR else "the stream ended"
        self.say(f"{camera}: {why}")
        self.end(camera)
        self.resting[camera] = time.monotonic() + 2 * self.options.lease
        self.give_back(camera)

    def give_back(self, camera):
        try:
            redis("EVAL", GIVE_BACK, "1", f"lease:{camera}", self.options.name)
        except (OSError, subprocess.SubprocessError):
            pass  # it ends by itself

    def run(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            GLib.unix_signal_add(GLib.PRIORITY_HIGH, number, self.loop.quit)
        self.round()
        GLib.timeout_add(int(self.options.lease * 200), self.round)
        self.loop.run()
        for camera in list(self.pipelines):
            self.end(camera)
            self.give_back(camera)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("launch")
    parser.add_argument("--name", default=f"{socket.gethostname()}-{os.getpid()}")
    parser.add_argument("--most", type=int, default=16, help="cameras that this machine can do")
    parser.add_argument("--lease", type=float, default=3, help="seconds after which the cameras of a dead worker are free")
    options = parser.parse_args()
    Gst.init(None)
    Worker(options).run()


if __name__ == "__main__":
    main()
