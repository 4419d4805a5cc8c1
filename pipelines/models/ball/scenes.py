"""The generator: random frames with balls, and what the network gets of them."""
import math

import numpy as np

NET_W, NET_H = 256, 192
FRAME_SIZES = (
    (160, 120), (176, 144), (320, 180), (320, 240), (352, 288), (480, 270), (640, 360), (640, 480),
    (720, 576), (800, 600), (854, 480), (960, 540), (1024, 768), (1280, 720), (1280, 960),
    (1600, 900), (1920, 1080), (1920, 1080),
)
EVAL_SEED = 20240607  # train uses seeds below 1000


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
