#!/usr/bin/env python3
"""Whether cameras flow, by what clmetrics says: a probe for Kubernetes and other supervisors.

    probe.py PORT [SECONDS]      exit status 0 where metrics answer and, with SECONDS, some camera has had a frame within them
"""
import re
import sys
import urllib.request


def main():
    if not 2 <= len(sys.argv) <= 3:
        sys.exit(__doc__)
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{int(sys.argv[1])}/metrics", timeout=5) as answer:
            text = answer.read().decode()
    except OSError as error:
        sys.exit(f"probe.py: port {sys.argv[1]} does not answer: {error}")
    if len(sys.argv) == 2:
        return
    ages = [float(age) for age in re.findall(r'^clinfer_last_frame_age_seconds\{[^}]*pad="src"[^}]*\} (\S+)', text, re.MULTILINE)]
    if not ages or min(ages) > float(sys.argv[2]):
        sys.exit(f"probe.py: the last frame of any camera was {min(ages):.0f} s ago" if ages else "probe.py: no camera has had a frame")


if __name__ == "__main__":
    main()
