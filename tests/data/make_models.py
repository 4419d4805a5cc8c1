#!/usr/bin/env python3
"""Write the tiny models of the tests: models/*.xml, *.bin (sound) and corrupt/*.xml, *.bin (each wrong in one way).

    make_models.py FOLDER

A corrupt file's name says what is wrong with it; part of the error that it must give follows in corrupt/expected.txt
(file, tab, text). corpus/ holds the same as seeds of the fuzzer: the xml, a byte 0, the weights.
"""
import pathlib
import struct
import sys


def port(number, precision, shape, names=""):
    dims = "".join(f"<dim>{d}</dim>" for d in shape)
    names = f' names="{names}"' if names else ""
    return f'<port id="{number}" precision="{precision}"{names}>{dims}</port>'


class Net:
    """Layers and edges as text, weights as bytes. Shapes are given by the caller: the reader is what checks them."""

    def __init__(self, name, version=11):
        self.name, self.version, self.layers, self.edges, self.weights, self.tail = name, version, [], [], b"", ""

    def layer(self, kind, name, data, inputs, output, opset=1, attributes=""):
        """inputs: (layer id, port, precision, shape); output: (precision, shape) or None. Returns what inputs need."""
        number = len(self.layers)
        text = f'\t\t<layer id="{number}" name="{name}" type="{kind}" version="opset{opset}"{attributes}>\n'
        if data:
            text += f"\t\t\t<data {data}/>\n"
        if inputs:
            text += "\t\t\t<input>" + "".join(port(i, p, s) for i, (_, _, p, s) in enumerate(inputs)) + "</input>\n"
        if output:
            text += "\t\t\t<output>" + port(len(inputs), *output) + "</output>\n"
        self.layers.append(text + "\t\t</layer>\n")
        for i, (source, source_port, _, _) in enumerate(inputs):
            self.edges.append(f'\t\t<edge from-layer="{source}" from-port="{source_port}" to-layer="{number}" to-port="{i}"/>\n')
        return (number, len(inputs), *output[:2]) if output else None

    def parameter(self, name, precision, kind, shape, stated=None):
        text = ",".join(map(str, stated or shape))
        return self.layer("Parameter", name, f'shape="{text}" element_type="{kind}"', [], (precision, stated or shape, name))

    def constant(self, name, precision, kind, shape, values):
        code = {"f32": "f", "f16": "e", "i64": "q", "i32": "i", "u8": "B"}[kind]
        raw = struct.pack(f"<{len(values)}{code}", *values)
        data = f'element_type="{kind}" shape="{", ".join(map(str, shape))}" offset="{len(self.weights)}" size="{len(raw)}"'
        self.weights += raw
        return self.layer("Const", name, data, [], (precision, shape))

    def result(self, source):
        self.layer("Result", f"result_{len(self.layers)}", "", [source], None)

    def xml(self):
        return (f'<?xml version="1.0"?>\n<net name="{self.name}" version="{self.version}">\n\t<layers>\n' + "".join(self.layers) +
                "\t</layers>\n\t<edges>\n" + "".join(self.edges) + "\t</edges>\n" + self.tail + "</net>\n")


def reshape_net(version=11, batch=2, stated_batch=None):
    """[N,6] -> ShapeOf, Gather-free chain by StridedSlice -> Reshape to [N,2,3] -> Transpose to [N,3,2]; plus a constant output."""
    b = stated_batch or batch
    net = Net("reshape", version)
    data = net.parameter("data", "FP32", "f32", [batch, 6], [b, 6])
    shape = net.layer("ShapeOf", "shape", 'output_type="i64"', [data], ("I64", [2]), 3)
    begin, end, step = (net.constant(n, "I64", "i64", [1], [v]) for n, v in (("begin", 0), ("end", 1), ("step", 1)))
    first = net.layer("StridedSlice", "batch", 'begin_mask="0" end_mask="0" new_axis_mask="" shrink_axis_mask="" ellipsis_mask=""',
                      [shape, begin, end, step], ("I64", [1]))
    rest = net.constant("rest", "I64", "i64", [2], [2, 3])
    target = net.layer("Concat", "target", 'axis="0"', [first, rest], ("I64", [3]))
    made = net.layer("Reshape", "reshaped", 'special_zero="false"', [data, target], ("FP32", [b, 2, 3]))
    order = net.constant("order", "I64", "i64", [3], [0, 2, 1])
    turned = net.layer("Transpose", "turned", "", [made, order], ("FP32", [b, 3, 2], "turned_tensor"))
    net.result(turned)
    half = net.constant("half", "FP16", "f16", [2], [0.5, -2.0])
    net.result(half)
    net.tail = ('\t<rt_info>\n\t\t<MO_version value="test"/>\n\t\t<model_info>\n\t\t\t<labels value="background face"/>\n'
                '\t\t\t<confidence_threshold value="0.5"/>\n\t\t</model_info>\n\t\t<info name="a key" value="a value"/>\n\t</rt_info>\n')
    return net


def quantized_net():
    """A quantised picture meets weights of u8 with a zero point, unpacked by layers as converters write them."""
    net, filters, image = Net("quantized"), [16, 8, 3, 3], [1, 8, 6, 6]
    number = lambda name, value: net.constant(name, "FP32", "f32", [1, 1, 1, 1], [value])
    data = net.parameter("data", "FP32", "f32", image)
    low, high = number("low", -1.0), number("high", 127 / 128)
    steps = net.layer("FakeQuantize", "steps", 'levels="256"', [data, low, high, low, high], ("FP32", image))
    packed = net.constant("packed", "U8", "u8", filters, [(i * 37 + i * i // 11) % 256 for i in range(16 * 72)])
    weights = net.layer("Convert", "unpacked", 'destination_type="f32"', [packed], ("FP32", filters))
    weights = net.layer("Subtract", "centred", "", [weights, number("zero", 90.0)], ("FP32", filters))
    weights = net.layer("Multiply", "scaled", "", [weights, number("step", 0.01)], ("FP32", filters))
    around = 'strides="1,1" dilations="1,1" pads_begin="1,1" pads_end="1,1" auto_pad="explicit"'
    net.result(net.layer("Convolution", "sums", around, [steps, weights], ("FP32", [1, 16, 6, 6])))
    return net


def sound():
    old = reshape_net(10)
    old.tail = '\t<meta_data>\n\t\t<MO_version value="2021.4"/>\n\t\t<cli_parameters>\n\t\t\t<data_type value="FP32"/>\n\t\t</cli_parameters>\n\t</meta_data>\n'
    integers = Net("integers")
    number = integers.parameter("number", "I32", "i32", [2, 3])
    integers.result(integers.layer("Reshape", "flat", 'special_zero="true"', [number, integers.constant("six", "I64", "i64", [1], [6])], ("I32", [6])))
    tunable = Net("tunable")  # two layers whose kernels have several points
    image = [1, 4, 2, 2]
    data = tunable.parameter("data", "FP32", "f32", image)
    soft = tunable.layer("SoftMax", "soft", 'axis="1"', [data], ("FP32", image))
    tunable.result(tunable.layer("ReduceMean", "mean", 'keep_dims="true"', [soft, tunable.constant("axes", "I64", "i64", [2], [2, 3])], ("FP32", [1, 4, 1, 1])))
    picture = Net("picture")  # an input of frames
    image = [1, 3, 12, 20]
    picture.result(picture.layer("ReLU", "kept", "", [picture.parameter("data", "FP32", "f32", image)], ("FP32", image)))
    return {"tunable": tunable, "picture": picture, "quantized": quantized_net(), "reshape": reshape_net(), "reshape_v10": old, "reshape_open_batch": reshape_net(batch=1, stated_batch=-1), "integers": integers}


# name: (what changes the text, what changes the weights, part of the message)
def replace(old, new, times=1):
    def change(text):
        assert old in text, old
        return text.replace(old, new, times)
    return change


def same(value):
    return value


CORRUPT = {
    "offset_behind_the_end": (replace('offset="0"', 'offset="4000"'), same, "leave"),
    "offset_negative": (replace('offset="0"', 'offset="-8"'), same, "leave"),
    "offset_overflows": (replace('offset="0"', 'offset="9223372036854775807"'), same, "leave"),
    "offset_is_no_number": (replace('offset="0"', 'offset="zero"'), same, "not an integer"),
    "size_too_large": (replace('size="8"', 'size="16"'), same, "size says 16"),
    "shape_too_large": (replace('element_type="i64" shape="1"', 'element_type="i64" shape="4294967296, 4294967296, 4294967296"'), same, "too large"),
    "shape_negative": (replace('element_type="i64" shape="1"', 'element_type="i64" shape="-1"'), same, "fixed shape"),
    "shape_is_no_list": (replace('element_type="i64" shape="1"', 'element_type="i64" shape="1;2"'), same, "not a list"),
    "attribute_unprintable": (replace('special_zero="false"', 'special_zero="\x10"'), same, 'special_zero="?" is not'),
    "type_unknown": (replace('element_type="i64"', 'element_type="q7"'), same, '"q7"'),
    "weights_cut_short": (same, lambda raw: raw[:-4], "cut short"),
    "weights_empty": (same, lambda raw: b"", "cut short"),
    "weights_missing": (same, None, "weights are needed"),
    "edge_to_nowhere": (replace('to-layer="1"', 'to-layer="99"'), same, "layer 99"),
    "edge_from_nowhere": (replace('from-layer="0"', 'from-layer="-5"'), same, "layer -5"),
    "edge_from_missing_port": (replace('from-port="0"', 'from-port="7"'), same, "output port 7"),
    "edge_to_missing_port": (replace('to-port="0"', 'to-port="7"'), same, "input port 7"),
    "edge_without_layer": (replace('to-layer="1"', ''), same, "no to-layer"),
    "edge_twice": (replace('\t</edges>', '\t\t<edge from-layer="0" from-port="0" to-layer="1" to-port="0"/>\n\t</edges>'), same, "two edges"),
    "edge_missing": (replace('\t\t<edge from-layer="0" from-port="0" to-layer="1" to-port="0"/>\n', ''), same, "no edge leads"),
    "cycle": (replace('from-layer="6" from-port="0" to-layer="7"', 'from-layer="8" from-port="2" to-layer="7"'), same, "its own output"),
    "two_layers_one_id": (replace('<layer id="2"', '<layer id="3"'), same, "same id"),
    "id_is_no_number": (replace('<layer id="2"', '<layer id="two"'), same, "not an integer"),
    "id_missing": (replace('<layer id="2"', '<layer'), same, "no id"),
    "two_ports_one_id": (replace('<port id="1" precision="I64"><dim>1</dim>', '<port id="0" precision="I64"><dim>1</dim>'), same, "the id 0"),
    "dimension_is_no_number": (replace('<dim>6</dim>', '<dim>six</dim>'), same, "not an integer"),
    "stated_shape_differs": (replace('<dim>3</dim><dim>2</dim></port></output>', '<dim>2</dim><dim>3</dim></port></output>'), same, "the file states"),
    "attribute_malformed": (replace('axis="0"', 'axis="zero"'), same, "axis"),
    "attribute_impossible": (replace('axis="0"', 'axis="5"'), same, '"target"'),
    "operation_unknown": (replace('type="Transpose"', 'type="Teleport"'), same, '1 layer is not supported: "turned" (Teleport, opset1)'),
    "opset_unknown": (replace('type="Transpose" version="opset1"', 'type="Transpose" version="extension"'), same, "(Transpose, extension"),
    "parameter_open": (replace('shape="2,6"', 'shape="2,?"'), same, "set all of its dimensions by reshape=0=D,D,..."),
    "parameter_of_any_rank": (replace('shape="2,6"', 'shape="..."'), same, "static shape"),
    "no_result": (lambda text: text.replace('type="Result"', 'type="Reshape"'), same, ""),
    "no_layers": (lambda text: '<net name="a" version="11"><layers/><edges/></net>', same, "no layers"),
    "version_7": (replace('version="11"', 'version="7"'), same, "IR version 7"),
    "version_missing": (replace(' version="11"', ''), same, "no version"),
    "xml_cut_short": (lambda text: text[:len(text) // 2], same, "not well-formed"),
    "xml_empty": (lambda text: "", same, "empty"),
    "html": (lambda text: "<!DOCTYPE html><html><body>404</body></html>", same, "<html>"),
    "text": (lambda text: "this is no model", same, "not XML"),
    "onnx": (lambda text: "\x08\x07\x12\x07pytorch\x00\x00:\x80\x01", same, "binary"),
}


def write(root, kind, name, xml, weights):
    (root / kind / f"{name}.xml").write_bytes(xml.encode("latin-1"))
    if weights is not None:
        (root / kind / f"{name}.bin").write_bytes(weights)
    (root / "corpus" / name).write_bytes(xml.encode("latin-1") + b"\0" + (weights or b""))


def main():
    root = pathlib.Path(sys.argv[1])
    for name in ("models", "corrupt", "corpus"):
        (root / name).mkdir(parents=True, exist_ok=True)
    for name, net in sound().items():
        write(root, "models", name, net.xml(), net.weights)
    net = reshape_net()
    expected = []
    for name, (change_text, change_weights, message) in CORRUPT.items():
        write(root, "corrupt", name, change_text(net.xml()), change_weights(net.weights) if change_weights else None)
        expected.append(f"{name}\t{message}\n")
    (root / "corrupt" / "expected.txt").write_text("".join(expected))
    (root / "done").write_text("")


if __name__ == "__main__":
    main()
