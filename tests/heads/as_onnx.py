#!/usr/bin/env python3
"""Writes the models of families.py as ONNX: as_onnx.py DIR.      Needs openvino, onnx and numpy.

Every output of theirs is what it is for any picture. DIR/NAME/NAME.xml becomes NAME.onnx with the same inputs, outputs, names and
model_info, and goes.
"""
import sys
from pathlib import Path

import numpy as np
import onnx
import openvino as ov
from onnx import TensorProto, helper, numpy_helper


def leaves(info, path=()):
    """The values of rt_info with their paths."""
    for key, value in info.items():
        value = getattr(value, "value", value)
        if isinstance(value, dict):
            yield from leaves(value, path + (key,))
        else:
            yield path + (key,), str(value)


def convert(xml):
    model = ov.Core().read_model(xml)
    inputs, nodes, weights, zero = [], [], [], None
    for port in model.inputs:
        name, dtype = port.get_any_name(), helper.np_dtype_to_tensor_dtype(port.get_element_type().to_dtype())
        inputs.append(helper.make_tensor_value_info(name, dtype, list(port.get_shape())))
        if zero is None:
            nodes.append(helper.make_node("Cast", [name], ["floats"], to=TensorProto.FLOAT))
            nodes.append(helper.make_node("ReduceMean", ["floats"], ["mean"], keepdims=0))
            weights.append(numpy_helper.from_array(np.array(0, np.float32), "nothing"))
            nodes.append(helper.make_node("Mul", ["mean", "nothing"], ["zero"]))
            zero = "zero"
    values = [np.zeros(port.get_shape(), port.get_element_type().to_dtype()) for port in model.inputs]
    results = ov.compile_model(model, "CPU")(values)
    outputs = []
    for k, port in enumerate(model.outputs):
        array = np.ascontiguousarray(results[k])
        name = port.get_any_name() if port.get_names() else port.get_node().input(0).get_node().get_friendly_name()
        dtype = helper.np_dtype_to_tensor_dtype(array.dtype)
        weights.append(numpy_helper.from_array(array, f"values_{k}"))
        nodes.append(helper.make_node("Cast", ["zero"], [f"zero_{k}"], to=dtype))
        nodes.append(helper.make_node("Add", [f"values_{k}", f"zero_{k}"], [name]))
        outputs.append(helper.make_tensor_value_info(name, dtype, list(array.shape)))
    graph = helper.make_graph(nodes, xml.stem, inputs, outputs, weights)
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    for path, value in leaves(model.get_rt_info()):
        if path[0] == "model_info":
            made.metadata_props.add(key=" ".join(path), value=value)
    onnx.save(made, xml.with_suffix(".onnx"))
    del model, results
    xml.unlink()
    xml.with_suffix(".bin").unlink()


if __name__ == "__main__":
    for model_xml in sorted(Path(sys.argv[1]).glob("*/*.xml")):
        convert(model_xml)
