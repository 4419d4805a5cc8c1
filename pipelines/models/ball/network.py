"""The network, its priors, its loss, and what its outputs mean."""
import numpy as np

from ball.scenes import NET_H, NET_W

VARIANCE = (0.1, 0.1, 0.2, 0.2)
# (stride, [(width, height) of the priors in network pixels])
LEVELS = (
    (8, ((6, 7), (11, 12), (19, 20))),
    (16, ((31, 32), (50, 51))),
    (32, ((80, 80), (122, 118), (185, 150))),
)


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


def load_network(path):
    import torch
    network = make_network()
    with np.load(path) as file:
        network.load_state_dict({k: torch.from_numpy(file[k]) for k in file.files})
    return network.eval()


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
