"""Detectors of queries: DETR, RT-DETR, D-FINE and RF-DETR."""
import math


def position_waves(net, side, width):
    """[1, side^2, width]: sines and cosines of rows and columns."""
    quarter, values = width // 4, []
    for y in range(side):
        for x in range(side):
            for place in (y, x):
                angles = [place / 100 ** (k / quarter) for k in range(quarter)]
                values += [wave(angle) for wave in (math.sin, math.cos) for angle in angles]
    return net.constant((1, side * side, width), values)


def mlp(net, x, widths):
    for width in widths[:-1]:
        x = net.function("ReLU", net.linear(x, width))
    return net.linear(x, widths[-1])


def resnet(net, x, blocks, width, expansion, deep_stem):
    """ResNet's maps of the last three stages. With a deep stem, means go before strided shortcuts (ResNet-vd)."""
    if deep_stem:
        for k, out in enumerate((width // 2, width // 2, width)):
            x = net.conv(x, out, 3, 1 if k else 2, "ReLU")
    else:
        x = net.conv(x, width, 7, 2, "ReLU")
    x, maps = net.max_pool(x, 3, 2, 1), []
    for stage, count in enumerate(blocks):
        inner = width << stage
        for k in range(count):
            stride = 2 if k == 0 and stage else 1
            if expansion == 4:
                y = net.conv(net.conv(net.conv(x, inner, act="ReLU"), inner, 3, stride, "ReLU"), 4 * inner, gain=0.3)
            else:
                y = net.conv(net.conv(x, inner, 3, stride, "ReLU"), inner, 3, gain=0.3)
            skip = x
            if stride == 2 and deep_stem:
                skip = net.conv(net.average_pool(x, 2), inner * expansion)
            elif stride == 2 or x[2][1] != inner * expansion:
                skip = net.conv(x, inner * expansion, 1, stride)
            x = net.function("ReLU", net.add(y, skip))
        maps.append(x)
    return maps[1:]


def attend(net, q, k, v, heads):
    """torch.nn.MultiheadAttention's: queries are scaled after their product."""
    width = q[2][2]
    q, k, v = (net.in_heads(net.linear(y, width), heads) for y in (q, k, v))
    q = net.scaled(q, (width // heads) ** -0.5)
    scores = net.matmul(q, net.transpose(k, [0, 1, 3, 2]), (*q[2][:-1], k[2][2]))
    return net.linear(net.from_heads(net.matmul(net.softmax(scores, 3), v, q[2])), width)


def detr(net, size, blocks, width, hidden, depth, heads, queries, classes):
    x = net.conv(resnet(net, net.parameter((1, 3, size, size)), blocks, width, 4, False)[-1], hidden)
    side = x[2][2]
    x, places = net.tokens_of(x), position_waves(net, side, hidden)
    for _ in range(depth):
        placed = net.add(x, places)
        x = net.norm(net.add(x, attend(net, placed, placed, x, heads)))
        x = net.norm(net.add(x, net.mlp(x, 8 * hidden, "ReLU")))
    keys, query = net.add(x, places), net.noise((1, queries, hidden), 1.0)
    y = net.repeated(net.floats((1, queries, hidden), 0.0), net.batch_of(x))
    for _ in range(depth):
        placed = net.add(y, query)
        y = net.norm(net.add(y, attend(net, placed, placed, y, heads)))
        y = net.norm(net.add(y, attend(net, net.add(y, query), keys, x, heads)))
        y = net.norm(net.add(y, net.mlp(y, 8 * hidden, "ReLU")))
    y = net.norm(y)
    net.result(net.linear(y, classes))
    net.result(net.function("Sigmoid", mlp(net, y, (hidden, hidden, 4))))


def sampled(net, values, shapes, places, weights, points):
    """Deformable attention as exporters write it: a GridSample for each level, and a weighted sum.

    values: a [N, h w, heads, size] for each level; places: [N, queries, heads, all points, 2] in 0 ... 1;
    weights: [N, queries, heads, all points]. Gives [N, queries, heads size].
    """
    n, queries, heads, total, _ = places[2]
    size = values[0][2][3]
    grids = net.transpose(net.broadcast("Subtract", net.scaled(places, 2.0), net.number(1.0)), [0, 2, 1, 3, 4])
    grids = net.split(net.reshape(grids, (n * heads, queries, total, 2)), points, 2)
    parts = []
    for value, (height, width), grid in zip(values, shapes, grids):
        value = net.reshape(net.transpose(value, [0, 2, 3, 1]), (n * heads, size, height, width))
        parts.append(net.grid_sample(value, grid))
    weights = net.reshape(net.transpose(weights, [0, 2, 1, 3]), (n * heads, 1, queries, total))
    seen = parts[0] if len(parts) == 1 else net.concat(parts, 3)
    seen = net.reduce("ReduceSum", net.multiply(seen, weights), -1)
    return net.transpose(net.reshape(seen, (n, heads * size, queries)), [0, 2, 1])


def stacked(net, values, shapes, places, weights, levels, points):
    """As RT-DETR writes it: places [N, queries, heads, levels, points, 2], levels stacked before their points."""
    n, queries, heads = places[2][:3]
    size = values[0][2][3]
    grids = net.broadcast("Subtract", net.scaled(places, 2.0), net.number(1.0))
    parts = []
    for level, (value, (height, width)) in enumerate(zip(values, shapes)):
        value = net.reshape(value, (n, height * width, heads * size))
        value = net.reshape(net.transpose(value, [0, 2, 1]), (n * heads, size, height, width))
        grid = net.transpose(net.gather(grids, level, 3), [0, 2, 1, 3, 4])
        parts.append(net.unsqueeze(net.grid_sample(value, net.reshape(grid, (n * heads, queries, points, 2))), -2))
    weights = net.reshape(net.transpose(weights, [0, 2, 1, 3, 4]), (n * heads, 1, queries, levels * points))
    seen = net.reshape(net.concat(parts, 3), (n * heads, size, queries, levels * points))
    seen = net.reduce("ReduceSum", net.multiply(seen, weights), -1)
    return net.transpose(net.reshape(seen, (n, heads * size, queries)), [0, 2, 1])


def rt_cross_attention(net, x, boxes, memory, shapes, heads, levels, points):
    """boxes: [N, queries, 4], centre and size."""
    n, queries, width = x[2]
    tokens = memory[2][1]
    values = net.reshape(net.linear(memory, width), (n, tokens, heads, width // heads))
    values = net.split(values, [height * across for height, across in shapes]) if levels > 1 else [values]
    offsets = net.reshape(net.linear(x, heads * levels * points * 2), (n, queries, heads, levels, points, 2))
    weights = net.reshape(net.linear(x, heads * levels * points), (n, queries, heads, levels * points))
    weights = net.reshape(net.softmax(weights, 3), (n, queries, heads, levels, points))
    boxes = net.reshape(boxes, (n, queries, 1, 1, 1, 4))
    offsets = net.scaled(net.multiply(net.scaled(offsets, 1 / points), net.slice(boxes, -1, 2, 4)), 0.5)
    places = net.add(net.slice(boxes, -1, 0, 2), offsets)
    return net.linear(stacked(net, values, shapes, places, weights, levels, points), width)


def fine_cross_attention(net, x, boxes, values, shapes, heads, points):
    """D-FINE's: levels have their own numbers of points, and the values no products."""
    n, queries, width = x[2]
    total = sum(points)
    offsets = net.reshape(net.linear(x, heads * total * 2), (n, queries, heads, total, 2))
    weights = net.softmax(net.reshape(net.linear(x, heads * total), (n, queries, heads, total)), 3)
    scales = net.constant((total, 1), [1 / count for count in points for _ in range(count)])
    boxes = net.reshape(boxes, (n, queries, 1, 1, 4))
    offsets = net.scaled(net.multiply(net.multiply(offsets, scales), net.slice(boxes, -1, 2, 4)), 0.5)
    return sampled(net, values, shapes, net.add(net.slice(boxes, -1, 0, 2), offsets), weights, points)


def inverse_sigmoid(net, x):
    """log(x / (1 - x)) away from 0 and 1."""
    def clamped(y, low, high):
        return net.op("Clamp", [y], data={"min": low, "max": high})

    x = clamped(x, 0.0, 1.0)
    rest = clamped(net.broadcast("Subtract", net.number(1.0), x), 1e-5, 1.0)
    return net.op("Log", [net.broadcast("Divide", clamped(x, 1e-5, 1.0), rest)])


def rep_blocks(net, x, out, inner, count):
    """CSPRepLayer, its RepVGG blocks as one convolution each."""
    a, b = (net.conv(x, inner, act="Swish") for _ in range(2))
    for _ in range(count):
        a = net.conv(a, inner, 3, 1, "Swish", gain=0.7)
    y = net.add(a, b)
    return net.conv(y, out, act="Swish") if inner != out else y


def gelan(net, x, out, count):
    """RepNCSPELAN4 of D-FINE's encoder."""
    x = net.conv(x, 2 * out, act="Swish")
    parts = net.split(x, [out, out])
    for _ in range(2):
        y = rep_blocks(net, parts[-1], out // 2, out // 2, count)
        parts.append(net.conv(y, out // 2, 3, act="Swish"))
    return net.conv(net.concat(parts), out, act="Swish")


def hybrid_encoder(net, maps, width, hidden, heads, block, down):
    """Attention at the coarsest level, then levels joined downwards and upwards."""
    maps = [net.conv(y, width) for y in maps]
    side = maps[-1][2][2]
    x = net.tokens_of(maps[-1])
    placed = net.add(x, position_waves(net, side, width))
    x = net.norm(net.add(x, attend(net, placed, placed, x, heads)))
    maps[-1] = net.picture_of(net.norm(net.add(x, net.mlp(x, hidden))), side, side)
    inner = [maps[-1]]
    for y in maps[-2::-1]:
        inner[0] = net.conv(inner[0], width, act="Swish")
        inner.insert(0, block(net.concat([net.twice_as_large(inner[0]), y])))
    outer = [inner[0]]
    for y in inner[1:]:
        outer.append(block(net.concat([down(outer[-1]), y])))
    return outer


def anchors(shapes):
    """(the logits of a box at each cell, 1 where the cell counts)."""
    values, counts = [], []
    for level, (height, width) in enumerate(shapes):
        for y in range(height):
            for x in range(width):
                box = [(x + 0.5) / width, (y + 0.5) / height] + [0.05 * 2 ** level] * 2
                counts.append(float(all(0.01 < side < 0.99 for side in box)))
                values += [math.log(side / (1 - side)) if counts[-1] else 1e4 for side in box]
    return values, counts


def chosen_queries(net, memory, shapes, queries, classes):
    """(queries, the logits of their boxes): the cells of the largest scores."""
    n, tokens, width = memory[2]
    values, counts = anchors(shapes)
    memory = net.multiply(net.constant((1, tokens, 1), counts), memory)
    memory = net.norm(net.linear(memory, width))
    scores = net.linear(memory, classes)
    boxes = net.add(mlp(net, memory, (width, width, 4)), net.constant((1, tokens, 4), values))
    _, index = net.top(net.reduce("ReduceMax", scores, -1), queries)
    return net.rows_at(memory, index), net.rows_at(boxes, index)


def flattened(net, maps, width):
    """(tokens of all levels, their sizes)."""
    maps = [net.conv(y, width) for y in maps]
    return net.concat([net.tokens_of(y) for y in maps]), [y[2][2:] for y in maps]


def rt_detr(net, size, blocks, width, expansion, hidden, share, depth, heads, queries, classes):
    maps = resnet(net, net.parameter((1, 3, size, size)), blocks, width, expansion, True)
    inner = int(hidden * share)
    maps = hybrid_encoder(net, maps, hidden, 4 * hidden, heads, lambda x: rep_blocks(net, x, hidden, inner, 3),
                          lambda x: net.conv(x, hidden, 3, 2, "Swish"))
    memory, shapes = flattened(net, maps, hidden)
    x, logits = chosen_queries(net, memory, shapes, queries, classes)
    boxes = net.function("Sigmoid", logits)
    for _ in range(depth):
        placed = net.add(x, mlp(net, boxes, (2 * hidden, hidden)))
        x = net.norm(net.add(x, attend(net, placed, placed, x, heads)))
        placed = net.add(x, mlp(net, boxes, (2 * hidden, hidden)))
        x = net.norm(net.add(x, rt_cross_attention(net, placed, boxes, memory, shapes, heads, 3, 4)))
        x = net.norm(net.add(x, net.mlp(x, 4 * hidden, "ReLU")))
        boxes = net.function("Sigmoid", net.add(mlp(net, x, (hidden, hidden, 4)), inverse_sigmoid(net, boxes)))
    net.result(net.linear(x, classes))
    net.result(boxes)


def hgnet(net, x, stem, stages):
    """PP-HGNetV2's maps of the last three stages."""
    x = net.conv(x, stem[0], 3, 2, "ReLU")
    y = net.conv(net.pad(x, [0, 0, 1, 1]), stem[0] // 2, 2, 1, "ReLU", pad=0)
    y = net.conv(net.pad(y, [0, 0, 1, 1]), stem[0], 2, 1, "ReLU", pad=0)
    x = net.concat([net.max_pool(net.pad(x, [0, 0, 1, 1]), 2, 1, 0), y])
    x, maps = net.conv(net.conv(x, stem[0], 3, 2, "ReLU"), stem[1], act="ReLU"), []
    for stage, (inner, out, blocks, light, kernel) in enumerate(stages):
        x = net.conv(x, x[2][1], 3, 2, groups=x[2][1]) if stage else x
        for k in range(blocks):
            parts = [x]
            for _ in range(3):
                y = parts[-1]
                if light:
                    y = net.conv(net.conv(y, inner), inner, kernel, 1, "ReLU", inner)
                else:
                    y = net.conv(y, inner, kernel, 1, "ReLU")
                parts.append(net.scaled(y, 0.9))
            y = net.conv(net.conv(net.concat(parts), out // 2, act="ReLU"), out, act="ReLU", gain=0.5)
            x = net.add(x, y) if k else y
        maps.append(x)
    return maps[1:]


def fine_boxes(net, corners, boxes, bins):
    """Boxes from distributions of the distances to four sides, weighted as D-FINE does."""
    n, queries, _ = corners[2]
    half = bins // 2
    project = [0.5 * math.copysign((1.5 ** (abs(k - half) / half * 4) - 1) / 4, k - half) for k in range(bins + 1)]
    shares = net.softmax(net.reshape(corners, (n * queries * 4, bins + 1)), 1)
    means = net.matmul(shares, net.constant((bins + 1, 1), project), (n * queries * 4, 1))
    left, top, right, bottom = net.split(net.reshape(means, (n, queries, 4)), [1] * 4, 2)
    x, y, width, height = net.split(boxes, [1] * 4, 2)

    def sides(centre, length, first, last):
        first = net.broadcast("Subtract", centre, net.multiply(net.add(first, net.number(2.0)), net.scaled(length, 0.25)))
        last = net.add(centre, net.multiply(net.add(last, net.number(2.0)), net.scaled(length, 0.25)))
        return net.scaled(net.add(first, last), 0.5), net.broadcast("Subtract", last, first)

    (x, width), (y, height) = sides(x, width, left, right), sides(y, height, top, bottom)
    return net.concat([x, y, width, height], 2)


def d_fine(net, size, stem, stages, hidden, depth, heads, points, queries, classes, bins=32):
    maps = hgnet(net, net.parameter((1, 3, size, size)), stem, stages)
    maps = hybrid_encoder(net, maps, hidden, 4 * hidden, heads, lambda x: gelan(net, x, hidden, 1),
                          lambda x: net.conv(net.conv(x, hidden, act="Swish"), hidden, 3, 2, groups=hidden))
    memory = net.concat([net.tokens_of(y) for y in maps])
    shapes = [y[2][2:] for y in maps]
    x, logits = chosen_queries(net, memory, shapes, queries, classes)
    values = net.reshape(memory, (1, memory[2][1], heads, hidden // heads))
    values = net.split(values, [height * across for height, across in shapes])
    first = boxes = net.function("Sigmoid", logits)
    corners = None
    for _ in range(depth):
        placed = mlp(net, boxes, (2 * hidden, hidden))
        both = net.add(x, placed)
        x = net.norm(net.add(x, attend(net, both, both, x, heads)))
        seen = fine_cross_attention(net, net.add(x, placed), boxes, values, shapes, heads, points)
        gates = net.function("Sigmoid", net.linear(net.concat([x, seen], 2), 2 * hidden))
        gates = net.split(gates, [hidden, hidden], 2)
        x = net.norm(net.add(net.multiply(gates[0], x), net.multiply(gates[1], seen)))
        x = net.norm(net.op("Clamp", [net.add(x, net.mlp(x, 4 * hidden, "ReLU"))], data={"min": -65504.0, "max": 65504.0}))
        change = mlp(net, x, (hidden, hidden, 4 * (bins + 1)))
        corners = net.add(change, corners) if corners else change
        boxes = fine_boxes(net, corners, first, bins)
    # The share of the four likeliest distances says how sure a box is.
    shares = net.softmax(net.reshape(corners, (1, queries, 4, bins + 1)), 3)
    best, _ = net.top(shares, 4)
    sure = net.concat([best, net.mean(best, -1, True)], 3)
    sure = mlp(net, net.reshape(sure, (1, queries, 20)), (64, 1))
    net.result(net.add(net.linear(x, classes), sure))
    net.result(boxes)


def rf_layer(net, x, heads, images):
    """DINOv2's layer on tokens of windows, or, with `images`, on those of whole pictures."""
    n, tokens, width = x[2]
    y = net.norm(x, 1e-6)
    y = net.reshape(y, (images, n * tokens // images, width)) if images else y
    y = net.attention(y, heads)
    y = net.reshape(y, x[2]) if images else y
    x = net.add(x, net.multiply(y, net.about_one((width,))))
    return net.add(x, net.multiply(net.mlp(net.norm(x, 1e-6), 4 * width), net.about_one((width,))))


def rf_detr(net, size, width, layers, whole, taken, windows, heads, hidden, depth, queries, classes, points=2):
    """Windowed DINOv2 of which `whole` layers see the picture; layers `taken` become one map."""
    side = size // 16
    part = side // windows
    x = net.tokens_of(net.conv(net.parameter((1, 3, size, size)), width, 16, 16, pad=0, gain=0.5))
    x = net.add(x, net.noise((1, side * side, width), 0.3))
    x = net.transpose(net.reshape(x, (windows, part, windows, part, width)), [0, 2, 1, 3, 4])
    x = net.reshape(x, (windows ** 2, part * part, width))
    maps = []
    for k in range(layers):
        x = rf_layer(net, x, heads, 1 if k in whole else 0)
        if k in taken:
            y = net.reshape(net.norm(x, 1e-6), (windows, windows, part, part, width))
            y = net.reshape(net.transpose(y, [0, 2, 1, 3, 4]), (1, side * side, width))
            maps.append(net.picture_of(y, side, side))
    parts = net.split(net.conv(net.concat(maps), hidden, act="Swish"), [hidden // 2] * 2)
    for _ in range(3):
        parts.append(net.conv(net.conv(parts[-1], hidden // 2, 3, 1, "Swish"), hidden // 2, 3, 1, "Swish"))
    y = net.conv(net.concat(parts), hidden, act="Swish")
    memory, shapes = net.norm(net.tokens_of(y)), [(side, side)]
    _, logits = chosen_queries(net, memory, shapes, queries, classes)
    boxes = net.function("Sigmoid", logits)
    x = net.repeated(net.noise((1, queries, hidden), 1.0), net.batch_of(memory))
    placed = mlp(net, boxes, (2 * hidden, hidden))
    for _ in range(depth):
        both = net.add(x, placed)
        x = net.norm(net.add(x, attend(net, both, both, x, hidden // 32)))
        x = net.norm(net.add(x, rt_cross_attention(net, net.add(x, placed), boxes, memory, shapes, hidden // 16, 1, points)))
        x = net.norm(net.add(x, net.mlp(x, 8 * hidden, "ReLU")))
    change = mlp(net, x, (hidden, hidden, 4))
    centre, sides = net.split(change, [2, 2], 2)
    lengths = net.slice(boxes, -1, 2, 4)
    centre = net.add(net.multiply(centre, lengths), net.slice(boxes, -1, 0, 2))
    net.result(net.linear(x, classes))
    net.result(net.concat([centre, net.multiply(net.op("Exp", [net.scaled(sides, 0.2)]), lengths)], 2))


HGNET_B0 = [(16, 64, 1, False, 3), (32, 256, 1, False, 3), (64, 512, 2, True, 5), (128, 1024, 1, True, 5)]
NETWORKS = {
    "detr_r50": (detr, {"size": 800, "blocks": (3, 4, 6, 3), "width": 64, "hidden": 256, "depth": 6, "heads": 8, "queries": 100,
                        "classes": 92}),
    "rtdetr_r18": (rt_detr, {"size": 640, "blocks": (2, 2, 2, 2), "width": 64, "expansion": 1, "hidden": 256, "share": 0.5, "depth": 3,
                             "heads": 8, "queries": 300, "classes": 80}),
    "rtdetr_r50": (rt_detr, {"size": 640, "blocks": (3, 4, 6, 3), "width": 64, "expansion": 4, "hidden": 256, "share": 1.0, "depth": 6,
                             "heads": 8, "queries": 300, "classes": 80}),
    "dfine_s": (d_fine, {"size": 640, "stem": (16, 16), "stages": HGNET_B0, "hidden": 256, "depth": 3, "heads": 8, "points": (3, 6, 3),
                         "queries": 300, "classes": 80}),
    "rfdetr_nano": (rf_detr, {"size": 384, "width": 384, "layers": 12, "whole": (3, 6, 9), "taken": (2, 5, 8, 11), "windows": 2, "heads": 6,
                              "hidden": 256, "depth": 2, "queries": 300, "classes": 91}),
}
TINY = {
    "detr_r50": {"size": 96, "blocks": (1, 1, 1, 1), "width": 16, "hidden": 32, "depth": 1, "heads": 4, "queries": 10, "classes": 7},
    "rtdetr_r18": {"size": 96, "blocks": (1, 1, 1, 1), "width": 16, "hidden": 32, "depth": 1, "heads": 4, "queries": 20, "classes": 7},
    "rtdetr_r50": {"size": 96, "blocks": (1, 1, 1, 1), "width": 16, "hidden": 64, "depth": 2, "heads": 4, "queries": 20, "classes": 7},
    "dfine_s": {"size": 96, "stages": [(8, 32, 1, False, 3), (16, 48, 1, False, 3), (16, 64, 1, True, 5), (24, 80, 1, True, 5)],
                "hidden": 32, "depth": 2, "heads": 4, "points": (3, 4, 3), "queries": 20, "classes": 7},
    "rfdetr_nano": {"size": 96, "width": 48, "layers": 4, "whole": (1,), "taken": (1, 3), "heads": 3, "hidden": 32, "depth": 1, "queries": 9,
                    "classes": 7},
}
