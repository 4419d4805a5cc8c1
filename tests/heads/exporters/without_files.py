"""Families that their own networks tell, without a file beside."""
from cases import case, constants_model, F, fed, feeds, model_of, probe, whole
import numpy as np
from onnx import TensorProto, helper, numpy_helper


@case
def open_model_zoo_by_another_converter(folder):
    return feeds(folder, (64, 64), fed((64, 64), whole(), blue_first=True, unit=1), {}, model="vehicle_sort_barrier_0099/saved_model/model_float32.onnx", said="as Open Model Zoo takes them")


def scaled_first(folder, operations, want):
    """A probe whose graph scales its picture itself, by operations and their numbers."""
    made = probe((64, 64))
    at = "picture"
    for k, (operation, number) in enumerate(operations):
        made.graph.initializer.append(numpy_helper.from_array(F(number), f"number{k}"))
        made.graph.node.insert(k, helper.make_node(operation, [at, f"number{k}"], [f"scaled{k}"]))
        at = f"scaled{k}"
    for node in made.graph.node[len(operations):]:
        node.input[:] = [at if name == "picture" else name for name in node.input]
    folder.write("model.onnx", made)
    return {"model": "model.onnx", "fed": want, "properties": "resize-mode=stretch color-format=rgb"}


@case
def a_graph_that_divides_by_255(folder):
    """TCMonoDepth's begin so, and take bytes."""
    return scaled_first(folder, [("Div", 255)], fed((64, 64), whole()))


@case
def a_graph_that_moves_bytes_around_zero(folder):
    """As Keras' Rescaling(1 / 127.5, -1) and MXNet's ArcFace."""
    return scaled_first(folder, [("Sub", 127.5), ("Mul", 1 / 127.5)], fed((64, 64), whole(), (.5,) * 3, (.5,) * 3))


@case
def a_graph_that_moves_shares_around_zero(folder):
    return scaled_first(folder, [("Mul", 2), ("Sub", 1)], fed((64, 64), whole(), (.5,) * 3, (.5,) * 3))


@case
def lprnet_without_its_dictionary(folder):
    scores = np.zeros((68, 18), F)
    scores[[11, 41, 41, 67, 31, *[67] * 13], np.arange(18)] = 9     # 浙 A A blank 0
    folder.write("plates.onnx", constants_model({"126": scores}, [1, 3, 24, 94]))
    return {"model": "plates.onnx", "label": "浙A0", "said": "China's plates"}


@case
def digits_without_a_softmax(folder):
    folder.write("mnist.onnx", constants_model({"Plus214_Output_0": [[0, 1, 0, 9, 0, 0, 0, 0, 0, 0]]}, [1, 1, 28, 28]))
    return {"model": "mnist.onnx", "label_id": 3, "said": "read as class scores"}


@case
def digits_without_channels(folder):
    """Keras' first network for digits takes [N,28,28]."""
    folder.write("model.onnx", constants_model({"softmax": [[0, 0, 0, 0, 0, 0, .9, .1, 0, 0]]}, [1, 28, 28]))
    return {"model": "model.onnx", "elements": 10, "properties": "post-process=classification", "label_id": 6}


@case
def a_picture_whose_axes_are_all_open(folder):
    """The convolution says how many channels there are."""
    nodes = [helper.make_node("Conv", ["picture", "ones"], ["sum"]), helper.make_node("ReduceMax", ["sum"], ["logits"], axes=[2, 3], keepdims=0)]
    folder.write("model.onnx", model_of(nodes, {"picture": (TensorProto.FLOAT, [None] * 4)}, {"logits": (TensorProto.FLOAT, None)}, {"ones": np.ones((1, 3, 1, 1), F)}))
    return {"model": "model.onnx", "elements": 1, "properties": "reshape=64x48 mean=0 scale=1 color-format=rgb resize-mode=stretch"}


@case
def grids_of_one_size_in_an_open_file(folder):
    """YOLOv5 exports in half precision so: axes are open, but what the grids are added to has to be of 640x640."""
    nodes = [helper.make_node("MaxPool", ["picture"], ["cells"], kernel_shape=[32, 32], strides=[32, 32]), helper.make_node("Add", ["cells", "grid"], ["placed"]),
             helper.make_node("ReduceMax", ["placed"], ["logits"], axes=[2, 3], keepdims=0)]
    folder.write("model.onnx", model_of(nodes, {"picture": (TensorProto.FLOAT, [1, 3, "height", "width"])}, {"logits": (TensorProto.FLOAT, None)}, {"grid": np.zeros((1, 1, 20, 20), F)}))
    return {"model": "model.onnx", "elements": 3}


@case
def mltu_with_its_characters(folder):
    steps = np.zeros((1, 16, 5), F)
    steps[0, range(16), [0, 4, 2, 2, 4, 2, *[4] * 10]] = 1                  # a blank é é blank é, the blank last
    nodes = [helper.make_node("ReduceMean", ["picture"], ["mean"], keepdims=0), helper.make_node("Mul", ["mean", "zero"], ["nothing"]),
             helper.make_node("Add", ["steps", "nothing"], ["output"])]
    folder.write("model.onnx", model_of(nodes, {"picture": (TensorProto.FLOAT, [1, 32, 128, 3])}, {"output": (TensorProto.FLOAT, [1, 16, 5])}, {"zero": F(0), "steps": steps}))
    folder.write("configs.yaml", "batch_size: 16\nheight: 32\nmax_text_length: 21\nvocab: a#é;\nwidth: 128\n")
    return {"model": "model.onnx", "label": "aéé"}


@case
def classes_that_are_enlarged(folder):
    """Three masks, as segmentation_models.pytorch writes them: enlarged, then a sigmoid each. A quarter is of none."""
    masks = np.full((1, 3, 16, 16), -9, F)
    masks[0, 0, :8, :8] = masks[0, 1, :8, 8:] = masks[0, 2, 8:, :8] = 9
    nodes = [helper.make_node("ReduceMean", ["picture"], ["mean"], keepdims=0), helper.make_node("Mul", ["mean", "zero"], ["nothing"]),
             helper.make_node("Add", ["masks", "nothing"], ["small"]), helper.make_node("Resize", ["small", "", "scales"], ["large"], mode="linear"),
             helper.make_node("Sigmoid", ["large"], ["1273"])]
    folder.write("model.onnx", model_of(nodes, {"picture": (TensorProto.FLOAT, [1, 3, 64, 64])}, {"1273": (TensorProto.FLOAT, [1, 3, 64, 64])},
                                        {"zero": F(0), "masks": masks, "scales": np.array([1, 1, 4, 4], F)}))
    return {"model": "model.onnx", "shares": [.25] * 4}
