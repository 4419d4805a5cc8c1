"""Training on frames that are generated as it goes."""
import math
import time

import numpy as np

from ball.evaluation import Tally
from ball.network import detect, load_network, loss_of, make_network, make_priors
from ball.scenes import EVAL_SEED, NET_H, NET_W, Scenes


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
