#!/usr/bin/env python3
"""Measures the tracker of cltrack on real streets: MOT17's second halves and MOT20-01, with public detections, by TrackEval.

Usage: mot.py BUILD/tests/gst/track_boxes DETECTIONS TRUTH [--set PROPERTY=VALUE ...]
Needs: pip install trackeval

The data are not part of this project; both are clones of repositories on GitHub:
  DETECTIONS  corfyi/UCMCTrack (commit 7851a49): det_results/mot17/yolox_x_ablation are YOLOX-X boxes by a network that was
              trained on the first halves; det_results/mot20 are those of a network that saw MOT20
  TRUTH       GerardMaggiolino/Deep-OC-SORT (commit 6bb51d0): results/gt has the second halves of MOT17's and MOT20's training
              sequences, numbered from 1
Scores: HOTA, IDF1 and MOTA in percent over all sequences, and identity switches. The docs page says by which of them the parameters were chosen.
"""
import argparse
import configparser
import contextlib
import io
import os
import subprocess
import sys
import tempfile

SETS = {
    "MOT20": ("results/gt/MOT20-val", "det_results/mot20/MOT20-{}.txt", "MOT20-{}", ["01"]),
    "MOT17": ("results/gt/MOT17-val", "det_results/mot17/yolox_x_ablation/MOT17-{}-SDP.txt", "MOT17-{}-FRCNN", ["02", "04", "05", "09", "10", "11", "13"]),
}


def boxes_of(path, length):
    """The lines of the last `length` frames, numbered from 1."""
    lines = [line.split(",") for line in open(path) if line.strip()]
    skipped = max(int(line[0]) for line in lines) - length
    return "".join(",".join([str(int(line[0]) - skipped), *line[1:]]) for line in lines if int(line[0]) > skipped)


def track(program, fps, boxes, settings):
    run = subprocess.run([program, str(fps), "1", *settings], input=boxes, capture_output=True, text=True, check=True)
    frames, rate = float(run.stderr.split()[0]), float(run.stderr.split()[-2])
    return run.stdout, frames, frames / rate


def evaluate(truth, tracks, benchmark, sequences):
    import trackeval
    config = {**trackeval.Evaluator.get_default_eval_config(), "PRINT_CONFIG": False, "PRINT_RESULTS": False, "OUTPUT_SUMMARY": False,
              "OUTPUT_DETAILED": False, "PLOT_CURVES": False, "TIME_PROGRESS": False}
    data = {**trackeval.datasets.MotChallenge2DBox.get_default_dataset_config(), "PRINT_CONFIG": False, "BENCHMARK": benchmark,
            "GT_FOLDER": truth, "TRACKERS_FOLDER": tracks, "TRACKERS_TO_EVAL": ["cltrack"], "SKIP_SPLIT_FOL": True,
            "SEQ_INFO": {name: length for name, length in sequences}}
    with contextlib.redirect_stdout(io.StringIO()):
        results, _ = trackeval.Evaluator(config).evaluate([trackeval.datasets.MotChallenge2DBox(data)],
                                                          [trackeval.metrics.HOTA(), trackeval.metrics.Identity(), trackeval.metrics.CLEAR()])
    per_sequence = results["MotChallenge2DBox"]["cltrack"]
    return {name: (100 * row["pedestrian"]["HOTA"]["HOTA"].mean(), 100 * row["pedestrian"]["Identity"]["IDF1"],
                   100 * row["pedestrian"]["CLEAR"]["MOTA"], row["pedestrian"]["CLEAR"]["IDSW"]) for name, row in per_sequence.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("detections")
    parser.add_argument("truth")
    parser.add_argument("--set", action="append", default=[], metavar="PROPERTY=VALUE", help="a property of cltrack; default: its defaults")
    parser.add_argument("--benchmarks", default="MOT20,MOT17")
    parser.add_argument("--sequences", action="store_true", help="each sequence as well")
    options = parser.parse_args()
    print("| data | HOTA | IDF1 | MOTA | switches | frames/s |\n| --- | --- | --- | --- | --- | --- |")
    for benchmark in options.benchmarks.split(","):
        folder, detections, name, numbers = SETS[benchmark]
        truth, frames, seconds, sequences = os.path.join(options.truth, folder), 0, 0, []
        with tempfile.TemporaryDirectory() as tracks:
            os.makedirs(f"{tracks}/cltrack/data")
            for number in numbers:
                facts = configparser.ConfigParser()
                if not facts.read(f"{truth}/{name.format(number)}/seqinfo.ini"):
                    sys.exit(f"{truth} has no {name.format(number)}: the docstring says where to get it")
                fps, length = float(facts["Sequence"]["frameRate"]), int(facts["Sequence"]["seqLength"])
                boxes = boxes_of(os.path.join(options.detections, detections.format(number)), length)
                lines, count, took = track(options.program, fps, boxes, options.set)
                open(f"{tracks}/cltrack/data/{name.format(number)}.txt", "w").write(lines)
                frames, seconds = frames + count, seconds + took
                sequences.append((name.format(number), length))
            rows = evaluate(truth, tracks, benchmark, sequences)
        for row, (hota, idf1, mota, switches) in rows.items():
            if row == "COMBINED_SEQ" or options.sequences:
                print(f"| {benchmark if row == 'COMBINED_SEQ' else row} | {hota:.2f} | {idf1:.2f} | {mota:.2f} | {switches:.0f} | {frames / seconds:,.0f} |", flush=True)


if __name__ == "__main__":
    main()
