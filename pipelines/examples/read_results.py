#!/usr/bin/env python3
"""Reads clinfer's results in Python: objects, attributes, key points and tensors of each frame.

    read_results.py VIDEO MODEL.xml [PROPERTY=VALUE ...]      VIDEO: a file, or "test" for a test picture

Needs python3-gst-1.0 (pipelines/install test). All results of a frame are in one structure on its buffer, the custom meta
"ClinferResult"; docs/metadata.md lists its fields. Positions are shares of the picture, from 0 to 1.
"""
import struct
import sys

import gi
gi.require_version("Gst", "1.0")
from gi.repository import Gst

FORMATS = {10: "f", 13: "d", 40: "B", 50: "b", 60: "H", 30: "h", 70: "i", 74: "I", 72: "q", 73: "Q", 41: "?"}  # by `precision`


def fields(structure):
    """A GstStructure as a dictionary."""
    names = [structure.nth_field_name(i) for i in range(structure.n_fields())]
    return {name: structure.get_value(name) for name in names}


def items(structure, name):
    """The structures in a list field; a missing field is an empty list."""
    value = structure.get_value(name) if structure.has_field(name) else None
    return [] if value is None else list(value)


def values(tensor):
    """A tensor's numbers (float16 needs numpy and is left out here)."""
    layout = FORMATS.get(tensor["precision"])
    if layout is None or "data_buffer" not in tensor:
        return []
    data = tensor["data_buffer"].get_data_as_bytes().get_data()
    return list(struct.unpack(f"{len(data) // struct.calcsize(layout)}{layout}", data))


def show(parameter, indent):
    """Prints one parameter of a region or frame."""
    found, name = fields(parameter), parameter.get_name()
    kind = found.get("type")
    if name == "detection":
        print(f"{indent}box {found['x_min']:.3f} {found['y_min']:.3f} {found['x_max']:.3f} {found['y_max']:.3f}, "
              f"{found.get('label', found.get('label_id'))} {found['confidence']:.2f}")
    elif kind in ("classification_result", "text"):
        print(f"{indent}{name}: {found['label']} {found['confidence']:.2f} ({found['model_name']})")
    elif kind == "keypoints":
        names = list(found.get("point_names", []))
        for i, (x, y, confidence) in enumerate(zip(found["x"], found["y"], found["confidence"])):
            print(f"{indent}{names[i] if i < len(names) else i}: {x:.3f} {y:.3f} {confidence:.2f}")
    elif "dims" in found:
        numbers = values(found)
        print(f"{indent}{kind or 'tensor'} {found.get('tensor_name', name)} {list(found['dims'])}: "
              f"{' '.join(f'{v:.4g}' for v in numbers[:4])}{' ...' if len(numbers) > 4 else ''}")


def on_frame(pad, info):
    meta = info.get_buffer().get_custom_meta("ClinferResult")
    if meta is None:
        return Gst.PadProbeReturn.OK
    result = meta.get_structure()
    for inference in items(result, "inferences"):
        print(f"frame: {inference.get_string('model_name')} {inference.get_string('inference')}")
        for parameter in items(inference, "parameters"):
            show(parameter, "  ")
    for region in items(result, "regions"):
        print(f"  object {region.get_value('region_id')} of {region.get_value('parent_id')}: {region.get_string('roi_type')}")
        for parameter in items(region, "parameters"):
            show(parameter, "    ")
    return Gst.PadProbeReturn.OK


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    Gst.init(None)
    video, model, properties = sys.argv[1], sys.argv[2], " ".join(sys.argv[3:])
    source = ("videotestsrc pattern=ball num-buffers=3 ! video/x-raw,width=320,height=240" if video == "test"
              else f'filesrc location="{video}" ! decodebin ! videoconvert')
    pipeline = Gst.parse_launch(f'{source} ! clinfer model="{model}" {properties} ! fakesink name=sink')
    pipeline.get_by_name("sink").get_static_pad("sink").add_probe(Gst.PadProbeType.BUFFER, on_frame)
    pipeline.set_state(Gst.State.PLAYING)
    message = pipeline.get_bus().timed_pop_filtered(Gst.CLOCK_TIME_NONE, Gst.MessageType.EOS | Gst.MessageType.ERROR)
    pipeline.set_state(Gst.State.NULL)
    if message.type == Gst.MessageType.ERROR:
        sys.exit(message.parse_error()[0].message)


if __name__ == "__main__":
    main()
