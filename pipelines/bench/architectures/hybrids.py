"""Convolutions and tokens in turn: SegFormer, MobileViT, the recogniser of PP-OCR (SVTR)."""
from architectures.layers import pair


def reduced_attention(net, x, side, heads, ratio):
    """Keys and values are those of a smaller picture."""
    width, keys = x[2][2], x
    if ratio > 1:
        keys = net.norm(net.tokens_of(net.conv(net.picture_of(x, side, side), width, ratio, ratio, pad=0)))
    q, k, v = (net.in_heads(net.linear(y, width), heads) for y in (x, keys, keys))
    scores = net.matmul(q, net.transpose(k, [0, 1, 3, 2]), (*q[2][:-1], k[2][2]))
    scores = net.softmax(net.broadcast("Divide", scores, net.number((width // heads) ** 0.5)), 3)
    return net.linear(net.from_heads(net.matmul(scores, v, q[2])), width)


def segformer(net, size, widths, depths, heads, ratios, inner, classes):
    x = net.parameter((1, 3, size, size))
    levels = []
    for stage, (width, depth) in enumerate(zip(widths, depths)):
        x = net.conv(x, width, 3 if stage else 7, 2 if stage else 4)
        side = x[2][2]
        x = net.norm(net.tokens_of(x))
        for _ in range(depth):
            x = net.add(x, reduced_attention(net, net.norm(x), side, heads[stage], ratios[stage]))
            y = net.picture_of(net.linear(net.norm(x), 4 * width), side, side)
            y = net.function("Gelu", net.tokens_of(net.conv(y, 4 * width, 3, groups=4 * width)))
            x = net.add(x, net.linear(y, width))
        x = net.picture_of(net.norm(x), side, side)
        levels.append(x)
    side = levels[0][2][2]
    maps = [net.picture_of(net.linear(net.tokens_of(y), inner), *y[2][2:]) for y in levels]
    maps = [net.resize(y, side, side) for y in maps]
    x = net.conv(net.concat(maps[::-1]), inner, act="ReLU")
    net.result(net.conv(x, classes))


def inverted(net, x, out, stride):
    hidden = 4 * x[2][1]
    y = net.conv(net.conv(net.conv(x, hidden, act="Swish"), hidden, 3, stride, "Swish", hidden), out, gain=0.3)
    return net.add(x, y) if stride == 1 and x[2][1] == out else y


def mobilevit_block(net, x, width, depth):
    """Pixels at the same place of their patches of 2 x 2 see each other."""
    n, channels, height, across = x[2]
    rows, columns = height // 2, across // 2
    y = net.conv(net.conv(x, channels, 3, 1, "Swish"), width, bias=False)
    y = net.transpose(net.reshape(y, (n * width * rows, 2, columns, 2)), [0, 2, 1, 3])
    y = net.transpose(net.reshape(y, (n, width, rows * columns, 4)), [0, 3, 2, 1])
    y = net.reshape(y, (n * 4, rows * columns, width))
    for _ in range(depth):
        y = net.add(y, net.attention(net.norm(y), 4))
        y = net.add(y, net.mlp(net.norm(y), 2 * width, "Swish"))
    y = net.reshape(net.norm(y), (n, 4, rows * columns, width))
    y = net.reshape(net.transpose(y, [0, 3, 2, 1]), (n * width * rows, columns, 2, 2))
    y = net.reshape(net.transpose(y, [0, 2, 1, 3]), (n, width, height, across))
    y = net.conv(y, channels, act="Swish")
    return net.conv(net.concat([x, y]), channels, 3, 1, "Swish")


def mobilevit(net, size, widths, tokens, depths):
    x = net.conv(net.parameter((1, 3, size, size)), 16, 3, 2, "Swish")
    x = inverted(net, x, widths[0], 1)
    for k in range(3):
        x = inverted(net, x, widths[1], 2 if k == 0 else 1)
    for width, inner, depth in zip(widths[2:], tokens, depths):
        x = mobilevit_block(net, inverted(net, x, width, 2), inner, depth)
    x = net.conv(x, 4 * x[2][1], act="Swish")
    net.result(net.linear(net.reshape(net.mean_of_image(x), x[2][:2]), 1000))


def squeezed(net, x):
    y = net.conv(net.conv(net.mean_of_image(x), x[2][1] // 4, act="ReLU"), x[2][1], act="HSigmoid")
    return net.multiply(x, y)


def affine_hswish(net, x):
    """Hard swish between numbers that the backbone learns, PP-LCNetV3's LearnableAffineBlock."""
    y = net.add(net.scaled(x, 1.1), net.constant((1,), [0.05]))
    return net.add(net.scaled(net.function("HSwish", y), 0.9), net.constant((1,), [0.02]))


def svtr(net, height, width, scale, dims, heads, classes):
    def scaled(channels):
        return max(16, int(channels * scale + 8) // 16 * 16)

    x = net.conv(net.parameter((1, 3, height, width)), scaled(16), 3, 2)
    for kernel, out, stride, squeeze in [(3, 32, 1, False), (3, 64, 1, False), (3, 64, (2, 1), False), (3, 128, 1, False),
                                         (3, 128, (1, 2), False), (3, 256, 1, False), *[(5, 256, 1, False)] * 4, (5, 512, (2, 1), True),
                                         (5, 512, 1, True), (5, 512, (2, 1), False), (5, 512, 1, False)]:
        x = affine_hswish(net, net.conv(x, x[2][1], kernel, stride, groups=x[2][1], pad=pair(kernel // 2)))
        x = squeezed(net, x) if squeeze else x
        x = affine_hswish(net, net.conv(x, scaled(out)))
    x = net.average_pool(x, (3, 2))
    channels, skip = x[2][1], x
    x = net.conv(net.conv(x, channels // 8, (1, 3), act="Swish"), dims, act="Swish")
    rows, columns = x[2][2:]
    y = net.tokens_of(x)
    for _ in range(2):
        n, tokens, width = y[2]
        qkv = net.reshape(net.linear(net.norm(y), 3 * width), (n, tokens, 3, heads, width // heads))
        qkv = net.transpose(qkv, [2, 0, 3, 1, 4])
        q, k, v = (net.gather(qkv, part) for part in range(3))
        q = net.scaled(q, (width // heads) ** -0.5)
        scores = net.softmax(net.matmul(q, net.transpose(k, [0, 1, 3, 2]), (*q[2][:-1], tokens)), 3)
        y = net.add(y, net.linear(net.from_heads(net.matmul(scores, v, q[2])), width))
        y = net.add(y, net.mlp(net.norm(y), 2 * width, "Swish"))
    y = net.reshape(net.norm(y, 1e-6), (1, rows, columns, dims))
    y = net.conv(net.transpose(y, [0, 3, 1, 2]), channels, act="Swish")
    y = net.conv(net.concat([skip, y]), channels // 8, (1, 3), act="Swish")
    y = net.squeeze(net.conv(y, dims, act="Swish"), 2)
    net.result(net.softmax(net.linear(net.transpose(y, [0, 2, 1]), classes), 2))


NETWORKS = {
    "segformer_b0": (segformer, {"size": 512, "widths": (32, 64, 160, 256), "depths": (2, 2, 2, 2), "heads": (1, 2, 5, 8),
                                 "ratios": (8, 4, 2, 1), "inner": 256, "classes": 150}),
    "mobilevit_s": (mobilevit, {"size": 256, "widths": (32, 64, 96, 128, 160), "tokens": (144, 192, 240), "depths": (2, 4, 3)}),
    "svtr": (svtr, {"height": 48, "width": 320, "scale": 0.95, "dims": 120, "heads": 8, "classes": 6625}),
}
TINY = {
    "segformer_b0": {"size": 64, "widths": (16, 32, 40, 64), "depths": (1, 1, 1, 1), "heads": (1, 2, 5, 4), "inner": 32, "classes": 11},
    "mobilevit_s": {"size": 64, "widths": (8, 16, 24, 32, 40), "tokens": (32, 48, 64), "depths": (1, 1, 1)},
    "svtr": {"width": 80, "scale": 0.25, "dims": 24, "heads": 4, "classes": 97},
}
