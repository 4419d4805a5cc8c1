#!/usr/bin/env python3
"""How often the first choice of `clinfer doctor` is right, on models whose preprocessing is known.

    doctor.py CLINFER SHARED [--seconds S] [--only NAME,...] [--json FILE]

SHARED/data/manifest.json states the order of colours, mean and scale of each model; the videos are those that show what the model finds. A
choice is right where colours and range are those (an input of one channel has no order). Resizing is not judged: the manifest's pictures
are stretched, also where authors letterbox.
"""
import argparse
import json
import pathlib
import subprocess
import sys

FACES, PEOPLE, STREET, HANDS = ("head-pose-face-detection-female-and-male-preview.mp4", "one-by-one-person-detection.mp4",
                                "person-bicycle-car-detection-preview.mp4", "asl-again.mkv")
CARS, SHOP, BOTTLES = "car-detection.mp4", "store-aisle-detection-preview.mp4", "bottle-detection.mp4"
VIDEOS = (("blazeface", FACES), ("face-detection", FACES), ("ultraface", FACES), ("yunet", FACES), ("facemesh", FACES), ("age-gender", FACES),
          ("emotions", FACES), ("landmarks", FACES), ("head-pose", FACES), ("face-reid", FACES), ("open-closed", FACES), ("palm", HANDS),
          ("blazepose", PEOPLE), ("human-pose", PEOPLE), ("person-detection", PEOPLE), ("osnet", PEOPLE), ("person-reid", PEOPLE),
          ("person-attributes", PEOPLE), ("vww", PEOPLE), ("deeplab", SHOP), ("vehicle", CARS), ("resnet8", CARS), ("mobilenet", BOTTLES),
          ("person-vehicle", STREET), ("pedestrian", STREET), ("nanodet", STREET), ("yolox", STREET), ("ppocr", SHOP))


def three(value):
    return [float(v) for v in value] if isinstance(value, list) else [float(value)] * 3


def is_close(a, b, allowed):
    return all(abs(x - y) <= allowed + 0.03 * abs(y) for x, y in zip(three(a), three(b)))


def is_right(way, facts):
    said = dict(p.split("=", 1) for p in way["properties"])
    mean, scale = ([float(v) for v in said[k].split(",")] for k in ("mean", "scale"))
    mean, scale = (v * 3 if len(v) == 1 else v for v in (mean, scale))
    return (said.get("color-format", "gray") == facts["color"].lower() and is_close(mean, facts["mean"], 1.5)
            and is_close(scale, facts["scale"], 0.01))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("clinfer")
    parser.add_argument("shared", type=pathlib.Path)
    parser.add_argument("--seconds", type=float, default=25)
    parser.add_argument("--only", default="")
    parser.add_argument("--json", type=pathlib.Path, metavar="FILE")
    args = parser.parse_args()
    data = args.shared / "data"
    right = decided = decided_right = own_right = asked = 0
    rows = []
    for model in json.loads((data / "manifest.json").read_text(encoding="utf-8"))["models"]:
        name, facts = model["name"], model["preprocess"]
        video = next((v for part, v in VIDEOS if name.startswith(part)), None)
        if video is None or len(model["inputs"]) > 1 or (args.only and name not in args.only.split(",")):
            continue
        run = subprocess.run([args.clinfer, "doctor", str(data / "models" / name / f"{name}.xml"), "--video", str(data / "videos" / video),
                              "--seconds", str(args.seconds), "--only-ways", "--json"], capture_output=True, text=True, timeout=900)
        if run.returncode != 0:
            print(f"{name}: {run.stderr.strip().splitlines()[-1]}", flush=True)
            continue
        report = json.loads(run.stdout)
        first, own = report["ways"][0], report["ways"][report["own"]]
        asked += 1
        right += is_right(first, facts)
        own_right += is_right(own, facts)
        decided += report["decided"]
        decided_right += report["decided"] and is_right(first, facts)
        rows.append({"model": name, "right": is_right(first, facts), "own_right": is_right(own, facts), "decided": report["decided"],
                     "first": first["way"], "own": own["way"], "evidence": first["evidence"], "own_evidence": own["evidence"]})
        print(f"{'right' if rows[-1]['right'] else 'WRONG':5}  {'decided' if report['decided'] else 'open':7}  own {'right' if is_right(own, facts) else 'WRONG'}"
              f"  {name}: {first['way']} ({first['evidence']:.3f}; own {own['way']}: {own['evidence']:.3f})", flush=True)
    if args.json:
        args.json.write_text(json.dumps(rows, indent=1), encoding="utf-8")
    print(f"first choice right: {right} of {asked}; where the data decide: {decided_right} of {decided}; by the elements alone: {own_right}")
    return 0 if asked else 1


sys.exit(main())
