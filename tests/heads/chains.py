#!/usr/bin/env python3
"""Second stages that find points of a region: objects, ids and answers are the same with and without them, and the points are the object's.

    chains.py      the plug-in is found by the environment (GST_PLUGIN_PATH); needs numpy (exit status 77 without)

Writes a detector of two faces and second stages whose outputs are constants, and compares what clpublish writes: of each stage alone,
of two stages of points, and of a classifier after them. MediaPipe's chain of poses is there as a whole.
"""
import json
import struct
import subprocess
import sys
import tempfile
import zlib

import other_python

try:
    import numpy as np
    from ir import Ir, write_constants
except ImportError:
    other_python.retry("numpy")

F = np.float32
FRAME = (640, 480)
# Corners in shares of the frame.
FACES = ((.1, .2, .3, .6), (.5, .1, .9, .8))


def detector(folder):
    boxes, scores, labels = np.zeros((1, 2, 4), F), np.array([[.9, .8]], F), np.zeros((1, 2), np.int32)
    boxes[0] = np.array(FACES) * 320
    write_constants(folder, "faces", ("images", (1, 3, 320, 320), F), [("num_dets", np.array([[2]], np.int32)), ("boxes", boxes), ("scores", scores), ("labels", labels)])


def mesh(rng):
    points = rng.uniform(10, 180, (468, 3)).astype(F)
    return 192, [("landmarks", points.reshape(1, 1, 1, 1404)), ("score", np.array([[4]], F))], points[:, :2] / 192, "landmarks"


def shares(rng):
    points = rng.uniform(.1, .9, (98, 2)).astype(F)
    return 112, [("landmarks", points.reshape(1, 196))], points, "landmarks"


def movenet(rng):
    points = rng.uniform(.1, .9, (17, 3)).astype(F)
    points[:, 2] = .8
    return 192, [("output_0", points.reshape(1, 1, 17, 3))], points[:, 1::-1], "keypoints"


def heatmaps(rng):
    maps, cells = np.zeros((1, 17, 64, 48), F), []
    for k in range(17):
        x, y = int(rng.integers(1, 47)), int(rng.integers(1, 63))
        maps[0, k, y, x] = .9
        cells.append(((4 * x + .5) / 192, (4 * y + .5) / 256))
    return (192, 256), [("heatmaps", maps)], np.array(cells), "keypoints"


def five(_):
    """O-Net: a face that fills its region but for a tenth on each side."""
    return 48, [("prob", np.array([[.1, .9]], F)), ("offsets", np.array([[.1, .1, -.1, -.1]], F)), ("points", np.linspace(.2, .8, 10, dtype=F)[None])], \
        np.stack([np.linspace(.2, .8, 10)[:5], np.linspace(.2, .8, 10)[5:]], 1), "landmarks"


def classifier(folder):
    write_constants(folder, "mood", ("images", (1, 3, 64, 64), F), [("mood", np.array([[0, 9, 0]], F))], info={"model_type": "classification", "labels": "calm glad sad"})


BLACK = f"videotestsrc pattern=black num-buffers=4 ! video/x-raw,format=BGR,width={FRAME[0]},height={FRAME[1]},framerate=10/1"


def play(*elements, source=BLACK):
    command = ["gst-launch-1.0", "-q", *source.split()]
    for element in (*elements, "clpublish", "fakesink"):
        command += ["!", *element.split()]
    result = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    lines = [json.loads(line) for line in result.stdout.splitlines() if line.startswith("{")]
    if len(lines) != 4:
        raise ValueError((result.stderr.strip().splitlines() or ["no lines"])[-1])
    return lines


def summary(lines, moved=False):
    """What must not depend on a stage of points: objects with their ids, boxes (unless it moves them) and moods."""
    return [[(o.get("id"), o.get("roi_type"), o.get("mood", {}).get("label"), None if moved else o["detection"]["bounding_box"]) for o in line["objects"]] for line in lines]


def turned(face, points, low, high):
    """Where points of a region lie whose network gets it turned about its middle so that the way from a point to another leads up."""
    x0, y0, x1, y1 = face
    middle, size = np.array([x0 + x1, y0 + y1]) / 2 * FRAME, np.array([x1 - x0, y1 - y0]) * FRAME
    x, y = (high - low) * size
    angle = np.arctan2(x, -y)
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    placed = middle + ((np.array(points) - .5) * size) @ turn.T
    return (placed / FRAME - (x0, y0)) / (x1 - x0, y1 - y0)


def upright(face, points, low, high):
    """Where points of a region lie whose network gets it in the quarter turn in which the way from a point to another leads up."""
    x0, y0, x1, y1 = face
    x, y = (high - low) * (np.array([x1 - x0, y1 - y0]) * FRAME)
    turn = (lambda u, v: (u, v) if y <= 0 else (1 - u, 1 - v)) if abs(y) >= abs(x) else (lambda u, v: (1 - v, u) if x > 0 else (v, 1 - u))
    return [turn(*point) for point in points]


def wrong_points(lines, points, kind, place=lambda face, points: points):
    for line in lines:
        for o in line["objects"]:
            x0, y0, x1, y1 = min(FACES, key=lambda f: abs(f[0] - o["x"] / FRAME[0]))
            found = [(p["x"], p["y"]) for p in o.get(kind, [])]
            right = [(x0 + x * (x1 - x0), y0 + y * (y1 - y0)) for x, y in place((x0, y0, x1, y1), points)]
            if len(found) != len(right):
                return f"{len(found)} {kind} where {len(right)} are right"
            far = np.abs(np.array(found) - right).max()
            if far > .01:
                return f"{kind} lie {far:.3f} away"
    return ""


# ---- hands and faces that lie aslant in the picture

DOTS = ((255, 0, 0), (0, 255, 0), (0, 0, 255))      # wrist, finger, thumb; or an eye, the other eye, the chin


def dot_finder(folder):
    """A network that finds the middle of each colour, as landmarks of its input, twice, because four points are the fewest."""
    ir, size = Ir(), 96
    picture = ir.parameter("images", (1, 3, size, size), F)
    bright = ir.layer("ReLU", "bright", {}, [ir.layer("Subtract", "above", {"auto_broadcast": "numpy"}, [picture, ir.constant(F(.35))], [(F, (1, 3, size, size))])], [(F, (1, 3, size, size))])
    axes, least = ir.constant(np.array([2, 3], np.int64)), ir.constant(F(1e-6))

    def total(edge, name):
        return ir.layer("ReduceSum", name, {"keep_dims": "false"}, [edge, axes], [(F, (1, 3))])

    amount = ir.layer("Add", "amount", {"auto_broadcast": "numpy"}, [total(bright, "sum"), least], [(F, (1, 3))])
    ways, places = np.meshgrid((np.arange(size, dtype=F) + F(.5)) / size, (np.arange(size, dtype=F) + F(.5)) / size), []
    for name, way in zip("xy", ways):
        weighted = ir.layer("Multiply", f"weighted_{name}", {"auto_broadcast": "numpy"}, [bright, ir.constant(way.reshape(1, 1, size, size))], [(F, (1, 3, size, size))])
        share = ir.layer("Divide", f"share_{name}", {"auto_broadcast": "numpy"}, [total(weighted, f"sum_{name}"), amount], [(F, (1, 3))])
        places.append(ir.layer("Unsqueeze", f"column_{name}", {}, [share, ir.constant(np.array([2], np.int64))], [(F, (1, 3, 1))]))
    points = ir.layer("Concat", "points", {"axis": 2}, places, [(F, (1, 3, 2))])
    twice = ir.layer("Concat", "twice", {"axis": 1}, [points, points], [(F, (1, 6, 2))])
    row = ir.layer("Reshape", "landmarks", {"special_zero": "false"}, [twice, ir.constant(np.array([1, 12], np.int64))], [(F, (1, 12))], "landmarks")
    ir.layer("Result", "landmarks/result", {}, [row], [])
    ir.save(f"{folder}/dots-landmarks", "dots-landmarks", {})


def slanted(path, middle, angle, side):
    """Writes a picture with three dots of a hand whose finger is `angle` clockwise from above its wrist. Returns the dots in pixels."""
    ways = np.array([(0, .5), (0, -.5), (.4, .1)]) * side
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    dots = np.array(middle) + ways @ turn.T
    y, x = np.mgrid[0:FRAME[1], 0:FRAME[0]] + .5
    picture = np.zeros((FRAME[1], FRAME[0], 3), np.uint8)
    for (at_x, at_y), color in zip(dots, DOTS):
        picture[np.hypot(x - at_x, y - at_y) < side * .08] = color
    rows = b"".join(b"\0" + line.tobytes() for line in picture)

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    with open(path, "wb") as file:
        file.write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", *FRAME, 8, 2, 0, 0, 0)) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))
    return dots


def palm(folder, dots, side):
    """A detector that finds the palm around the wrist and the finger, and a stage that gives it the dots as landmarks, as a palm's detector does."""
    x0, y0, x1, y1 = (*((dots[0] + dots[1]) / 2 - side / 2), *((dots[0] + dots[1]) / 2 + side / 2))
    box = np.array([x0 / FRAME[0], y0 / FRAME[1], x1 / FRAME[0], y1 / FRAME[1]])
    inside = np.clip(box, 0, 1)
    write_constants(folder, "palms", ("images", (1, 3, 320, 320), F), [("num_dets", np.array([[1]], np.int32)), ("boxes", (inside[None, None] * 320).astype(F)), ("scores", F([[.9]])), ("labels", np.zeros((1, 1), np.int32))])
    rect = np.round(inside * [*FRAME, *FRAME])
    marks = np.tile(((dots[0] - rect[:2]) / (rect[2:] - rect[:2])), (98, 1))
    marks[1] = (dots[1] - rect[:2]) / (rect[2:] - rect[:2])
    write_constants(folder, "marks-landmarks", ("images", (1, 3, 64, 64), F), [("landmarks", marks.astype(F).reshape(1, 196))])


def hands(folder, check):
    """The dots of a slanted hand are found where they are, whatever its angle and place, at the edges too, on both tiers, in batches and in f16."""
    dot_finder(folder)
    side = 100
    aslant, quarter = "region-turn=0>1", "region-turn=0>1,up,quarter"
    for number, (middle, angle, turn, more) in enumerate((
            ((320, 240), .5, aslant, ""), ((320, 240), -1.9, aslant, "batch-size=4"), ((200, 300), 2.6, aslant, "config=INFERENCE_PRECISION=f16"),
            ((60, 70), .7, aslant, ""), ((590, 420), -2.3, aslant, ""), ((320, 240), 0, aslant, ""),
            ((60, 70), .7, "", ""), ((590, 420), -2.3, "", "batch-size=2"), ((580, 60), 1.4, quarter, ""), ((60, 420), 3, quarter, "config=INFERENCE_PRECISION=f16"))):
        dots = slanted(f"{folder}/hand.png", middle, angle, side)
        palm(folder, dots, side)
        stages = [f"clinfer model={folder}/palms.xml labels=palm device=CPU", f"clinfer model={folder}/marks-landmarks.xml inference-region=roi-list resize-mode=stretch device=CPU",
                  f"clinfer model={folder}/dots-landmarks.xml inference-region=roi-list device=CPU resize-mode=letterbox color-format=rgb mean=0 scale=255 region-margin=0.4 region-shape=square {turn} {more}", "cltrack"]
        source = f"filesrc location={folder}/hand.png ! pngdec ! imagefreeze num-buffers=4 ! videoconvert ! video/x-raw,format={'NV12' if number % 2 else 'RGB'},framerate=10/1"
        lines = play(*stages, source=source)
        why = ""
        for line in lines:
            objects = line["objects"]
            found = [(p["x"] * FRAME[0], p["y"] * FRAME[1]) for p in objects[0].get("landmarks", [])] if len(objects) == 1 else []
            if len(found) != 6:
                why = f"{len(objects)} objects, {len(found)} points"
            elif np.abs(np.array(found) - np.tile(dots, (2, 1))).max() > 2.5:
                why = f"points {np.round(found, 1).tolist()} where {np.round(dots, 1).tolist()} are right"
        check(f"hand at {middle}, turned by {angle} {turn} {more}", why)


# ---- MediaPipe's poses: the detector of persons, 33 points of each, the tracker and a classifier in one line

# Middle of the hips and a point of the circle around the person, in shares of the frame: upright, aslant, and at an edge upside down.
PERSONS = (((.25, .5), (.25, .2)), ((.55, .55), (.75, .35)), ((.9, .4), (.88, .7)))


def persons(folder):
    """The detector's rows for its 2254 anchors: a box and four points, of which the first two are those of PERSONS."""
    middles = np.array([((x + .5) * s, (y + .5) * s) for s, each in ((8, 2), (16, 2), (32, 6)) for y in range(224 // s) for x in range(224 // s) for _ in range(each)])
    rows, scores = np.zeros((1, len(middles), 12), F), np.full((1, len(middles), 1), -20, F)
    for hips, reach in PERSONS:
        at = np.abs(middles - np.array(hips) * 224).sum(1).argmin()
        rows[0, at, :4] = (*(np.array(hips) * 224 - middles[at]), 40, 50)
        rows[0, at, 4:] = (np.tile([hips, reach], (2, 1)) * 224 - middles[at]).ravel()
        scores[0, at] = 3
    write_constants(folder, "persons", ("images", (1, 3, 224, 224), F), [("boxes", rows), ("scores", scores)])


def body(folder, rng):
    points = np.zeros((39, 5), F)  # the last six are not the body's
    points[:, :2], points[:, 3:] = rng.uniform(20, 236, (39, 2)), 6
    write_constants(folder, "body-landmark", ("images", (1, 3, 256, 256), F), [("ld_3d", points.reshape(1, 195)), ("output_poseflag", F([[.9]]))])
    return points[:33, :2] / 256


def wrong_bodies(lines, points, margin):
    """Where the points lie of squares around the hips, as large as the way to the second point says, turned until that leads up."""
    for line in lines:
        if len(line["objects"]) != len(PERSONS):
            return f"{len(line['objects'])} objects"
        for o in line["objects"]:
            hips, reach = min((np.array(p) * FRAME for p in PERSONS), key=lambda p: abs(p[0] - (o["x"] + o["w"] / 2, o["y"] + o["h"] / 2)).sum())
            x, y = reach - hips
            angle, side = np.arctan2(x, -y), 2 * np.hypot(x, y) * (1 + 2 * margin)
            right = hips + (points - .5) * side @ np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]]).T
            found = np.array([(p["x"] * FRAME[0], p["y"] * FRAME[1]) for p in o.get("keypoints", [])])
            if found.shape != right.shape or np.abs(found - right).max() > 2.5:
                return f"{len(found)} points, {'' if found.shape != right.shape else np.abs(found - right).max():} pixels away"
            if len(o.get("landmarks", [])) != 4:
                return f"{len(o.get('landmarks', []))} points of the detector are left"
    return ""


def poses(folder, rng, check):
    persons(folder)
    points = body(folder, rng)
    first = f"clinfer model={folder}/persons.xml resize-mode=stretch"
    last = f"clinfer model={folder}/mood.xml inference-region=roi-list object-class=person"
    plain = play(first, "cltrack", last)
    check("poses without their points", "" if all(len({o["id"] for o in line["objects"]}) == len(PERSONS) and all(o["mood"]["label"] == "glad" for o in line["objects"]) for line in plain) else f"{summary(plain)[-1]}")
    for more in ("", "config=INFERENCE_PRECISION=f16"):
        middle = f"clinfer model={folder}/body-landmark.xml inference-region=roi-list object-class=person region-reach=0>1 region-turn=0>1 region-margin=0.125 {more}"
        for where, lines in (("before the tracker", play(first, middle, "cltrack", last)), ("after it", play(first, "cltrack", middle, last)), ("at the end", play(first, "cltrack", last, middle))):
            check(f"poses {where} {more}", "" if summary(lines) == summary(plain) else f"{summary(lines)[-1]} where {summary(plain)[-1]} is right")
            check(f"poses {where} {more}, points", wrong_bodies(lines, points, .125))


def main():
    rng, wrong = np.random.default_rng(5), 0
    with tempfile.TemporaryDirectory() as folder:
        detector(folder)
        classifier(folder)
        first = f"clinfer model={folder}/faces.xml labels=face"
        last = f"clinfer model={folder}/mood.xml inference-region=roi-list object-class=face"
        plain = play(first, "cltrack", last)
        stages, places = {}, {}
        for name, make in (("facemesh", mesh), ("pfld-landmarks", shares), ("movenet", movenet), ("hrnet", heatmaps), ("onet", five)):
            size, outputs, points, kind = make(rng)
            w, h = size if isinstance(size, tuple) else (size, size)
            write_constants(folder, name, ("images", (1, 3, h, w), F), outputs)
            stages[name] = f"clinfer model={folder}/{name}.xml inference-region=roi-list object-class=face resize-mode=stretch"
            places[name] = points

            def check(said, why):
                nonlocal wrong
                wrong += bool(why)
                print(f"FAIL {said}: {why}" if why else f"ok   {said}", flush=True)

            for where, lines in (("before the tracker", play(first, stages[name], "cltrack", last)), ("after it", play(first, "cltrack", stages[name], last)),
                                 ("twice", play(first, stages[name], stages[name], "cltrack", last))):
                moves = name == "onet"
                same = summary(lines, moves) == summary(plain, moves)
                check(f"{name} {where}", "" if same else f"{summary(lines)[-1]} where {summary(plain)[-1]} is right")
                if not (moves and where == "twice"):  # it runs on the box that it has moved
                    check(f"{name} {where}, points", wrong_points(lines, points, kind))
        both = play(first, stages["facemesh"], stages["movenet"], "cltrack", last)
        same = summary(both) == summary(plain) and all(len(o["landmarks"]) == 468 and len(o["keypoints"]) == 17 for line in both for o in line["objects"])
        check("facemesh and movenet", "" if same else f"{summary(both)[-1]}")
        cropped = play(first, stages["movenet"] + " region-margin=0.1 region-shape=square", "cltrack", last)
        check("with a margin", "" if summary(cropped) == summary(plain) else f"{summary(cropped)[-1]}")
        marks = places["pfld-landmarks"]
        for low, high in ((0, 1), (1, 0), (2, 5), (5, 2), (3, 9), (9, 3)):
            for way, place in (("", turned), (",quarter", upright)):
                lines = play(first, stages["pfld-landmarks"], stages["movenet"] + f" region-turn={low}>{high}{way}", "cltrack", last)
                check(f"turned, {low}>{high}{way}", wrong_points(lines, places["movenet"], "keypoints", lambda face, points: place(face, points, marks[low], marks[high])))
                check(f"turned, {low}>{high}{way}, ids", "" if summary(lines) == summary(plain) else f"{summary(lines)[-1]} where {summary(plain)[-1]} is right")
        shifted = play(first, stages["movenet"] + " region-shift=0.05,-0.1")
        check("shifted", wrong_points(shifted, places["movenet"], "keypoints", lambda _, points: np.array(points) + (.05, -.1)))
        hands(folder, check)
        poses(folder, rng, check)
        whole = play(f"clinfer model={folder}/movenet.xml resize-mode=stretch", "cltrack")
        check("of the whole frame", "" if all(len(line["objects"]) == 1 and "detection" in line["objects"][0] for line in whole) else f"{summary(whole, True)[-1]}")
    print(f"{wrong} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
