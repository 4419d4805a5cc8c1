#!/usr/bin/env python3
"""Makes a file of tuning/db/ of tuning files: make_db.py db/NAME.json TUNING.json... [--gain 1.1]

Keeps the records of searches that were not stopped and whose kernel was measured to be so much faster than the untuned one; of
several for one operation on one kind of device, the best. The files may come from any machine: `clinfer tune` there, with
TUNING_DB=NO. A new NAME.json goes into shipped_files of tuning/meson.build, too.
"""
import argparse
import json
import pathlib

KEPT = ("op", "point", "family_version", "device", "driver", "kind", "ns", "default_ns")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("tuning", nargs="+", type=pathlib.Path)
    parser.add_argument("--gain", type=float, default=1.1)
    args = parser.parse_args()
    best = {}
    for path in args.tuning:
        for units, records in json.loads(path.read_text()).items():
            for key, record in records.items():
                about = record[2] if len(record) > 2 else {}
                if record[0] == "pipeline" or about.get("partial") or not about.get("ns") or "point" not in about:
                    continue
                gain = about.get("default_ns", 0) / about["ns"]
                known = best.get((about["op"], about["kind"]))
                if gain >= args.gain and (known is None or gain > known[0]):
                    best[about["op"], about["kind"]] = (gain, units, key, record[:2] + [{k: about[k] for k in KEPT if k in about}])
    units = {}
    for _, number, key, record in best.values():
        units.setdefault(number, {})[key] = record
    parts = [f"{json.dumps(number)}: {{\n" + ",\n".join(f"  {json.dumps(key)}: {json.dumps(records[key])}" for key in sorted(records)) +
             "\n}" for number, records in sorted(units.items())]
    args.out.write_text("{\n" + ",\n".join(parts) + "\n}\n")
    print(f"{args.out}: {len(best)} records")


if __name__ == "__main__":
    main()
