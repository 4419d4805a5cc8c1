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

from ball.evaluation import command_evaluate, command_selftest, command_show, command_videotestsrc
from ball.export import command_convert
from ball.scenes import EVAL_SEED
from ball.training import command_train

COMMANDS = {'train': command_train, 'convert': command_convert, 'evaluate': command_evaluate,
            'videotestsrc': command_videotestsrc, 'show': command_show, 'selftest': command_selftest}


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
    COMMANDS[args.command](args)


if __name__ == '__main__':
    main()
