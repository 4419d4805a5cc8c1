#!/usr/bin/env python3
"""Whether values keep their size through the random weights of pipelines/bench/networks.py.

    network_values.py PIPELINES/BENCH
"""
import array
import random
import sys

sys.path.insert(0, sys.argv[1])
import networks  # noqa: E402

CHANNELS, LAYERS = 128, 30

network = networks.Network()
x = network.parameter((1, CHANNELS, 1, 1))
weights = []
for _ in range(LAYERS):
    begin = len(network.weights) // 4
    x = network.conv(x, CHANNELS, 1, 1, "ReLU")
    weights.append(array.array("f", network.weights)[begin:begin + CHANNELS * CHANNELS])

draw = random.Random(1)
values = [draw.random() for _ in range(CHANNELS)]
for layer in weights:
    values = [max(0, sum(w * v for w, v in zip(layer[i * CHANNELS:(i + 1) * CHANNELS], values))) for i in range(CHANNELS)]
if not 0.01 < max(values) < 100:
    sys.exit(f"after {LAYERS} layers the largest value is {max(values):g}")
