"""Models whose files leave sizes open."""
from cases import BLUE, case, constants_model, F, fed, IMAGENET, model_of, probe, processor, shorter_edge
import numpy as np
from onnx import TensorProto, helper, numpy_helper


def any_size():
    """The mean of the picture, of any size, as three classes."""
    nodes = [helper.make_node("GlobalAveragePool", ["picture"], ["mean"]), helper.make_node("Flatten", ["mean"], ["logits"])]
    return model_of(nodes, {"picture": (TensorProto.FLOAT, ["batch", 3, "height", "width"])}, {"logits": (TensorProto.FLOAT, ["batch", 3])})


@case
def an_open_size_that_a_file_states(folder):
    folder.write("model.onnx", any_size())
    folder.write("preprocessor_config.json", processor("ViTImageProcessor", size={"height": 32, "width": 48}, do_normalize=False)["preprocessor_config.json"])
    return {"model": "model.onnx", "fed": np.array([.5, .5, BLUE / 255], F), "tolerance": .01}


@case
def an_open_size_that_nothing_states(folder):
    nodes = [helper.make_node("Sigmoid", ["picture"], ["all"]), helper.make_node("ReduceMean", ["all"], ["map"], axes=[1], keepdims=1)]
    folder.write("text_det.onnx", model_of(nodes, {"picture": (TensorProto.FLOAT, ["n", 3, "h", "w"])}, {"map": (TensorProto.FLOAT, ["n", 1, "h", "w"])}))
    return {"model": "text_det.onnx", "said": "it gets the frame's", "elements": 608 * 416}


@case
def an_example_of_a_size(folder):
    """CenterFace's file states the 32x32 that its exporter was given."""
    nodes, constants = [helper.make_node("AveragePool", ["picture"], ["quarter"], kernel_shape=[4, 4], strides=[4, 4])], {}
    outputs = {"537": 1, "538": 2, "539": 2, "540": 10}
    for name, channels in outputs.items():
        constants["w" + name] = np.zeros((channels, 3, 1, 1), F)
        nodes.append(helper.make_node("Conv", ["quarter", "w" + name], [name]))
    folder.write("centerface.onnx", model_of(nodes, {"picture": (TensorProto.FLOAT, [1, 3, 32, 32])}, {name: (TensorProto.FLOAT, [1, channels, 8, 8]) for name, channels in outputs.items()}, constants))
    return {"model": "centerface.onnx", "said": "states an example of it", "elements": 608 * 416 // 16}


@case
def directions_of_lines(folder):
    """PP-OCR's classifier leaves its size open; all of its networks take 192x48, blue first."""
    constants = {"from": np.array([0]), "to": np.array([2]), "axes": np.array([1])}
    nodes = [helper.make_node("ReduceMean", ["x"], ["mean"], axes=[2, 3], keepdims=0), helper.make_node("Slice", ["mean", "from", "to", "axes"], ["two"]), helper.make_node("Softmax", ["two"], ["softmax_0.tmp_0"], axis=1)]
    folder.write("cls.onnx", model_of(nodes, {"x": (TensorProto.FLOAT, ["n", 3, "h", "w"])}, {"softmax_0.tmp_0": (TensorProto.FLOAT, ["n", 2])}, constants))
    return {"model": "cls.onnx", "label": "180"}


@case
def directions_of_lines_of_80_rows(folder):
    """PP-OCRv5's: red first, by ImageNet's mean and scale."""
    constants = {"from": np.array([1]), "to": np.array([3]), "axes": np.array([1])}
    nodes = [helper.make_node("ReduceMean", ["x"], ["mean"], axes=[2, 3], keepdims=0), helper.make_node("Slice", ["mean", "from", "to", "axes"], ["two"]), helper.make_node("Softmax", ["two"], ["fetch_name_0"], axis=1)]
    folder.write("cls.onnx", model_of(nodes, {"x": (TensorProto.FLOAT, ["n", 3, 80, 160])}, {"fetch_name_0": (TensorProto.FLOAT, ["n", 2])}, constants))
    return {"model": "cls.onnx", "label": "0", "said": "PP-OCRv5's classifier of directions"}


def classifier_of_imagenet(folder, want):
    """A thousand numbers, of which the first are what the network was fed."""
    made = probe((64, 64))
    made.graph.node[-1].output[0] = "few"
    made.graph.node.append(helper.make_node("Pad", ["few", "pads"], ["output"]))
    made.graph.initializer.append(numpy_helper.from_array(np.array([0, 0, 0, 985]), "pads"))
    made.graph.output[0].CopyFrom(helper.make_tensor_value_info("output", TensorProto.FLOAT, [1, 1000]))
    folder.write("model.onnx", made)
    return {"model": "model.onnx", "fed": np.concatenate([want, np.zeros(985, F)])}


@case
def a_thousand_classes(folder):
    """As torchvision's networks are exported, without a word about the picture: the shorter edge is 256, and 224 are cut out."""
    return classifier_of_imagenet(folder, fed((64, 64), shorter_edge(256, 224), *IMAGENET))


@case
def text_regions_of_another_project(folder):
    """A probability map that PyTorch wrote is not of PP-OCR, whose networks alone are blue first."""
    folder.write("dbnet.onnx", constants_model({"out1": np.full((1, 1, 64, 64), .1, F)}, [1, 3, 64, 64]))
    return {"model": "dbnet.onnx", "said": "RGB, mean 123.675,116.28,103.53, scale 58.395,57.12,57.375 is assumed, as is usual for text detection by DB"}
