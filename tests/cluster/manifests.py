#!/usr/bin/env python3
"""The Kubernetes manifests: their commands are the scripts' own, the launch lines are words that GStreamer knows, the rules that fail-over
needs are there, and probe.py tells cameras that flow from those that do not.

    manifests.py CLUSTER      the folder pipelines/cluster; exit status 77 without PyYAML
"""
import pathlib
import re
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

from site_of_nodes import check

AGES = 'clinfer_last_frame_age_seconds{{element="c",pad="sink"}} 0.1\nclinfer_last_frame_age_seconds{{element="c",pad="src",camera="a"}} {}\n'


def check_probe(probe):
    answers = iter(["", AGES.format(3), AGES.format(3), AGES.format(99), ""])

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.end_headers()
            self.wfile.write(next(answers).encode())

        def log_message(self, *_):
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    for words, status in (([], 0), ([], 0), (["60"], 0), (["60"], 1), (["60"], 1)):
        run = subprocess.run([sys.executable, probe, str(server.server_port), *words], capture_output=True, text=True, timeout=60)
        check(f"probe {words} ends with {run.returncode}: {run.stderr}", run.returncode == status)
    server.shutdown()
    server.server_close()
    run = subprocess.run([sys.executable, probe, str(server.server_port)], capture_output=True, text=True, timeout=60)
    check(f"no answer: {run.stderr}", run.returncode == 1 and "does not answer" in run.stderr)


def main():
    try:
        import yaml
    except ImportError as error:
        print(f"SKIPPED, {sys.executable}: {error}")
        sys.exit(77)
    folder = pathlib.Path(sys.argv[1])
    check_probe(folder / "probe.py")
    for name, kind in (("cameras.yaml", "Deployment"), ("recordings.yaml", "Job")):
        parts = list(yaml.safe_load_all((folder / "kubernetes" / name).read_text()))
        check(f"{name}: files and the work", [part["kind"] for part in parts] == ["ConfigMap", kind])
        site, work = parts
        pod = work["spec"]["template"]["spec"]
        container = pod["containers"][0]
        script, words = container["command"][1], container["command"][2:]
        helped = subprocess.run([sys.executable, folder / script, "--help"], capture_output=True, text=True, timeout=60).stdout
        for word in words:
            check(f"{name}: {script} knows {word}", not word.startswith("--") or word in helped)
            if word.startswith("/site/"):
                check(f"{name}: {word} is in the ConfigMap", word.removeprefix("/site/") in site["data"])
        volumes = {volume["name"] for volume in pod["volumes"]}
        check(f"{name}: volumes", volumes == {mount["name"] for mount in container["volumeMounts"]})
        tolerated = {t["key"]: t["tolerationSeconds"] for t in pod["tolerations"]}
        check(f"{name}: a lost machine", tolerated == {"node.kubernetes.io/unreachable": 10, "node.kubernetes.io/not-ready": 10})
        for launch in (text for file, text in site["data"].items() if file.endswith(".launch")):
            beside = (folder / ("camera.launch" if kind == "Deployment" else "recording.launch")).read_text()
            check(f"{name}: the launch line beside it", launch.split() == beside.split())
            for element in re.findall(r"(?:^|! )\s*(cl\w+)", launch):
                run = subprocess.run(["gst-inspect-1.0", element], capture_output=True, text=True, timeout=60)
                check(f"{name}: {element}", run.returncode == 0)
        if kind == "Deployment":
            check("one pod a group", work["spec"]["replicas"] == 1 and work["spec"]["strategy"]["type"] == "Recreate")
            for probe in ("startupProbe", "livenessProbe"):
                check(f"{probe} runs probe.py", container[probe]["exec"]["command"][1:3] == ["probe.py", "9464"])
        else:
            share = next(word for word in words if word.startswith("$(JOB_COMPLETION_INDEX)/"))
            check("every pod knows how many there are", share == f"$(JOB_COMPLETION_INDEX)/{work['spec']['completions']}")
            check("an indexed job", work["spec"]["completionMode"] == "Indexed")
    print("ok")


if __name__ == "__main__":
    main()
