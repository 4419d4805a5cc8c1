"""Accuracy of the model file on generated frames and on those of videotestsrc."""
import subprocess
import sys

import numpy as np

from ball.pictures import annotate, write_sheet
from ball.scenes import NET_W, Scenes, generated_frames, resize


class Tally:
    """Counts frames with exactly the right detections, and what went wrong in the others."""

    def __init__(self):
        self.frames = self.right = self.balls = self.found = self.false = self.empty = 0
        self.empty_right = 0
        self.ious = []

    def add(self, truth, boxes, scores):
        order = np.argsort(-scores, kind='stable')
        free, hits = list(range(len(truth))), 0
        for i in order:
            ious = [iou_of(truth[t], boxes[i]) for t in free]
            if ious and max(ious) >= 0.5:
                self.ious.append(max(ious))
                free.pop(int(np.argmax(ious)))
                hits += 1
        self.frames += 1
        self.balls += len(truth)
        self.found += hits
        self.false += len(boxes) - hits
        ok = hits == len(truth) == len(boxes)
        self.right += ok
        if len(truth) == 0:
            self.empty += 1
            self.empty_right += ok
        return ok

    def report(self):
        return (f'{self.right}/{self.frames} frames right = {100 * self.right / self.frames:.2f} %; '
                f'balls found {self.found}/{self.balls}, mean IoU '
                f'{np.mean(self.ious) if self.ious else 0:.3f}; false detections {self.false}; '
                f'frames without a ball right {self.empty_right}/{self.empty}')


def iou_of(a, b):
    w = min(a[2], b[2]) - max(a[0], b[0])
    h = min(a[3], b[3]) - max(a[1], b[1])
    if w <= 0 or h <= 0:
        return 0.0
    area = lambda t: (t[2] - t[0]) * (t[3] - t[1])
    return w * h / (area(a) + area(b) - w * h)


class Detector:
    """The model file on OpenVINO's CPU device."""

    def __init__(self, path):
        import openvino as ov
        self.compiled = ov.Core().compile_model(path, 'CPU', {'INFERENCE_PRECISION_HINT': 'f32'})

    def __call__(self, image, threshold=0.5):
        """image [3, NET_H, NET_W] -> boxes [D, 4] in 0..1, scores [D]."""
        rows = self.compiled(image[None])[0].reshape(-1, 7)
        end = np.flatnonzero(rows[:, 0] < 0)  # DetectionOutput ends its list with image id -1
        rows = rows[:end[0]] if len(end) else rows
        rows = rows[(rows[:, 2] >= threshold) & (rows[:, 1] == 1)]
        return rows[:, 3:7], rows[:, 2]


def command_evaluate(args):
    detector, tally = Detector(args.model), Tally()
    sizes, wrong = {}, []
    for image, truth, frame in generated_frames(args.frames, args.seed, args.plain):
        boxes, scores = detector(image)
        ok = tally.add(truth, boxes, scores)
        if len(truth) == 1:
            across = (truth[0][2] - truth[0][0]) * NET_W
            key = next(k for k in (6, 10, 20, 50, 1000) if across < k)
            good, total = sizes.get(key, (0, 0))
            sizes[key] = (good + ok, total + 1)
        if not ok and args.wrong:
            wrong.append(annotate(image, truth, boxes))
    print(tally.report())
    for key, (good, total) in sorted(sizes.items()):
        print(f'  one ball, less than {key} network pixels wide: {good}/{total}')
    if wrong:
        write_sheet(args.wrong, wrong[:48])


def source_frames(width, height, count, options, convert=''):
    """BGR frames [H, W, 3] of videotestsrc."""
    stride = (width * 3 + 3) // 4 * 4
    line = (f'gst-launch-1.0 -q videotestsrc pattern=ball num-buffers={count} {options} ! {convert} '
            f'video/x-raw,format=BGR,width={width},height={height} ! fdsink')
    with subprocess.Popen(line.split(), stdout=subprocess.PIPE) as process:
        while True:
            data = process.stdout.read(stride * height)
            if len(data) < stride * height:
                break
            yield np.frombuffer(data, np.uint8).reshape(height, stride)[:, :width * 3].reshape(
                height, width, 3)
    if process.returncode:
        sys.exit(f'failed: {line}')


def without_lines(mask):
    """Morphological opening, 5x5: the lines that motion=sweep draws are one pixel wide."""
    for axis in (0, 1):
        m = mask
        for shift in (1, 2, -1, -2):
            m = m & np.roll(mask, shift, axis)
        mask = m
    for axis in (0, 1):
        m = mask
        for shift in (1, 2, -1, -2):
            m = m | np.roll(mask, shift, axis)
        mask = m
    return mask


def command_videotestsrc(args):
    detector, whole = Detector(args.model), Tally()
    variants = [f'motion={m}' for m in ('wavy', 'sweep', 'hsweep')]
    variants += ['motion=wavy animation-mode=running-time', 'motion=wavy flip=true',
                 'foreground-color=0xffff0000 background-color=0xff00ff00',
                 'foreground-color=0xff202080 background-color=0xffc0c0c0']
    for width, height in ((160, 120), (320, 240), (640, 480), (1280, 720), (1920, 1080)):
        for options in variants:
            for through in ('', 'NV12'):
                convert = (f'video/x-raw,format=NV12,width={width},height={height} ! videoconvert !'
                           if through else '')
                if through and options != 'motion=wavy':
                    continue
                tally, low = Tally(), 1.0
                for frame in source_frames(width, height, args.frames, options, convert):
                    corner = frame[[0, 0, -1, -1], [0, -1, 0, -1]].astype(int)
                    background = np.median(corner, 0)
                    apart = np.abs(frame.astype(int) - background).max(2)
                    ys, xs = np.where(without_lines(apart > apart.max() / 2))
                    truth = np.array([[xs.min() / width, ys.min() / height, (xs.max() + 1) / width,
                                       (ys.max() + 1) / height]])
                    image = np.ascontiguousarray(resize(frame).transpose(2, 0, 1))
                    boxes, scores = detector(image)
                    tally.add(truth, boxes, scores)
                    whole.add(truth, boxes, scores)
                    if len(scores):
                        low = min(low, scores.max())
                print(f'{width}x{height} {through} {options}: {tally.right}/{tally.frames}, IoU mean '
                      f'{np.mean(tally.ious or 0):.3f} least {np.min(tally.ious or 0):.3f}, least confidence '
                      f'{low:.3f}', flush=True)
    print(whole.report())


def command_show(args):
    detector = Detector(args.model) if args.model else None
    tiles = []
    for image, truth, _ in generated_frames(args.frames, args.seed):
        tiles.append(annotate(image, truth, detector(image)[0] if detector else []))
    write_sheet(args.out, tiles)


def command_selftest(args):
    """The tap renderer against whole frames and the numpy resize."""
    import torch
    generator = torch.Generator('cpu')
    generator.manual_seed(args.seed)
    worst = 0.0
    for _ in range(args.frames):
        scene = Scenes(1, generator)
        taps = scene.network_input()[0].numpy()
        px = torch.arange(int(scene.w[0])).view(1, -1)
        py = torch.arange(int(scene.h[0])).view(1, -1)
        frame = scene.render(px, py)[0].permute(1, 2, 0).numpy().astype(np.uint8)
        difference = np.abs(resize(frame).transpose(2, 0, 1) - taps)
        worst = max(worst, float(difference.max()))
        if difference.max() > 1.01:  # one level: rounding of a colour just at the half
            sys.exit(f'{frame.shape}: differs by {difference.max()}')
    print(f'{args.frames} frames, largest difference {worst:.4f} of 255')
