#!/usr/bin/env python3
"""Trains, converts and measures the bundled ball detector (ball.xml, ball.bin).

A small single-shot detector (SSD) that finds balls: that of `videotestsrc pattern=ball` and others.
Every frame it learns from is generated here; no data set is used. Needs torch, numpy and openvino.

    train.py train --out weights.npz --minutes 5      generate and train (CUDA if there, else CPU)
    train.py convert weights.npz --out ball.xml       OpenVINO IR with a DetectionOutput head, f16 weights
    train.py evaluate ball.xml --frames 2000          accuracy on unseen generated frames, OpenVINO CPU
    train.py videotestsrc ball.xml                    accuracy on frames of gst-launch-1.0 videotestsrc
    train.py show ball.xml --out show.png             a sheet of annotated frames to look at

The generator describes a frame of any size (160x120 to 1920x1080) as a scene that can be asked for
the pixel at any position. It renders only the four pixels that a plain bilinear resize (half-pixel
centres, no antialiasing) to the network's input reads, so a batch costs the same for every frame
size and the result is exactly that of rendering the frame and resizing it (`train.py selftest`).

The same seed on the same kind of device gives the same frames. Licence: MIT.
"""

import argparse
import math
import os
import struct
import subprocess
import sys
import time
import zlib

import numpy as np

NET_W, NET_H = 256, 192
VARIANCE = (0.1, 0.1, 0.2, 0.2)
# (stride, [(width, height) of the priors in network pixels])
LEVELS = (
    (8, ((6, 7), (11, 12), (19, 20))),
    (16, ((31, 32), (50, 51))),
    (32, ((80, 80), (122, 118), (185, 150))),
)
FRAME_SIZES = (
    (160, 120), (176, 144), (320, 180), (320, 240), (352, 288), (480, 270), (640, 360), (640, 480),
    (720, 576), (800, 600), (854, 480), (960, 540), (1024, 768), (1280, 720), (1280, 960),
    (1600, 900), (1920, 1080), (1920, 1080),
)
EVAL_SEED = 20240607  # train uses seeds below 1000


# ------------------------------------------------------------------------------------- generator

class Scenes:
    """A batch of random frames: parameters on a device, and the colour at any pixel."""

    BALLS = 2
    SHAPES = 3
    RING = 24
    CANDIDATES = 8

    def __init__(self, count, generator, plain=False):
        """plain: no stripes, checkers, bars and polygons, only colours, gradients, textures, noise."""
        import torch
        self.torch = torch
        self.plain = plain
        self.g = generator
        self.device = generator.device
        self.count = count
        self._sample_frames()
        self._sample_background()
        self._sample_balls()
        self._taps()
        self._colour_balls()

    # random helpers
    def _u(self, low, high, *shape):
        r = self.torch.rand(self.count, *shape, generator=self.g, device=self.device)
        return low + (high - low) * r

    def _chance(self, probability, *shape):
        return self._u(0.0, 1.0, *shape) < probability

    def _pick(self, values, *shape):
        t = self.torch.tensor(values, device=self.device)
        i = self.torch.randint(len(values), (self.count, *shape), generator=self.g,
                               device=self.device)
        return t[i]

    def _sample_frames(self):
        torch = self.torch
        sizes = self._pick([list(map(float, s)) for s in FRAME_SIZES])
        w = torch.exp(self._u(math.log(160.0), math.log(1920.0)))
        h = torch.clamp(w / self._u(0.75, 2.4), 120.0, 1080.0)
        free = self._chance(0.3)
        self.w = torch.where(free, w.round(), sizes[:, 0])
        self.h = torch.where(free, h.round(), sizes[:, 1])

    def _colours(self, *shape):
        """[count, *shape, 3] in 0..255: plain random, greys, saturated corners."""
        torch = self.torch
        c = self._u(0.0, 255.0, *shape, 3)
        grey = self._u(0.0, 255.0, *shape, 1).expand_as(c)
        corner = (c > 127.5).float() * 255.0
        kind = self._u(0.0, 1.0, *shape, 1)
        return torch.where(kind < 0.5, c, torch.where(kind < 0.7, grey, corner)).round()

    def _sample_background(self):
        torch = self.torch
        n, dev = self.count, self.device
        self.kind = self._pick([0] * 8 + [1] * 4 + [2] * 2 + [3] * 2 + [4] + [5] * 2 + [6] * 3)
        if self.plain:
            self.kind = torch.where((self.kind >= 3) & (self.kind <= 5),
                                    torch.zeros_like(self.kind), self.kind)
        self.c0, self.c1 = self._colours(), self._colours()
        black = self._chance(0.3).view(n, 1)
        white = self._chance(0.06).view(n, 1)
        self.c0 = torch.where(black, torch.zeros_like(self.c0), self.c0)
        self.c0 = torch.where(white, torch.full_like(self.c0, 255.0), self.c0)
        self.palette = self._colours(8)
        self.angle = self._u(0.0, 2.0 * math.pi)
        upright = self._chance(0.5)
        self.angle = torch.where(upright, (self.angle / (math.pi / 2)).round() * (math.pi / 2),
                                 self.angle)
        self.origin = self._u(-0.2, 1.2, 2)
        # stripes and checkers: half a period in network pixels
        self.period = torch.exp(self._u(math.log(10.0), math.log(80.0)))
        self.amplitude = torch.stack([self._u(0.0, 90.0), self._u(0.0, 30.0), self._u(0.0, 10.0)])
        textured = self._chance(0.15) | (self.kind == 6)
        self.amplitude = self.amplitude * textured
        self.grids = [torch.rand(n, 3, g * 3 // 4, g, generator=self.g, device=dev) * 2 - 1
                      for g in (5, 14, 48)]
        # distractors: convex polygons of three or four edges, and lines
        k = self.SHAPES
        px = torch.maximum(self.w / NET_W, self.h / NET_H).view(n, 1)  # >= a network pixel
        small = torch.minimum(self.w, self.h).view(n, 1)
        on = self._chance(0.45).view(n, 1) & self._chance(0.6, k)
        line = self._chance(0.35, k)
        line[:, 1] |= self._chance(0.75)  # few polygons over polygons: their scraps look like balls
        line[:, 2] = True
        low = 10.0 * px
        a = low * torch.exp(self._u(0.0, 1.0, k) * torch.log(torch.clamp(small * 0.35 / low, 1.0)))
        b = low * torch.exp(self._u(0.0, 1.0, k) * torch.log(torch.clamp(small * 0.35 / low, 1.0)))
        a = torch.where(line, torch.exp(self._u(3.0, 6.0, k)) * px, a)
        b = torch.where(line, torch.clamp(self._u(0.2, 1.5, k) * px, min=0.5), b)
        self.shape_half = torch.stack([a, b], -1)
        self.shape_on = on & (not self.plain)
        self.shape_triangle = self._chance(0.4, k) & ~line
        ang = self._u(0.0, 2.0 * math.pi, k)
        up = self._chance(0.4, k)
        self.shape_angle = torch.where(up, (ang / (math.pi / 2)).round() * (math.pi / 2), ang)
        self.shape_centre = self._u(0.0, 1.0, k, 2) * torch.stack([self.w, self.h], -1).view(n, 1, 2)
        self.shape_colour = self._colours(k)
        # noise
        sigma = torch.where(self._chance(0.75), self._u(0.5, 9.0), self._u(9.0, 22.0))
        self.sigma = torch.where(self._chance(0.45), sigma, torch.zeros_like(sigma))
        self.snow = self._chance(0.015)
        self.sigma = torch.where(self.snow, torch.full_like(sigma, 90.0), self.sigma)
        self.mono = self._chance(0.5)
        self.seed = torch.randint(1 << 31, (n,), generator=self.g, device=dev)

    def _sample_balls(self):
        torch = self.torch
        n, k = self.count, self.BALLS
        w, h = self.w.view(n, 1), self.h.view(n, 1)
        # radius: not below 4.6 network pixels across either way, nor 5 pixels of the frame
        low = torch.maximum(torch.maximum(2.3 * w / NET_W, 2.3 * h / NET_H),
                            torch.full_like(w, 2.5)).expand(n, k)
        high = 0.43 * torch.minimum(w, h).expand(n, k)
        r = low * torch.exp(self._u(0.0, 1.0, k) ** 1.15 * torch.log(high / low))
        self.like_src = self._chance(0.3, k)
        r = torch.where(self.like_src, torch.minimum(torch.maximum(
            self._u(19.0, 20.5, k), low), high), r)
        self.r = r
        # centre: anywhere, up to 20 % of the radius outside, at least 5 network pixels visible
        cs = []
        for size, net in ((w, NET_W), (h, NET_H)):
            limit = torch.maximum(-0.2 * r, torch.minimum(5.0 * size / net - r, r))
            c = limit + self._u(0.0, 1.0, k) * (size - 2.0 * limit)
            edge = self._chance(0.12, k)
            near = limit + self._u(0.0, 1.0, k) * (r * 1.2 - limit).clamp(min=0)
            near = torch.where(self._chance(0.5, k), near, size - near)
            cs.append(torch.where(edge, near, c))
        self.cx, self.cy = cs
        self.soft = self._u(0.8, 2.0, k)
        blurred = self._chance(0.15, k)
        self.soft = torch.where(blurred, torch.maximum(self.soft, self._u(0.0, 0.4, k) * r),
                                self.soft)
        self.soft = torch.minimum(self.soft, r)
        self.shaded = self._chance(0.4, k) & ~self.like_src
        self.light = self._u(-1.0, 1.0, k, 3)
        self.light[..., 2] = self.light[..., 2].abs() + 0.2
        self.light = self.light / self.light.norm(dim=-1, keepdim=True)
        self.shade = self._u(0.1, 0.45, k) * self.shaded
        self.specular = self._u(0.0, 160.0, k) * (self._chance(0.5, k) & self.shaded)
        big = 2.0 * r / torch.maximum(w / NET_W, h / NET_H) > 14.0
        self.striped = self._chance(0.12, k) & big & ~self.like_src
        self.stripe = torch.stack([self._u(0.0, 2.0 * math.pi, k), self._u(1.5, 6.0, k),
                                   self._u(0.0, 2.0 * math.pi, k)])
        number = self._u(0.0, 1.0)
        self.valid = torch.stack([number > 0.15, number > 0.90], 1) & ~self.snow.view(n, 1)
        apart = torch.hypot(self.cx[:, 0] - self.cx[:, 1], self.cy[:, 0] - self.cy[:, 1])
        self.valid[:, 1] &= apart > 1.1 * (r[:, 0] + r[:, 1]) + 4.0 * torch.maximum(
            self.w / NET_W, self.h / NET_H)

    def _taps(self):
        """The pixels a bilinear resize to the network's input reads: [count, 2*NET], weights."""
        self.px, self.fx = self._axis(self.w, NET_W)
        self.py, self.fy = self._axis(self.h, NET_H)

    def _axis(self, size, out):
        torch = self.torch
        size = size.double().view(-1, 1)
        s = (torch.arange(out, device=self.device, dtype=torch.float64) + 0.5) * size / out - 0.5
        s = torch.minimum(s.clamp(min=0.0), size - 1)
        i0 = s.floor()
        i1 = torch.minimum(i0 + 1, size - 1)
        return torch.cat([i0, i1], 1).long(), (s - i0).float()

    def background(self, px, py):
        """[count, 3, Y, X] without balls and noise; px [count, X], py [count, Y] pixel indices."""
        torch = self.torch
        n = self.count
        x = (px.float() + 0.5).view(n, 1, -1)
        y = (py.float() + 0.5).view(n, -1, 1)
        u, v = x / self.w.view(n, 1, 1), y / self.h.view(n, 1, 1)
        cos, sin = torch.cos(self.angle).view(n, 1, 1), torch.sin(self.angle).view(n, 1, 1)
        along = (u - 0.5) * cos + (v - 0.5) * sin
        linear = (along + 0.5).clamp(0.0, 1.0)
        radial = torch.hypot(u - self.origin[:, 0].view(n, 1, 1),
                             v - self.origin[:, 1].view(n, 1, 1)).clamp(0.0, 1.0)
        period = self.period.view(n, 1, 1) * torch.maximum(self.w / NET_W,
                                                           self.h / NET_H).view(n, 1, 1)
        sx = torch.floor(((x * cos + y * sin) / period)) % 2
        sy = torch.floor(((-x * sin + y * cos) / period)) % 2
        checks = (sx + sy) % 2
        kind = self.kind.view(n, 1, 1)
        t = torch.where(kind == 1, linear, torch.zeros_like(linear))
        t = torch.where(kind == 2, radial, t)
        t = torch.where(kind == 3, sx, t)
        t = torch.where(kind == 4, checks, t)
        c0, c1 = self.c0.view(n, 3, 1, 1), self.c1.view(n, 3, 1, 1)
        image = c0 + (c1 - c0) * t.unsqueeze(1)
        bars = (linear * 7.999).long().view(n, -1, 1).expand(-1, -1, 3)
        bars = torch.gather(self.palette, 1, bars).view(n, *linear.shape[1:], 3)
        image = torch.where((kind == 5).unsqueeze(1), bars.permute(0, 3, 1, 2), image)
        grid = torch.stack([(u * 2 - 1).expand_as(linear), (v * 2 - 1).expand_as(linear)], -1)
        for amplitude, cells in zip(self.amplitude, self.grids):
            noise = torch.nn.functional.grid_sample(cells, grid, align_corners=True,
                                                    padding_mode='border')
            image = image + noise * amplitude.view(n, 1, 1, 1)
        for k in range(self.SHAPES):
            dx = x - self.shape_centre[:, k, 0].view(n, 1, 1)
            dy = y - self.shape_centre[:, k, 1].view(n, 1, 1)
            inside = None
            for edge in range(4):
                turn = torch.where(self.shape_triangle[:, k], edge * 2.0 * math.pi / 3,
                                   edge * math.pi / 2) + self.shape_angle[:, k]
                half = torch.where(self.shape_triangle[:, k], self.shape_half[:, k, 0],
                                   self.shape_half[:, k, edge % 2])
                d = (half.view(n, 1, 1) - dx * torch.cos(turn).view(n, 1, 1)
                     - dy * torch.sin(turn).view(n, 1, 1))
                inside = d if inside is None else torch.minimum(inside, d)
            alpha = (inside + 0.5).clamp(0.0, 1.0) * self.shape_on[:, k].view(n, 1, 1)
            image = image + (self.shape_colour[:, k].view(n, 3, 1, 1) - image) * alpha.unsqueeze(1)
        return image.clamp(0.0, 255.0)

    def _colour_balls(self):
        """Choose colours that stand out all around the ball; a ball that cannot is left out."""
        torch = self.torch
        n, k, m = self.count, self.BALLS, self.CANDIDATES
        tap_background = self.background(self.px, self.py)
        a = torch.arange(self.RING, device=self.device) * (2 * math.pi / self.RING)
        need = torch.maximum(torch.full_like(self.sigma, 45.0), 3.5 * self.sigma).view(n, 1, 1)
        need = need + 25.0 * self.shaded.view(n, k, 1)
        ring = []
        for scale in (0.6, 1.08):
            x = self.cx.unsqueeze(-1) + scale * self.r.unsqueeze(-1) * torch.cos(a)
            y = self.cy.unsqueeze(-1) + scale * self.r.unsqueeze(-1) * torch.sin(a)
            i = (x / self.w.view(n, 1, 1) * NET_W).long().clamp(0, NET_W - 1)
            j = (y / self.h.view(n, 1, 1) * NET_H).long().clamp(0, NET_H - 1)
            flat = (j * (2 * NET_W) + i).view(n, 1, -1).expand(-1, 3, -1)
            ring.append(torch.gather(tap_background.flatten(2), 2, flat).view(n, 3, k, self.RING))
        around = torch.cat(ring, -1)  # n, 3, k, 2*RING
        colours = self._colours(k, m)
        colours[:, :, 0] = torch.where(self.like_src.unsqueeze(-1), torch.full_like(
            colours[:, :, 0], 255.0), colours[:, :, 0])
        difference = (colours.permute(0, 3, 1, 2).unsqueeze(-1) - around.unsqueeze(3)).abs()
        contrast = difference.amax(1).amin(-1)  # n, k, m
        good = contrast >= need
        order = torch.arange(m, device=self.device)
        score = torch.where(good, 1000.0 - order, contrast - 1000.0)
        best = score.topk(2, dim=-1)
        pick = best.indices.unsqueeze(-1).expand(-1, -1, -1, 3)
        self.colour = torch.gather(colours, 2, pick)  # n, k, 2, 3
        chosen = torch.gather(contrast, 2, best.indices)
        self.contrast = chosen[..., 0]
        self.striped &= best.values[..., 1] > 0
        self.shade = self.shade * self.contrast
        self.valid &= best.values[..., 0] > 0
        # boxes in 0..1, cut at the frame
        x0 = ((self.cx - self.r) / self.w.view(n, 1)).clamp(0, 1)
        x1 = ((self.cx + self.r) / self.w.view(n, 1)).clamp(0, 1)
        y0 = ((self.cy - self.r) / self.h.view(n, 1)).clamp(0, 1)
        y1 = ((self.cy + self.r) / self.h.view(n, 1)).clamp(0, 1)
        self.valid &= ((x1 - x0) * NET_W >= 4.5) & ((y1 - y0) * NET_H >= 4.5)
        self.boxes = torch.stack([x0, y0, x1, y1], -1)
        self._tap_background = tap_background

    def _noise(self, px, py, rows):
        """About normal noise with unit deviation, a hash of pixel, channel and frame."""
        torch = self.torch
        mask = 0xffffffff
        channel = torch.arange(3, device=self.device).view(1, 3, 1, 1)
        channel = channel * (~self.mono[rows]).long().view(-1, 1, 1, 1)
        hx = (px[rows] * 0x9E3779B1 + self.seed[rows].view(-1, 1)) & mask
        hy = (py[rows] * 0x85EBCA77).view(-1, 1, py.shape[1], 1) + channel * 0xC2B2AE3D
        h = hx.view(-1, 1, 1, px.shape[1]) ^ (hy & mask)
        for shift, factor in ((15, 0x2C1B3C6D), (12, 0x297A2D39), (15, 0x1B56C4E9)):
            h = ((h ^ (h >> shift)) * factor) & mask
        h = h ^ (h >> 14)
        a, b = (h & 0xffff).float(), (h >> 16).float()
        return (a + b) * (math.sqrt(6.0) / 65535.0) - math.sqrt(6.0)

    def render(self, px, py, background=None):
        """[count, 3, Y, X], whole numbers 0..255 as float: the frame's pixels at px, py."""
        torch = self.torch
        n = self.count
        image = self.background(px, py) if background is None else background
        x = (px.float() + 0.5).view(n, 1, -1)
        y = (py.float() + 0.5).view(n, -1, 1)
        for k in range(self.BALLS):
            rows = self.valid[:, k].nonzero().flatten()
            if not len(rows):
                continue
            at = lambda t: t[rows, k].view(-1, 1, 1)
            dx = (x[rows] - at(self.cx)) / at(self.r)
            dy = (y[rows] - at(self.cy)) / at(self.r)
            rho = torch.hypot(dx, dy)
            alpha = ((1.0 - rho) * (at(self.r) / at(self.soft)) + 0.5).clamp(0.0, 1.0)
            z = (1.0 - rho * rho).clamp(min=0.0).sqrt()
            light = self.light[rows, k]
            dot = (dx * light[:, 0].view(-1, 1, 1) + dy * light[:, 1].view(-1, 1, 1)
                   + z * light[:, 2].view(-1, 1, 1))
            shade = at(self.shade) * dot + at(self.specular) * dot.clamp(0, 1) ** 24
            angle, frequency, phase = (self.stripe[i][rows, k].view(-1, 1, 1) for i in range(3))
            wave = torch.sin((dx * torch.cos(angle) + dy * torch.sin(angle)) * frequency + phase)
            second = ((wave > 0.2) & at(self.striped)).unsqueeze(1).float()
            ca = self.colour[rows, k, 0].view(-1, 3, 1, 1)
            cb = self.colour[rows, k, 1].view(-1, 3, 1, 1)
            colour = (ca + (cb - ca) * second + shade.unsqueeze(1)).clamp(0.0, 255.0)
            part = image[rows]
            image = image.index_copy(0, rows, part + (colour - part) * alpha.unsqueeze(1))
        rows = (self.sigma > 0).nonzero().flatten()
        if len(rows):
            noisy = image[rows] + self._noise(px, py, rows) * self.sigma[rows].view(-1, 1, 1, 1)
            image = image.index_copy(0, rows, noisy)
        return (image + 0.5).floor().clamp(0.0, 255.0)

    def network_input(self):
        """[count, 3, NET_H, NET_W], 0..255: the frames stretched to the network's input."""
        n = self.count
        taps = self.render(self.px, self.py, self._tap_background)
        self._tap_background = None
        taps = taps.view(n, 3, 2, NET_H, 2, NET_W)
        fx, fy = self.fx.view(n, 1, 1, 1, NET_W), self.fy.view(n, 1, NET_H, 1)
        rows = taps[..., 0, :] + (taps[..., 1, :] - taps[..., 0, :]) * fx
        return rows[:, :, 0] + (rows[:, :, 1] - rows[:, :, 0]) * fy


def resize(frame, width=NET_W, height=NET_H):
    """[H, W, 3] u8 -> [height, width, 3] f32: bilinear, half-pixel centres, no antialiasing."""
    def axis(size, out):
        s = np.clip((np.arange(out) + 0.5) * size / out - 0.5, 0, size - 1)
        i = np.floor(s).astype(np.int64)
        return i, np.minimum(i + 1, size - 1), (s - i).astype(np.float32)
    x0, x1, fx = axis(frame.shape[1], width)
    y0, y1, fy = axis(frame.shape[0], height)
    top, bottom = frame[y0].astype(np.float32), frame[y1].astype(np.float32)
    fx, fy = fx[None, :, None], fy[:, None, None]
    top = top[:, x0] + (top[:, x1] - top[:, x0]) * fx
    bottom = bottom[:, x0] + (bottom[:, x1] - bottom[:, x0]) * fx
    return top + (bottom - top) * fy


# --------------------------------------------------------------------------------------- network

def make_network():
    import torch
    from torch import nn

    def conv(cin, cout, stride=1, groups=1, size=3):
        return [nn.Conv2d(cin, cout, size, stride, size // 2, groups=groups, bias=False),
                nn.BatchNorm2d(cout), nn.ReLU()]

    def block(cin, cout, stride=1):  # depthwise 3x3, then 1x1
        return conv(cin, cin, stride, cin) + conv(cin, cout, size=1)

    class Ball(nn.Module):
        def __init__(self):
            super().__init__()
            self.level0 = nn.Sequential(*conv(3, 16, 2), *conv(16, 24, 2), *conv(24, 48, 2),
                                        *block(48, 48), *block(48, 48), *block(48, 48))
            self.level1 = nn.Sequential(*block(48, 64, 2), *block(64, 64))
            self.level2 = nn.Sequential(*block(64, 72, 2), *block(72, 72), *block(72, 72))
            self.heads = nn.ModuleList()
            for channels, (_, priors) in zip((48, 64, 72), LEVELS):
                self.heads.append(nn.ModuleList([nn.Conv2d(channels, 4 * len(priors), 3, 1, 1),
                                                 nn.Conv2d(channels, 2 * len(priors), 3, 1, 1)]))
            for m in self.modules():
                if isinstance(m, nn.Conv2d):
                    nn.init.kaiming_normal_(m.weight, mode='fan_out', nonlinearity='relu')
            for loc, conf in self.heads:
                nn.init.normal_(loc.weight, std=0.01)
                nn.init.zeros_(loc.bias)
                nn.init.normal_(conf.weight, std=0.01)
                with torch.no_grad():  # ball rare at the start
                    conf.bias.copy_(torch.tensor([2.5, -2.5]).repeat(len(conf.bias) // 2))

        def forward(self, image):
            """image [N, 3, NET_H, NET_W] BGR 0..255 -> (loc, conf) of each level, NCHW."""
            x = image * (1.0 / 64.0) - 2.0
            out = []
            for level, (loc, conf) in zip((self.level0, self.level1, self.level2), self.heads):
                x = level(x)
                out += [loc(x), conf(x)]
            return tuple(out)

    return Ball()


def make_priors():
    """[P, 4] cx, cy, w, h in network pixels, and the stride of each, in DetectionOutput's order."""
    rows, strides = [], []
    for stride, sizes in LEVELS:
        for y in range(NET_H // stride):
            for x in range(NET_W // stride):
                for w, h in sizes:
                    rows.append(((x + 0.5) * stride, (y + 0.5) * stride, w, h))
                    strides.append(stride)
    return np.array(rows, np.float32), np.array(strides, np.float32)


def flatten_heads(maps):
    import torch
    n = maps[0].shape[0]
    loc = torch.cat([m.permute(0, 2, 3, 1).reshape(n, -1, 4) for m in maps[0::2]], 1)
    conf = torch.cat([m.permute(0, 2, 3, 1).reshape(n, -1, 2) for m in maps[1::2]], 1)
    return loc.float(), conf.float()


def pair_iou(a, b):
    """Boxes x0, y0, x1, y1 that broadcast -> IoU."""
    import torch
    wh = (torch.minimum(a[..., 2:], b[..., 2:]) - torch.maximum(a[..., :2], b[..., :2])).clamp(min=0)
    both = wh[..., 0] * wh[..., 1]
    area = lambda t: (t[..., 2] - t[..., 0]) * (t[..., 3] - t[..., 1])
    return both / (area(a) + area(b) - both).clamp(min=1e-6)


def decode(loc, priors):
    """[.., P, 4] head output -> boxes x0, y0, x1, y1 in network pixels."""
    import torch
    centre = priors[:, :2] + loc[..., :2] * VARIANCE[0] * priors[:, 2:]
    half = 0.5 * priors[:, 2:] * torch.exp((loc[..., 2:] * VARIANCE[2]).clamp(max=4.0))
    return torch.cat([centre - half, centre + half], -1)


def assign(boxes, valid, priors, strides):
    """Which prior learns which ball: positive [N, P], ignored [N, P], index of the ball [N, P].

    Positive: about the ball's size and centre within 0.6 cells of the ball's (so one to four cells:
    no borderline between cells), or much overlap. The confidence of those around them, the ignored,
    is not trained, but their boxes are, as one of them may turn out the most confident."""
    import torch
    b = boxes.unsqueeze(2)  # N, K, 1, 4 in network pixels
    corners = torch.cat([priors[:, :2] - priors[:, 2:] / 2, priors[:, :2] + priors[:, 2:] / 2], 1)
    iou = pair_iou(b, corners)
    wh = b[..., 2:] - b[..., :2]
    inner = torch.minimum(wh, priors[:, 2:]).prod(-1)
    shape = inner / (wh.prod(-1) + priors[:, 2:].prod(-1) - inner)
    far = ((b[..., :2] + b[..., 2:]) / 2 - priors[:, :2]).abs().amax(-1) / strides
    fits = (shape >= 0.6) | (shape >= shape.amax(-1, keepdim=True) - 1e-4)
    v = valid.unsqueeze(2)
    positive = (((far <= 0.6) & fits) | (iou >= 0.7)) & v
    ignored = (((far <= 1.1) & (shape >= 0.35)) | (iou >= 0.4)) & v
    quality = positive + (0.01 + iou) * (positive | ignored)
    return positive.any(1), ignored.any(1), quality.argmax(1)


def loss_of(maps, boxes, valid, priors, strides):
    import torch
    import torch.nn.functional as F
    loc, conf = flatten_heads(maps)
    boxes = boxes * torch.tensor([NET_W, NET_H, NET_W, NET_H], device=boxes.device)
    positive, ignored, which = assign(boxes, valid, priors, strides)
    count = positive.sum().clamp(min=1)
    logit = conf[..., 1] - conf[..., 0]
    target = positive.float()
    cross = F.binary_cross_entropy_with_logits(logit, target, reduction='none')
    focus = (torch.sigmoid(logit) - target).abs().detach()
    weight = torch.where(positive, 1.0, (~ignored).float()) * focus
    confidence = (cross * weight).sum() / count
    boxed = positive | ignored
    weight = 0.5 + 0.5 * positive[boxed].float()
    wanted = torch.gather(boxes, 1, which.unsqueeze(-1).expand(-1, -1, 4))[boxed]
    got = decode(loc, priors)[boxed]
    iou = pair_iou(got, wanted)
    hull = (torch.maximum(got[:, 2:], wanted[:, 2:]) - torch.minimum(got[:, :2], wanted[:, :2]))
    gap = ((got[:, :2] + got[:, 2:] - wanted[:, :2] - wanted[:, 2:]) ** 2).sum(-1) / 4
    box = (1.0 - iou + gap / (hull ** 2).sum(-1).clamp(min=1e-6))
    edges = F.smooth_l1_loss(got / (wanted[:, 2:] - wanted[:, :2]).repeat(1, 2),
                             wanted / (wanted[:, 2:] - wanted[:, :2]).repeat(1, 2),
                             beta=0.1, reduction='none').sum(-1)
    return confidence, ((box + edges) * weight).sum() / weight.sum().clamp(min=1)


def detect(maps, priors, keep=20, overlap=0.3):
    """What DetectionOutput does: boxes [N, keep, 4] in network pixels, scores (0: none)."""
    import torch
    loc, conf = flatten_heads(maps)
    score = conf.softmax(-1)[..., 1]
    top = score.topk(keep, 1)
    boxes = torch.gather(decode(loc, priors), 1, top.indices.unsqueeze(-1).expand(-1, -1, 4))
    limit = torch.tensor([NET_W, NET_H, NET_W, NET_H], device=boxes.device, dtype=boxes.dtype)
    boxes = torch.minimum(boxes.clamp(min=0), limit)
    score = top.values.clone()
    iou = pair_iou(boxes.unsqueeze(1), boxes.unsqueeze(2))
    for i in range(keep):
        gone = (iou[:, i] > overlap) & (score[:, i:i + 1] > 0)
        gone[:, :i + 1] = False
        score[gone] = 0
    return boxes, score


# -------------------------------------------------------------------------------------- commands

def command_train(args):
    import torch
    device = torch.device(args.device or ('cuda' if torch.cuda.is_available() else 'cpu'))
    torch.manual_seed(args.seed)
    torch.backends.cudnn.benchmark = True
    generator = torch.Generator(device)
    generator.manual_seed(args.seed)
    network = (load_network(args.start).train() if args.start else make_network()).to(device)
    print(f'{sum(p.numel() for p in network.parameters())} parameters, {device}', flush=True)
    if device.type == 'cuda':
        network = network.to(memory_format=torch.channels_last)
    priors, strides = (torch.from_numpy(a).to(device) for a in make_priors())
    optimizer = torch.optim.AdamW(network.parameters(), lr=args.rate, weight_decay=1e-3)
    state = {k: v for k, v in network.state_dict().items() if v.is_floating_point()}
    average = {k: v.detach().clone() for k, v in state.items()}
    start = time.time()
    steps, step, sums, ticks = args.steps, 0, [0.0, 0.0], start
    while steps is None or step < steps:
        if steps is None and step == 40:  # the time for a step is known: how many fit
            if device.type == 'cuda':
                torch.cuda.synchronize()
            each = (time.time() - ticks) / 30
            steps = 40 + int((args.minutes * 60 - (time.time() - start)) / each)
            print(f'--steps {steps} ({each * 1e3:.0f} ms a step)', flush=True)
        if step == 10:
            if device.type == 'cuda':
                torch.cuda.synchronize()
            ticks = time.time()
        done = step / (steps or 1e9)
        warm = min(1.0, (step + 1) / 200)
        for group in optimizer.param_groups:
            group['lr'] = args.rate * warm * (0.5 + 0.5 * math.cos(math.pi * done)) + 1e-6
        with torch.no_grad():
            scenes = Scenes(args.batch, generator)
            image, boxes, valid = scenes.network_input(), scenes.boxes, scenes.valid
        # the same frames twice more, mirrored and with other colours
        x0, y0, x1, y1 = boxes.unbind(-1)
        order = torch.randperm(3, generator=generator, device=device)
        variants = ((image, boxes),
                    (255.0 - image[:, order].flip(3), torch.stack([1 - x1, y0, 1 - x0, y1], -1)),
                    (image[:, order.flip(0)].flip(2), torch.stack([x0, 1 - y1, x1, 1 - y0], -1)))
        for image, boxes in variants:
            with torch.autocast(device.type, torch.bfloat16, enabled=device.type == 'cuda'):
                maps = network(image.contiguous(memory_format=torch.channels_last))
            confidence, box = loss_of(maps, boxes, valid, priors, strides)
            optimizer.zero_grad(set_to_none=True)
            (confidence + box).backward()
            torch.nn.utils.clip_grad_norm_(network.parameters(), 10.0)
            optimizer.step()
        with torch.no_grad():  # the weights that are kept: a running average
            torch._foreach_lerp_(list(average.values()), list(state.values()),
                                 1 - min(0.998, step / (step + 10)))
        step += 1
        sums[0] += confidence.detach()
        sums[1] += box.detach()
        if step % args.report == 0:
            print(f'{step:6d} {time.time() - start:6.0f} s  confidence '
                  f'{float(sums[0]) / args.report:.4f}  box {float(sums[1]) / args.report:.4f}',
                  flush=True)
            sums = [0.0, 0.0]
    network.load_state_dict(average, strict=False)
    network.eval()
    np.savez(args.out, **{k: v.cpu().numpy() for k, v in network.state_dict().items()})
    generator.manual_seed(EVAL_SEED)
    tally = Tally()
    with torch.no_grad():
        for _ in range(max(1, args.check // args.batch)):
            scenes = Scenes(args.batch, generator)
            image, boxes, valid = scenes.network_input(), scenes.boxes, scenes.valid
            found, score = detect(network(image), priors)
            found = found / torch.tensor([NET_W, NET_H, NET_W, NET_H], device=device)
            boxes, valid, found, score = (t.cpu().numpy() for t in (boxes, valid, found, score))
            for i in range(len(boxes)):
                keep = score[i] >= 0.5
                tally.add(boxes[i][valid[i]], found[i][keep], score[i][keep])
    print(tally.report(), flush=True)


def load_network(path):
    import torch
    network = make_network()
    with np.load(path) as file:
        network.load_state_dict({k: torch.from_numpy(file[k]) for k in file.files})
    return network.eval()


def command_convert(args):
    import torch
    import openvino as ov
    from openvino import opset8 as op
    network = load_network(args.weights)
    with torch.no_grad():
        converted = ov.convert_model(network, example_input=torch.zeros(1, 3, NET_H, NET_W),
                                     input=[1, 3, NET_H, NET_W])
    # the head: [N, C, H, W] of each level -> [N, H*W*C], priors, DetectionOutput
    nhwc = lambda: op.constant(np.array([0, 2, 3, 1], np.int64))
    rows = lambda: op.constant(np.array([0, -1], np.int64))
    maps = [r.input_value(0) for r in converted.get_results()]
    flat = [op.reshape(op.transpose(m, nhwc()), rows(), special_zero=True) for m in maps]
    loc = op.concat(flat[0::2], 1)
    pairs = op.reshape(op.concat(flat[1::2], 1), op.constant(np.array([0, -1, 2], np.int64)), True)
    conf = op.reshape(op.softmax(pairs, 2), rows(), True)
    boxes = []
    image_size = op.constant(np.array([NET_H, NET_W], np.int64))
    for stride, sizes in LEVELS:
        boxes.append(op.prior_box_clustered(
            op.constant(np.array([NET_H // stride, NET_W // stride], np.int64)), image_size,
            {'width': np.array([w for w, _ in sizes], np.float32),
             'height': np.array([h for _, h in sizes], np.float32), 'clip': False,
             'step_widths': float(stride), 'step_heights': float(stride), 'offset': 0.5,
             'variance': np.array(VARIANCE, np.float32)}))
    priors = op.unsqueeze(op.concat(boxes, 1), op.constant(np.array([0], np.int64)))
    detection = op.detection_output(
        loc, conf, priors,
        {'background_label_id': 0, 'top_k': 100, 'keep_top_k': [20], 'nms_threshold': 0.3,
         'confidence_threshold': 0.1, 'code_type': 'caffe.PriorBoxParameter.CENTER_SIZE',
         'share_location': True, 'variance_encoded_in_target': False, 'normalized': True,
         'clip_before_nms': True, 'clip_after_nms': False})
    model = ov.Model([op.result(detection)], converted.get_parameters(), 'ball')
    # short names: a third of the file
    numbers = {}
    for node in model.get_ordered_ops():
        kind = node.get_type_name()
        numbers[kind] = numbers.get(kind, 0) + 1
        node.set_friendly_name(f'{kind}_{numbers[kind]}')
        for key in list(node.get_rt_info().keys()):
            del node.get_rt_info()[key]
        for output in node.outputs():
            output.get_tensor().set_names(set())
    model.inputs[0].get_node().set_friendly_name('image')
    model.inputs[0].get_tensor().set_names({'image'})
    detection.set_friendly_name('detection_out')
    detection.output(0).get_tensor().set_names({'detection_out'})
    for key, value in (('model_type', 'ssd'), ('labels', 'background ball'),
                       ('confidence_threshold', '0.5'), ('resize_type', 'standard'),
                       ('reverse_input_channels', 'False')):
        model.set_rt_info(value, ['model_info', key])
    ov.save_model(model, args.out, compress_to_fp16=not args.f32)
    size = [os.path.getsize(p) for p in (args.out, args.out[:-4] + '.bin')]
    print(f'{args.out}: {len(model.get_ops())} ops, .xml {size[0]} + .bin {size[1]} = {sum(size)} '
          f'bytes, input {model.inputs[0].partial_shape}, output {model.outputs[0].partial_shape}')


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


def generated_frames(count, seed, plain=False, batch=16):
    import torch
    generator = torch.Generator('cpu')
    generator.manual_seed(seed)
    while count > 0:
        scenes = Scenes(batch, generator, plain)
        images = scenes.network_input().numpy()
        for i in range(min(batch, count)):
            valid = scenes.valid[i].numpy()
            yield (images[i], scenes.boxes[i].numpy()[valid],
                   (int(scenes.w[i]), int(scenes.h[i])))
        count -= batch


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


def annotate(image, truth, boxes):
    """[3, H, W] BGR -> [H, W, 3] RGB u8, twice as large, truth green, detections red."""
    canvas = np.repeat(np.repeat(image[::-1].transpose(1, 2, 0), 2, 0), 2, 1).round().astype(np.uint8)
    h, w = canvas.shape[:2]
    for rows, colour, grow in ((truth, (0, 255, 0), 2), (boxes, (255, 0, 0), 4)):
        for x0, y0, x1, y1 in rows:
            x0, x1 = (int(np.clip(v, 0, w - 1)) for v in (x0 * w - grow, x1 * w + grow))
            y0, y1 = (int(np.clip(v, 0, h - 1)) for v in (y0 * h - grow, y1 * h + grow))
            canvas[[y0, y1], x0:x1 + 1] = colour
            canvas[y0:y1 + 1, [x0, x1]] = colour
    return canvas


def write_sheet(path, tiles, columns=6):
    """Tiles [H, W, 3] RGB u8 -> one PNG."""
    while len(tiles) % columns:
        tiles.append(np.full_like(tiles[0], 128))
    tiles = [np.pad(t, ((1, 1), (1, 1), (0, 0)), constant_values=255) for t in tiles]
    sheet = np.concatenate([np.concatenate(tiles[i:i + columns], 1)
                            for i in range(0, len(tiles), columns)], 0)
    raw = np.concatenate([np.zeros((sheet.shape[0], 1), np.uint8),
                          sheet.reshape(sheet.shape[0], -1)], 1).tobytes()
    chunk = lambda kind, data: (struct.pack('>I', len(data)) + kind + data
                                + struct.pack('>I', zlib.crc32(kind + data)))
    with open(path, 'wb') as file:
        file.write(b'\x89PNG\r\n\x1a\n' + chunk(b'IHDR', struct.pack(
            '>IIBBBBB', sheet.shape[1], sheet.shape[0], 8, 2, 0, 0, 0))
            + chunk(b'IDAT', zlib.compress(raw, 6)) + chunk(b'IEND', b''))


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


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest='command', required=True)
    p = commands.add_parser('train')
    p.add_argument('--out', default='weights.npz')
    p.add_argument('--start', help='weights to go on from')
    p.add_argument('--minutes', type=float, default=5.0, help='training time where --steps is absent')
    p.add_argument('--steps', type=int)
    p.add_argument('--batch', type=int, default=192)
    p.add_argument('--rate', type=float, default=3e-3)
    p.add_argument('--seed', type=int, default=1)
    p.add_argument('--device')
    p.add_argument('--report', type=int, default=100)
    p.add_argument('--check', type=int, default=8192, help='frames measured at the end')
    p = commands.add_parser('convert')
    p.add_argument('weights')
    p.add_argument('--out', default='ball.xml')
    p.add_argument('--f32', action='store_true')
    p = commands.add_parser('evaluate')
    p.add_argument('model')
    p.add_argument('--frames', type=int, default=2000)
    p.add_argument('--seed', type=int, default=EVAL_SEED)
    p.add_argument('--plain', action='store_true',
                   help='only plain colours, gradients, textures and noise behind the balls')
    p.add_argument('--wrong', help='write a PNG sheet of the frames that went wrong')
    p = commands.add_parser('videotestsrc')
    p.add_argument('model')
    p.add_argument('--frames', type=int, default=60, help='of each size and motion')
    p = commands.add_parser('show')
    p.add_argument('model', nargs='?')
    p.add_argument('--out', default='show.png')
    p.add_argument('--frames', type=int, default=48)
    p.add_argument('--seed', type=int, default=EVAL_SEED + 1)
    p = commands.add_parser('selftest')
    p.add_argument('--frames', type=int, default=20)
    p.add_argument('--seed', type=int, default=EVAL_SEED + 2)
    args = parser.parse_args()
    globals()['command_' + args.command](args)


if __name__ == '__main__':
    main()
