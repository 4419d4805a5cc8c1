#!/usr/bin/env python3
"""Streams that a GPU decodes and infers: pipelines of gst-launch-1.0 with memory of CUDA, and with system memory.

    decoders.py VIDEO MODEL... [--streams 32,96] [--batch 8] [--memory CUDAMemory,system] [--decoder nvh264dec] [--properties "..."]

VIDEO is H.264 in MP4; each stream plays it once, as fast as it goes. MODEL "none" decodes only. All streams share one compiled model.
A rate is that of all frames from PLAYING to the end of the stream; decoders and model are ready then. Printed: frames a second,
streams of 30 frames a second, milliseconds of CPU time a frame, how frames were read (path), and, where nvidia-smi counts them, kB a frame
over the bus, both ways.
"""
import argparse
import re
import resource
import subprocess
import sys
import time


class Bus:
    """Bytes over the bus while it is open, by nvidia-smi's counters."""
    def __enter__(self):
        try:
            self.process = subprocess.Popen(["nvidia-smi", "dmon", "-s", "t", "-d", "1"], stdout=subprocess.PIPE, text=True)
        except FileNotFoundError:
            self.process = None
        return self

    def __exit__(self, *_):
        self.megabytes = None
        if self.process is not None:
            self.process.terminate()
            rows = [line.split() for line in self.process.communicate()[0].splitlines() if line and line[0] != "#"]
            self.megabytes = [sum(float(row[column]) for row in rows if row[0] == "0") for column in (1, 2)]


def branch(options, model, memory):
    caps = "video/x-raw" if memory == "system" else f"video/x-raw(memory:{memory})"
    parts = [f"filesrc location={options.video}", "qtdemux", "h264parse", options.decoder, caps]
    if model != "none":
        parts.append(f"clinfer first-tier=false model={model} model-instance-id=all batch-size={options.batch} {options.properties}")
    return " ! ".join(parts + ["fakesink sync=false enable-last-sample=false"])


def run(options, model, memory, streams):
    line = " ".join(branch(options, model, memory) for _ in range(streams))
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    frames, paths, begun = 0, set(), None
    with Bus() as bus:
        process = subprocess.Popen(["gst-launch-1.0", "-m", *line.split()], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        for text in process.stdout:
            if "Setting pipeline to PLAYING" in text:
                begun = time.monotonic()
            if "clinfer-stats" in text:
                frames += int(re.search(r"frames-out=\(guint64\)(\d+)", text)[1])
                paths.add(re.search(r'path=\(string\)"?([a-z -]+[a-z])', text.replace("\\ ", " "))[1])
            if text.startswith("ERROR"):
                print(text.strip(), file=sys.stderr)
            if "Got EOS from element" in text and begun:
                seconds = time.monotonic() - begun
        if process.wait() != 0 or begun is None:
            sys.exit(f"{streams} streams did not come to their end")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    if model == "none":
        frames = options.frames * streams
    row = [f"{model.rsplit('/', 1)[-1]}", memory, str(streams), f"{frames / seconds:,.0f}", f"{frames / seconds / 30:.1f}",
           f"{cpu / frames * 1000:.2f}", ", ".join(sorted(paths)) or "-"]
    row += [f"{megabytes * 1000 / frames:,.0f}" for megabytes in bus.megabytes] if bus.megabytes else ["-", "-"]
    print("| " + " | ".join(row) + " |", flush=True)


def count_frames(options):
    line = f"filesrc location={options.video} ! qtdemux ! h264parse ! identity silent=false ! fakesink"
    text = subprocess.run(["gst-launch-1.0", "-v", *line.split()], capture_output=True, text=True, check=True).stdout
    return text.count("chain   ******")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("video")
    parser.add_argument("models", nargs="+")
    parser.add_argument("--streams", default="32,96")
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--memory", default="CUDAMemory,system")
    parser.add_argument("--decoder", default="nvh264dec")
    parser.add_argument("--properties", default="", help="of clinfer")
    options = parser.parse_args()
    options.frames = count_frames(options)
    print("| model | memory | streams | frames/s | streams of 30 | CPU ms a frame | path | kB to the GPU | kB from it |\n"
          "| --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    for model in options.models:
        for memory in options.memory.split(","):
            for streams in options.streams.split(","):
                run(options, model, memory, int(streams))


if __name__ == "__main__":
    main()
