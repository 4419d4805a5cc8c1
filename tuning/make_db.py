#!/usr/bin/env python3
"""Makes a file of tuning/db/ of tuning files: make_db.py db/NAME.json TUNING.json...

Keeps the records of searches that were not stopped; of several for one operation on one kind of device, that of the last file. Where
nothing was faster than the untuned kernel, the record says so without a point: index -1, the family's own choice. The files may come
from any machine: pipelines/bench/records.py there. A new NAME.json goes into shipped_files of tuning/meson.build, too.
"""
import argparse
import json
import pathlib

KEPT = ("op", "point", "family_version", "device", "driver", "kind", "ns", "default_ns")
OWN_CHOICE = ("op", "family_version", "device", "driver", "kind")


def shipped(record):
    """The record as it ships, or None where it says too little."""
    about = record[2] if len(record) > 2 else {}
    if record[0] == "pipeline" or about.get("partial") or "op" not in about:
        return None
    if "point" in about and about.get("ns", 0) != about.get("default_ns", 0):
        return record[:2] + [{key: about[key] for key in KEPT if key in about}]
    return [record[0], -1, {key: about[key] for key in OWN_CHOICE if key in about}]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("tuning", nargs="+", type=pathlib.Path)
    args = parser.parse_args()
    found = {}
    for path in args.tuning:
        for units, records in json.loads(path.read_text()).items():
            for key, record in records.items():
                kept = shipped(record)
                if kept is not None:
                    found[kept[2]["op"], kept[2]["kind"]] = (units, key, kept)
    units = {}
    for number, key, record in found.values():
        units.setdefault(number, {})[key] = record
    parts = [f"{json.dumps(number)}: {{\n" + ",\n".join(f"  {json.dumps(key)}: {json.dumps(records[key])}" for key in sorted(records)) +
             "\n}" for number, records in sorted(units.items())]
    args.out.write_text("{\n" + ",\n".join(parts) + "\n}\n")
    chosen = sum(record[1] >= 0 for _, _, record in found.values())
    print(f"{args.out}: {len(found)} records, {chosen} of them another kernel than the untuned one")


if __name__ == "__main__":
    main()
