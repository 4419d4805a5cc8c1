"""Transformers of windows: Swin and the encoder of TinyViT (of MobileSAM)."""


def in_windows(net, x, window):
    """[N, H, W, C] as [N windows, window^2, C]."""
    n, height, width, channels = x[2]
    rows, columns = height // window, width // window
    x = net.transpose(net.reshape(x, (n, rows, window, columns, window, channels)), [0, 1, 3, 2, 4, 5])
    return net.reshape(x, (n * rows * columns, window * window, channels))


def from_windows(net, x, n, height, width, window):
    rows, columns, channels = height // window, width // window, x[2][2]
    x = net.transpose(net.reshape(x, (n, rows, columns, window, window, channels)), [0, 1, 3, 2, 4, 5])
    return net.reshape(x, (n, height, width, channels))


def position_bias(net, window, heads):
    """[1, heads, window^2, window^2], taken from a table of relative positions."""
    places = [(y, x) for y in range(window) for x in range(window)]
    side = 2 * window - 1
    index = [(a[0] - b[0] + window - 1) * side + a[1] - b[1] + window - 1 for a in places for b in places]
    bias = net.gather(net.noise((side * side, heads), 0.5), index)
    bias = net.transpose(net.reshape(bias, (len(places), len(places), heads)), [2, 0, 1])
    return net.unsqueeze(bias, 0)


def shift_mask(net, side, window, shift):
    """[windows, window^2, window^2]: -100 between pixels that were no neighbours before the shift."""
    def region(i):
        return 0 if i < side - window else 1 if i < side - shift else 2

    values = []
    for top in range(0, side, window):
        for left in range(0, side, window):
            regions = [3 * region(top + y) + region(left + x) for y in range(window) for x in range(window)]
            values += [0.0 if a == b else -100.0 for a in regions for b in regions]
    count = window * window
    return net.constant(((side // window) ** 2, count, count), values)


def swin_attention(net, x, heads, window, mask):
    """x: [windows, tokens, C]."""
    n, tokens, width = x[2]
    qkv = net.transpose(net.reshape(net.linear(x, 3 * width), (n, tokens, 3, heads, width // heads)), [2, 0, 3, 1, 4])
    q, k, v = (net.gather(qkv, part) for part in range(3))
    q = net.scaled(q, (width // heads) ** -0.5)
    scores = net.matmul(q, net.transpose(k, [0, 1, 3, 2]), (n, heads, tokens, tokens))
    scores = net.add(scores, position_bias(net, window, heads))
    if mask:
        windows = mask[2][0]
        scores = net.reshape(scores, (n // windows, windows, heads, tokens, tokens))
        scores = net.add(scores, net.unsqueeze(net.unsqueeze(mask, 1), 0))
        scores = net.reshape(scores, (n, heads, tokens, tokens))
    y = net.matmul(net.softmax(scores, 3), v, (n, heads, tokens, width // heads))
    return net.linear(net.from_heads(y), width)


def swin_layer(net, x, side, heads, window, shift):
    n, tokens, width = x[2]
    y = net.reshape(net.norm(x), (n, side, side, width))
    y = net.roll(y, [-shift, -shift], [1, 2]) if shift else y
    mask = shift_mask(net, side, window, shift) if shift else None
    y = swin_attention(net, in_windows(net, y, window), heads, window, mask)
    y = from_windows(net, y, n, side, side, window)
    y = net.roll(y, [shift, shift], [1, 2]) if shift else y
    x = net.add(x, net.reshape(y, (n, tokens, width)))
    return net.add(x, net.mlp(net.norm(x), 4 * width))


def merged_patches(net, x, side):
    n, _, width = x[2]
    x = net.reshape(x, (n, side, side, width))
    parts = [net.slice(net.slice(x, 1, row, side, 2), 2, column, side, 2) for column in range(2) for row in range(2)]
    x = net.reshape(net.concat(parts, 3), (n, side * side // 4, 4 * width))
    return net.linear(net.norm(x), 2 * width, bias=False)


def swin(net, size, width, depths, heads, window):
    x = net.norm(net.tokens_of(net.conv(net.parameter((1, 3, size, size)), width, 4, 4, pad=0)))
    side = size // 4
    for stage, (depth, count) in enumerate(zip(depths, heads)):
        if stage:
            x, side = merged_patches(net, x, side), side // 2
        for k in range(depth):
            x = swin_layer(net, x, side, count, window, window // 2 if k % 2 and side > window else 0)
    net.result(net.linear(net.mean(net.norm(x), 1), 1000))


def tinyvit_attention(net, x, heads, window):
    """x: [windows, tokens, C]; each head's queries, keys and values follow one another."""
    n, tokens, width = x[2]
    size = width // heads
    qkv = net.reshape(net.linear(net.norm(x), 3 * width), (n, tokens, heads, 3 * size))
    q, k, v = (net.transpose(part, [0, 2, 1, 3]) for part in net.split(qkv, [size] * 3, 3))
    scores = net.scaled(net.matmul(q, net.transpose(k, [0, 1, 3, 2]), (n, heads, tokens, tokens)), size ** -0.5)
    scores = net.add(scores, position_bias(net, window, heads))
    y = net.matmul(net.softmax(scores, 3), v, (n, heads, tokens, size))
    return net.linear(net.from_heads(y), width)


def tinyvit_layer(net, x, side, heads, window):
    n, tokens, width = x[2]
    y = net.reshape(x, (n, side, side, width))
    missing = -side % window
    y = net.pad(y, [0, missing, missing, 0]) if missing else y
    y = from_windows(net, tinyvit_attention(net, in_windows(net, y, window), heads, window), n, side + missing, side + missing, window)
    if missing:
        y = net.slice(net.slice(y, 1, 0, side), 2, 0, side)
    x = net.add(x, net.reshape(y, (n, tokens, width)))
    x = net.tokens_of(net.conv(net.picture_of(x, side, side), width, 3, groups=width))
    return net.add(x, net.mlp(net.norm(x), 4 * width))


def tinyvit_merge(net, x, out, stride):
    y = net.conv(net.conv(x, out, act="Gelu"), out, 3, stride, "Gelu", out)
    return net.conv(y, out)


def channel_norm(net, x, eps=1e-6):
    """LayerNorm of the channels of [N, C, H, W], in its steps."""
    centred = net.broadcast("Subtract", x, net.mean(x, 1, True))
    variance = net.mean(net.broadcast("Power", centred, net.number(2.0)), 1, True)
    y = net.broadcast("Divide", centred, net.op("Sqrt", [net.add(variance, net.number(eps))]))
    return net.add(net.multiply(y, net.about_one((x[2][1], 1, 1))), net.noise((x[2][1], 1, 1), 0.02))


def tinyvit(net, size, widths, depths, heads, windows, out):
    x = net.conv(net.parameter((1, 3, size, size)), widths[0] // 2, 3, 2, "Gelu")
    x = net.conv(x, widths[0], 3, 2)
    for _ in range(depths[0]):
        y = net.conv(net.conv(x, 4 * widths[0], act="Gelu"), 4 * widths[0], 3, 1, "Gelu", 4 * widths[0])
        x = net.function("Gelu", net.add(net.conv(y, widths[0], gain=0.3), x))
    for stage in range(1, len(widths)):
        x = tinyvit_merge(net, x, widths[stage], 2 if stage < 3 else 1)
        side = x[2][2]
        x = net.tokens_of(x)
        for _ in range(depths[stage]):
            x = tinyvit_layer(net, x, side, heads[stage], windows[stage])
        x = net.picture_of(x, side, side)
    x = channel_norm(net, net.conv(x, out, bias=False))
    net.result(channel_norm(net, net.conv(x, out, 3, bias=False)))


NETWORKS = {
    "swin_tiny": (swin, {"size": 224, "width": 96, "depths": (2, 2, 6, 2), "heads": (3, 6, 12, 24), "window": 7}),
    "tinyvit_encoder": (tinyvit, {"size": 512, "widths": (64, 128, 160, 320), "depths": (2, 2, 6, 2), "heads": (2, 4, 5, 10),
                                  "windows": (7, 7, 14, 7), "out": 256}),
}
TINY = {
    "swin_tiny": {"size": 64, "width": 32, "depths": (2, 2, 2), "heads": (1, 2, 4), "window": 4},
    "tinyvit_encoder": {"size": 64, "widths": (16, 32, 48, 64), "depths": (1, 1, 2, 1), "heads": (1, 2, 3, 2), "windows": (3, 3, 3, 2), "out": 32},
}
