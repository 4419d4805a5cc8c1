#!/usr/bin/env python3
"""Draws the pictures of the lines in pipelines/README.md: runs each line on a drawn scene, with real models, and keeps a frame.

    lines_pictures.py MODELS OUT_FOLDER      MODELS: ../shared/data/models; needs numpy, PIL, GST_PLUGIN_PATH as in the environment
"""
import pathlib
import shlex
import subprocess
import sys
import tempfile

from PIL import Image

import drawn_scenes as scenes


def launch(line):
    run = subprocess.run(["gst-launch-1.0", "-q", *shlex.split(line)], capture_output=True, text=True, timeout=600)
    if run.returncode != 0 or "WARNING" in run.stderr:
        sys.exit(f"{line}\n{run.stdout}{run.stderr}")
    return run.stdout


def video(folder, name, scene, frames):
    """A motion JPEG file of 10 frames a second."""
    raw, path = folder / "raw", folder / f"{name}.avi"
    raw.write_bytes(b"".join(scene(n).bytes() for n in range(frames)))
    launch(f"filesrc location={raw} ! rawvideoparse format=rgb width=640 height=360 framerate=10/1 ! videoconvert ! jpegenc quality=95 "
           f"! avimux ! filesink location={path}")
    return path


def main():
    models, out = (pathlib.Path(p) for p in sys.argv[1:])
    model = {key: next((models / name).glob("*.xml")) for key, name in (
        ("person", "person-detection-retail-0013_FP32"), ("face", "face-detection-retail-0004_FP32"),
        ("plate", "vehicle-license-plate-detection-barrier-0106_INT8"), ("text", "license-plate-recognition-barrier-0001_FP16"))}
    letters = models.parent / "labels/lpr.txt"
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)

        def frames(line):
            """The pictures at the end of a line."""
            for old in folder.glob("*.png"):
                old.unlink()
            lines = launch(f"{line} ! videoconvert ! pngenc ! multifilesink location={folder}/%05d.png")
            return [Image.open(path).convert("RGB") for path in sorted(folder.glob("*.png"))], lines

        def keep(image, name):
            image.save(out / f"{name}.png", optimize=True)

        def source(path):
            return f"filesrc location={path} ! decodebin ! videoconvert"

        door = video(folder, "door", scenes.door, 60)
        pictures, lines = frames(f"{source(door)} ! clinfer model={model['person']} labels=background,person first-tier=false inference-interval=3 "
                                 f'! cltrack object-class=person ! clzones lines="door:0.3,0.7,0.7,0.7" ! cloverlay trail-length=30 ! clpublish')
        keep(pictures[33], "line-door")
        print("door:", lines.splitlines()[-1][-300:])
        road = video(folder, "road", scenes.road, 40)
        pictures, lines = frames(f"{source(road)} ! clinfer model={model['plate']} labels=background,vehicle,plate threshold=0.3 first-tier=false ! cltrack "
                                 f"! clinfer model={model['text']} labels-file={letters} first-tier=false inference-region=roi-list object-class=plate "
                                 "reclassify-interval=0 ! cloverlay ! clpublish")
        keep(pictures[30], "line-plate")
        print("plate:", lines.splitlines()[30])
        print("inferences of the text:", sum('"held":true' not in line and '"text"' in line for line in lines.splitlines()))
        talk = video(folder, "talk", scenes.talk, 40)
        pictures, _ = frames(f"{source(talk)} ! clinfer model={model['face']} labels=background,face first-tier=false inference-interval=2 "
                             "! cltrack min-hits=1 ! cloverlay privacy=blur show-boxes=false show-labels=false show-scores=false")
        keep(pictures[21], "line-blur")
        root = pathlib.Path(__file__).resolve().parents[2]
        subprocess.run(["/usr/bin/python3", str(root / "pipelines/examples/record_events.py"), source(door),
                        f"clinfer model={model['person']} labels=background,person first-tier=false ! cltrack "
                        '! clzones lines="door:0.3,0.7,0.7,0.7"', "--before", "1", "--after", "1", "--clips", f"{folder}/clip-%05d.mkv",
                        "--encoder", "videoconvert ! vp8enc deadline=1 target-bitrate=2000000 keyframe-max-dist=5"], check=True)
        pictures, _ = frames(f"filesrc location={folder}/clip-00000.mkv ! decodebin")
        strip = Image.new("RGB", (800, 90))
        for i in range(5):
            strip.paste(pictures[i * (len(pictures) - 1) // 4].resize((160, 90), Image.LANCZOS), (i * 160, 0))
        keep(strip, "line-clip")
        print("clip:", len(pictures), "frames")
        cameras = " ".join(
            f"{source(door)} ! videobalance hue={n / 8 - 1} ! videoflip method={'none' if n % 3 else 'horizontal-flip'} "
            f"! videocrop left=140 right=140 top=60 bottom=98 ! clinfer model={model['person']} labels=background,person "
            f"first-tier=false model-instance-id=all batch-size=4 ! cltrack ! cloverlay show-labels=false show-scores=false color-by=track ! clpublish file-path={folder}/{n}.jsonl source=camera-{n} "
            f"! queue ! wall.sink_{n}" for n in range(16))
        places = " ".join(f"sink_{n}::xpos={n % 4 * 160} sink_{n}::ypos={n // 4 * 90} sink_{n}::width=160 sink_{n}::height=90" for n in range(16))
        pictures, _ = frames(f"{cameras} compositor name=wall {places}")
        keep(pictures[33], "line-cameras")


if __name__ == "__main__":
    main()
