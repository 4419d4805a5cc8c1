"""Vision transformers of whole pictures: ViT, DeiT, CLIP's picture encoder, DINOv2 with the head of Depth Anything."""


def embedded(net, size, patch, width, first=1, bias=True):
    """Patches as tokens after `first` learned ones, with positions."""
    picture = net.parameter((1, 3, size, size))
    x = net.tokens_of(net.conv(picture, width, patch, patch, pad=0, bias=bias, gain=0.5))
    images = net.batch_of(picture)
    x = net.concat([*(net.repeated(net.noise((1, 1, width), 0.5), images) for _ in range(first)), x])
    return net.add(x, net.noise((1, x[2][1], width), 0.3))


def joined_attention(net, x, heads):
    """One product for queries, keys and values, as timm has it."""
    n, tokens, width = x[2]
    qkv = net.reshape(net.linear(x, 3 * width), (n, tokens, 3, heads, width // heads))
    q, k, v = net.unbound(net.transpose(qkv, [2, 0, 3, 1, 4]))
    return net.linear(net.from_heads(net.dot_attention(q, k, v)), width)


def layer(net, x, heads, hidden):
    x = net.add(x, joined_attention(net, net.norm(x, 1e-6), heads))
    return net.add(x, net.mlp(net.norm(x, 1e-6), hidden))


def vit(net, size, patch, width, depth, heads, distilled=False):
    """With `distilled`, DeiT's second token and the mean of two classifiers."""
    first = 2 if distilled else 1
    x = embedded(net, size, patch, width, first)
    for _ in range(depth):
        x = layer(net, x, heads, 4 * width)
    x = net.norm(x, 1e-6)
    classes = [net.linear(net.gather(x, token, 1), 1000) for token in range(first)]
    net.result(net.scaled(net.add(*classes), 0.5) if distilled else classes[0])


def clip(net, size, patch, width, depth, heads, out):
    def quick_gelu(x):
        return net.multiply(x, net.function("Sigmoid", net.scaled(x, 1.702)))

    x = net.norm(embedded(net, size, patch, width, bias=False))
    for _ in range(depth):
        x = net.add(x, net.attention(net.norm(x), heads))
        x = net.add(x, net.linear(quick_gelu(net.linear(net.norm(x), 4 * width)), width))
    x = net.linear(net.norm(net.gather(x, 0, 1)), out, bias=False)
    net.result(net.broadcast("Divide", x, net.reduce("ReduceL2", x, -1, True)))


def dinov2_layer(net, x, heads):
    width = x[2][2]
    x = net.add(x, net.multiply(net.attention(net.norm(x, 1e-6), heads), net.about_one((width,))))
    return net.add(x, net.multiply(net.mlp(net.norm(x, 1e-6), 4 * width), net.about_one((width,))))


def depth_anything(net, size, width, depth, heads, channels, inner):
    """Four levels of tokens become maps of four sizes, which are joined from the coarsest on."""
    side = size // 14
    x = embedded(net, size, 14, width)
    maps = []
    for k in range(depth):
        x = dinov2_layer(net, x, heads)
        if (k + 1) % (depth // 4) == 0:
            y = net.slice(net.norm(x, 1e-6), 1, 1, x[2][1])
            maps.append(net.conv(net.picture_of(y, side, side), channels[len(maps)]))
    maps = [net.deconv(maps[0], channels[0], 4), net.deconv(maps[1], channels[1], 2), maps[2], net.conv(maps[3], channels[3], 3, 2)]
    maps = [net.conv(y, inner, 3, bias=False) for y in maps]

    def unit(y):
        return net.add(net.conv(net.function("ReLU", net.conv(net.function("ReLU", y), inner, 3)), inner, 3, gain=0.3), y)

    y = None
    for k in reversed(range(4)):
        y = unit(maps[k]) if y is None else unit(net.add(y, unit(maps[k])))
        sides = maps[k - 1][2][2:] if k else [2 * length for length in maps[0][2][2:]]
        y = net.conv(net.resize(y, *sides, corners=True), inner)
    y = net.resize(net.conv(y, inner // 2, 3), size, size, corners=True)
    y = net.conv(net.conv(y, 32, 3, act="ReLU"), 1, act="ReLU")
    net.result(net.squeeze(y, 1))


NETWORKS = {
    "vit_tiny_224": (vit, {"size": 224, "patch": 16, "width": 192, "depth": 12, "heads": 3}),
    "vit_small_224": (vit, {"size": 224, "patch": 16, "width": 384, "depth": 12, "heads": 6}),
    "vit_base_224": (vit, {"size": 224, "patch": 16, "width": 768, "depth": 12, "heads": 12}),
    "deit_small": (vit, {"size": 224, "patch": 16, "width": 384, "depth": 12, "heads": 6, "distilled": True}),
    "clip_vit_b32": (clip, {"size": 224, "patch": 32, "width": 768, "depth": 12, "heads": 12, "out": 512}),
    "depth_anything_s": (depth_anything, {"size": 518, "width": 384, "depth": 12, "heads": 6, "channels": (48, 96, 192, 384),
                                          "inner": 64}),
}
TINY = {
    "vit_tiny_224": {"size": 64, "width": 64, "depth": 2, "heads": 2},
    "vit_small_224": {"size": 96, "width": 96, "depth": 2, "heads": 3},
    "vit_base_224": {"size": 64, "width": 128, "depth": 2, "heads": 2},
    "deit_small": {"size": 64, "width": 64, "depth": 2, "heads": 2},
    "clip_vit_b32": {"size": 96, "width": 64, "depth": 2, "heads": 2, "out": 48},
    "depth_anything_s": {"size": 70, "width": 48, "depth": 4, "heads": 3, "channels": (8, 16, 24, 32), "inner": 16},
}
