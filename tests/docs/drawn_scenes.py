"""Drawn people, faces and cars that real detectors find, for pictures that may be shown to anybody. Needs numpy and PIL."""
import math

import numpy as np
from PIL import Image, ImageDraw, ImageFont

FONT = "/usr/share/fonts/truetype/dejavu/DejaVuSansCondensed-Bold.ttf"
SKIN, HAIR, GREY = (224, 180, 150), (60, 40, 30), (45, 48, 60)


def darker(color, by):
    return tuple(v * by for v in color)


class Picture:
    """RGB; y counts down. Shapes have soft edges, and `light` from the upper left."""

    def __init__(self, width, height, top=(200, 205, 210), bottom=(150, 150, 148)):
        share = np.linspace(0, 1, height)[:, None, None]
        self.pixels = (np.array(top) * (1 - share) + np.array(bottom) * share) * np.ones((1, width, 1))
        self.y, self.x = np.mgrid[0:height, 0:width].astype(float)

    def blend(self, cover, color, shade=None):
        cover = np.clip(cover, 0, 1)[..., None]
        color = np.array(color, float)
        if shade is not None:
            color = np.clip(color * shade[..., None], 0, 255)
        self.pixels = self.pixels * (1 - cover) + color * cover

    def ellipse(self, x, y, width, height, color, light=0, soft=1):
        across, down = (self.x - x) / width, (self.y - y) / height
        self.blend((1 - np.hypot(across, down)) * min(width, height) / soft + 0.5, color, 1 - light * (0.5 * across + 0.6 * down) if light else None)

    def box(self, left, top, right, bottom, color, radius=0, light=0):
        x, y = (left + right) / 2, (top + bottom) / 2
        across, down = np.abs(self.x - x) - (right - left) / 2 + radius, np.abs(self.y - y) - (bottom - top) / 2 + radius
        away = np.hypot(np.maximum(across, 0), np.maximum(down, 0)) + np.minimum(np.maximum(across, down), 0) - radius
        self.blend(0.5 - away, color, 1 - light * (self.y - y) / (bottom - top) if light else None)

    def polygon(self, points, color, light=0):
        """Of corners in clockwise order."""
        inside = np.full(self.x.shape, np.inf)
        for (ax, ay), (bx, by) in zip(points, points[1:] + points[:1]):
            inside = np.minimum(inside, ((bx - ax) * (self.y - ay) - (by - ay) * (self.x - ax)) / math.hypot(bx - ax, by - ay))
        ys = [y for _, y in points]
        self.blend(inside + 0.5, color, 1 - light * (self.y - sum(ys) / len(ys)) / (max(ys) - min(ys)) if light else None)

    def limb(self, ax, ay, bx, by, radius, color):
        dx, dy = bx - ax, by - ay
        along = np.clip(((self.x - ax) * dx + (self.y - ay) * dy) / max(dx * dx + dy * dy, 1e-6), 0, 1)
        self.blend(radius - np.hypot(self.x - ax - along * dx, self.y - ay - along * dy) + 0.5, color)

    def text(self, words, left, top, right, bottom, color):
        size = (480, round(480 * (bottom - top) / (right - left)))
        image = Image.new("L", size)
        ImageDraw.Draw(image).text((size[0] / 2, size[1] / 2), words, 255, ImageFont.truetype(FONT, round(size[1] * 0.8)), anchor="mm")
        box = [round(v) for v in (left, top, right, bottom)]
        small = np.asarray(image.resize((box[2] - box[0], box[3] - box[1]), Image.LANCZOS)) / 255
        cover = np.zeros(self.x.shape)
        height, width = (min(s, e - b) for s, e, b in zip(small.shape, cover.shape, (box[1], box[0])))
        if height > 0 and width > 0 and box[0] >= 0 and box[1] >= 0:
            cover[box[1]:box[1] + height, box[0]:box[0] + width] = small[:height, :width]
        self.blend(cover, color)

    def bytes(self):
        return np.clip(self.pixels, 0, 255).astype(np.uint8).tobytes()


def face(p, x, y, s, skin=SKIN, hair=HAIR, shirt=(60, 90, 150)):
    """s: half the width of the head."""
    p.ellipse(x, y + 2.9 * s, 2.1 * s, 1.7 * s, shirt, 0.3)
    p.box(x - .38 * s, y + .7 * s, x + .38 * s, y + 1.6 * s, darker(skin, .85), .2 * s)
    p.ellipse(x, y - .15 * s, 1.05 * s, 1.32 * s, hair, 0.3)
    for side in (-1, 1):
        p.ellipse(x + side * .93 * s, y + .1 * s, .14 * s, .25 * s, darker(skin, .9))
    p.ellipse(x, y + .12 * s, .9 * s, 1.15 * s, skin, 0.22)
    p.ellipse(x, y - .75 * s, .72 * s, .3 * s, hair, 0.2, 2)
    for side in (-1, 1):
        eye = x + side * .36 * s
        p.ellipse(eye, y - .02 * s, .26 * s, .17 * s, darker(skin, .8), 0, 3)
        p.ellipse(eye, y, .19 * s, .1 * s, (245, 245, 245))
        p.ellipse(eye, y, .1 * s, .1 * s, (70, 50, 30))
        p.ellipse(eye, y, .05 * s, .05 * s, (10, 10, 10))
        p.box(eye - .22 * s, y - .29 * s, eye + .22 * s, y - .22 * s, hair, .03 * s)
    p.ellipse(x + .06 * s, y + .3 * s, .08 * s, .25 * s, darker(skin, .86), 0, 3)
    p.ellipse(x, y + .44 * s, .17 * s, .07 * s, darker(skin, .75), 0, 3)
    p.ellipse(x, y + .75 * s, .33 * s, .1 * s, (170, 80, 80))
    p.box(x - .3 * s, y + .735 * s, x + .3 * s, y + .76 * s, (100, 40, 40), .01 * s)


def person(p, x, foot, height, step=0.0, shirt=(60, 90, 150), trousers=GREY):
    s = height / 8
    swing = math.sin(step) * .9 * s
    hip, shoulder = foot - 3.9 * s, foot - 6.4 * s
    p.ellipse(x, foot, 1.5 * s, .25 * s, (70, 72, 75), 0, 6)
    for side, way in ((-1, -swing), (1, swing)):
        knee, heel = x + side * .28 * s + way * .5, x + side * .3 * s + way * 1.1
        p.limb(x + side * .3 * s, hip, knee, hip + 1.9 * s, .36 * s, trousers)
        p.limb(knee, hip + 1.9 * s, heel, foot - .2 * s, .28 * s, darker(trousers, .9))
        p.ellipse(heel + .12 * s, foot - .1 * s, .42 * s, .2 * s, (30, 25, 25))
    for side, way in ((-1, swing), (1, -swing)):
        elbow, hand = x + side * .95 * s + way * .3, x + side * .95 * s + way * .9
        p.limb(x + side * .72 * s, shoulder + .25 * s, elbow, shoulder + 1.5 * s, .26 * s, darker(shirt, .85))
        p.limb(elbow, shoulder + 1.5 * s, hand, shoulder + 2.7 * s, .2 * s, darker(shirt, .85))
        p.ellipse(hand, shoulder + 2.85 * s, .22 * s, .25 * s, SKIN, .2)
    p.box(x - .75 * s, shoulder, x + .75 * s, hip + .35 * s, shirt, .45 * s, .25)
    p.box(x - .66 * s, hip - .1 * s, x + .66 * s, hip + .55 * s, trousers, .2 * s)
    p.box(x - .22 * s, shoulder - .35 * s, x + .22 * s, shoulder + .15 * s, darker(SKIN, .85), .1 * s)
    p.ellipse(x, shoulder - .85 * s, .52 * s, .66 * s, HAIR, .3)
    p.ellipse(x, shoulder - .75 * s, .44 * s, .55 * s, SKIN, .25)
    for side in (-1, 1):
        p.ellipse(x + side * .17 * s, shoulder - .8 * s, .07 * s, .05 * s, (50, 35, 30))
    p.ellipse(x, shoulder - .5 * s, .15 * s, .05 * s, (160, 90, 85))
    p.ellipse(x, shoulder - 1.2 * s, .4 * s, .2 * s, HAIR)


def car(p, x, base, width, plate, color=(190, 195, 200)):
    """From the front."""
    u = width / 10
    p.ellipse(x, base, 5.6 * u, .7 * u, (50, 50, 52), 0, 12)
    for side in (-1, 1):
        p.box(x + side * 3.7 * u - .9 * u, base - 2.2 * u, x + side * 3.7 * u + .9 * u, base + .1 * u, (25, 25, 28), .4 * u)
    p.polygon([(x - 3.3 * u, base - 7.6 * u), (x + 3.3 * u, base - 7.6 * u), (x + 4.4 * u, base - 4.6 * u), (x - 4.4 * u, base - 4.6 * u)], color, .15)
    p.polygon([(x - 2.95 * u, base - 7.3 * u), (x + 2.95 * u, base - 7.3 * u), (x + 3.85 * u, base - 4.9 * u), (x - 3.85 * u, base - 4.9 * u)],
              (48, 58, 68), .9)
    for side in (-1, 1):
        p.box(x + side * 4.75 * u - .45 * u, base - 5.5 * u, x + side * 4.75 * u + .45 * u, base - 4.9 * u, color, .25 * u, .3)
    p.box(x - 4.9 * u, base - 4.9 * u, x + 4.9 * u, base - .9 * u, color, .9 * u, .35)
    p.box(x - 4.6 * u, base - 1.9 * u, x + 4.6 * u, base - .5 * u, darker(color, .8), .5 * u, .3)
    p.box(x - 2.3 * u, base - 3.6 * u, x + 2.3 * u, base - 2.5 * u, (30, 30, 34), .25 * u)
    for i in range(3):
        p.box(x - 2.2 * u, base - 3.4 * u + i * .32 * u, x + 2.2 * u, base - 3.32 * u + i * .32 * u, (120, 122, 126))
    for side in (-1, 1):
        p.box(x + side * 3.5 * u - .95 * u, base - 3.8 * u, x + side * 3.5 * u + .95 * u, base - 2.7 * u, (60, 62, 66), .4 * u)
        p.ellipse(x + side * 3.35 * u, base - 3.25 * u, .5 * u, .45 * u, (235, 238, 235), .3)
        p.ellipse(x + side * 4.0 * u, base - 3.25 * u, .35 * u, .35 * u, (225, 190, 120))
    left, right, top, bottom = x - 1.35 * u, x + 1.35 * u, base - 2.15 * u, base - 1.35 * u
    p.box(left - 1, top - 1, right + 1, bottom + 1, (235, 235, 235), .1 * u)
    p.box(left, top, right, bottom, (25, 55, 150), .08 * u)
    p.text(plate, left, top, right, bottom, (245, 245, 245))


# ---- scenes: the picture at frame `n`, 10 a second ------------------------------------------------------------------

def door(n, shirts=((60, 90, 150), (150, 60, 60), (70, 120, 80))):
    """Two people come out of a door towards the camera, one goes in."""
    p = Picture(640, 360, (196, 190, 182), (178, 172, 165))
    p.box(0, 170, 640, 360, (130, 126, 120), 0, .15)
    p.box(235, 20, 405, 190, (110, 85, 60), 4)
    p.box(247, 30, 393, 190, (60, 66, 74))
    walkers = [(290 - 1.2 * n, 185 + 3.0 * n, 1), (350 + 1.5 * (n - 25), 185 + 3.0 * (n - 25), 1), (420 - 1.4 * n, 345 - 2.7 * n, -1)]
    for (x, foot, _), shirt in sorted(zip(walkers, shirts), key=lambda w: w[0][1]):
        if 180 <= foot < 480:
            person(p, x, foot, 120 + (foot - 185) * .45, n * .6 + x, shirt)
    return p


def road(n):
    """A car comes nearer."""
    p = Picture(640, 360)
    p.box(0, 150, 640, 360, (105, 104, 102), 0, .1)
    p.polygon([(316, 150), (324, 150), (360, 360), (280, 360)], (190, 188, 180))
    car(p, 260 + 1.5 * n, 250 + 2 * n, 190 + 1.8 * n, "\u6caaA·F0236")
    return p


def talk(n):
    """Two people who move their heads."""
    p = Picture(640, 360, (150, 160, 175), (110, 115, 120))
    face(p, 180 + 40 * math.sin(n * .15), 140 + 8 * math.sin(n * .4), 56)
    face(p, 440 + 50 * math.sin(n * .11 + 2), 150 + 6 * math.sin(n * .3), 66, (150, 105, 75), (20, 18, 18), (150, 60, 60))
    return p
