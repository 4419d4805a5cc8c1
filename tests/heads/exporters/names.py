"""Models with names of classes and points, as files beside them or inside."""
from cases import case, constants_model, F, fed, feeds, whole
import numpy as np
from onnx import helper, numpy_helper


@case
def names_of_a_training_beside_those_of_coco(folder):
    """FastestDet of two classes; the example's coco.names still lies there."""
    cells = np.full((1, 7, 4, 4), .01, F)
    cells[0, :, 1, 2] = .9, 0, 0, 0, 0, .1, .9                       # objectness, offsets, sides, classes
    folder.write("model.onnx", constants_model({"734": cells}, [1, 3, 64, 64]))
    folder.write("class.names", "helmet\nbare head\n")
    folder.write("coco.names", "\n".join(f"thing {i}" for i in range(80)) + "\n")
    return {"model": "model.onnx", "label": "bare head"}


@case
def a_dictionary_above_the_folder_rec(folder):
    scores = np.full((1, 6, 12), .01, F)
    for step, best in enumerate([1, 1, 0, 2, 11, 3]):
        scores[0, step, best] = .89
    folder.write("rec/rec.onnx", constants_model({"fetch_name_0": scores}, [1, 3, 48, 320]))
    folder.write("ppocrv5_dict.txt", "\n".join("abcdefghij") + "\n")
    return {"model": "rec/rec.onnx", "label": "ab c", "said": "ppocrv5_dict.txt is taken"}


@case
def frigate(folder):
    config = "mqtt:\n  enabled: false\nmodel:\n  path: /config/model_cache/model.onnx\n  labelmap_path: /labelmap/fifteen.txt\n  width: 64\n  height: 64\n  input_tensor: nchw\n  input_dtype: float\n  model_type: yolo-generic\n"
    return feeds(folder, (64, 64), fed((64, 64), whole()), {"config.yml": config, "fifteen.txt": "".join(f"{i}  thing {i}\n" for i in range(15))})


@case
def a_dictionary_among_others(folder):
    scores = np.full((1, 6, 12), .01, F)
    for step, best in enumerate([1, 1, 0, 2, 11, 3]):                # the blank first, a space last
        scores[0, step, best] = .89
    folder.write("rec.onnx", constants_model({"softmax_2.tmp_0": scores}, [1, 3, 48, 320]))
    folder.write("en_dict.txt", "\n".join("abcdefghij") + "\n")
    folder.write("japan_dict.txt", "\n".join("abcdefghijklmnop") + "\n")
    folder.write("notes.txt", "\n".join("0123456789") + "\n")
    return {"model": "rec.onnx", "label": "ab c", "said": "en_dict.txt is taken"}


@case
def a_dictionary_whose_space_was_lost(folder):
    """PP-OCR's en_dict.txt ends in a line that is a space, which some packages have lost: 13 classes of 10 characters."""
    scores = np.full((1, 6, 13), .01, F)
    for step, best in enumerate([1, 1, 0, 2, 11, 3]):
        scores[0, step, best] = .88
    folder.write("rec.onnx", constants_model({"softmax_2.tmp_0": scores}, [1, 3, 48, 320]))
    folder.write("en_dict.txt", "\n".join("abcdefghij"))
    return {"model": "rec.onnx", "label": "ab c", "said": "en_dict.txt is taken"}


def lines_of_ten_classes(folder, outputs, dictionary):
    """As many classes as PaddleDetection's turned boxes have columns."""
    scores = np.full((1, 40, 10), .01, F)
    for step, best in enumerate([1, 0, 2, 9, 3]):
        scores[0, step, best] = .91
    scores[0, 5:, 0] = .91
    folder.write("model.onnx", constants_model({outputs: scores}, [1, 3, 48, 320]))
    folder.write("dict.txt", dictionary)
    return {"model": "model.onnx", "label": "ab c", "properties": f"labels-file={folder.path}/dict.txt"}


@case
def a_dictionary_of_eight_characters(folder):
    return lines_of_ten_classes(folder, "softmax_2.tmp_0", "\r\n".join("abcdefgh") + "\r\n")


@case
def a_dictionary_of_eight_characters_by_paddlex(folder):
    return lines_of_ten_classes(folder, "fetch_name_0", "\n".join("abcdefgh") + "\n")


@case
def names_of_tensorflow_lite(folder):
    """Its detectors count classes from 0, and its label maps have a line before the first."""
    boxes, classes, scores = np.zeros((1, 10, 4), F), np.zeros((1, 10), F), np.zeros((1, 10), F)
    boxes[0, 0], classes[0, 0], scores[0, 0] = (.2, .1, .8, .6), 1, .9
    outputs = {f"TFLite_Detection_PostProcess{end}": value for end, value in (("", boxes), (":1", classes), (":2", scores), (":3", F([1])))}
    folder.write("model.onnx", constants_model(outputs, [1, 3, 64, 64]))
    folder.write("labelmap.txt", "???\ncat\nred fox\ndog\n")
    return {"model": "model.onnx", "label": "red fox", "properties": f"labels-file={folder.path}/labelmap.txt"}


def points(folder, name, values):
    folder.write("model.onnx", constants_model({name: values}, [1, 3, 112, 112]))
    return {"model": "model.onnx", "points": np.asarray(values).reshape(68, -1)[:, :2], "properties": "resize-mode=stretch"}


@case
def points_as_a_table(folder):
    return points(folder, "landmarks", np.random.default_rng(3).uniform(.1, .9, (1, 68, 2)))


@case
def points_of_three_dimensions(folder):
    return points(folder, "landmarks", np.random.default_rng(4).uniform(.1, .9, (1, 204)))


@case
def points_of_pfld(folder):
    """Those of 98 and 106 points are trained on pictures as OpenCV reads them."""
    values = np.random.default_rng(5).uniform(.1, .9, (1, 212))
    folder.write("pfld-106-lite.onnx", constants_model({"output": values}, [1, 3, 112, 112]))
    return {"model": "pfld-106-lite.onnx", "points": values.reshape(106, 2), "said": "BGR, mean 0, scale 255 is assumed, as PFLD of 98 and 106 points takes them"}


@case
def points_of_bodypix(folder):
    """Beside the offsets of a point from its own cell, there are those of every cell of a person; a side of 64 is four strides of 16."""
    heat, short, long = np.full((1, 4, 4, 17), -9, F), np.zeros((1, 4, 4, 34), F), np.full((1, 4, 4, 34), 25, F)
    wanted = []
    for k in range(17):
        y, x = k % 4, k // 5
        heat[0, y, x, k], short[0, y, x, k], short[0, y, x, 17 + k] = 3, k / 4, 2
        wanted.append(((x * 16 + 2) / 64, (y * 16 + k / 4) / 64))
    made = constants_model({"displacement_bwd": np.zeros((1, 4, 4, 32), F), "heatmaps": heat, "long_offsets": long, "short_offsets": short}, [1, 64, 64, 3])
    folder.write("model.onnx", made)
    return {"model": "model.onnx", "points": np.array(wanted), "properties": "resize-mode=stretch"}


@case
def points_in_maps_of_yolov8(folder):
    """YOLOv8-face before its last step, as its authors export it for OpenCV: 64 bins, a score, and x, y, visibility of five points a cell."""
    maps = {name: np.full((1, 80, side, side), -9, F) for name, side in (("output0", 8), ("884", 4), ("892", 2))}
    middle_of = np.array([2.5, 1.5])                                # of the cell, in strides of 16
    maps["884"][0, [1, 17, 33, 49], 1, 2] = 9                       # one stride to each side
    maps["884"][0, 64, 1, 2] = 2
    wanted = []
    for k in range(5):
        maps["884"][0, 65 + 3 * k:68 + 3 * k, 1, 2] = .1 * k, .25, 3
        wanted.append((2 * np.array([.1 * k, .25]) + middle_of - .5) * 16 / 64)
    folder.write("face.onnx", constants_model(maps, [1, 3, 64, 64], {"task": "pose", "kpt_shape": "[5, 3]", "names": "{0: 'face'}", "stride": "32", "imgsz": "[64, 64]"}))
    return {"model": "face.onnx", "label": "face", "points": np.array(wanted), "properties": "resize-mode=stretch"}


@case
def boxes_and_scores_in_one_scale(folder):
    """ONNX Runtime's quantize_static gives YOLOv8's output one scale, that of its boxes: scores are 0 or one step of 1.39."""
    rows = np.zeros((1, 7, 2100), F)
    rows[0, :4, 40], rows[0, 6, 40] = (100, 80, 90, 60), .8
    made = constants_model({"output0": rows}, [1, 3, 320, 320], {"task": "detect", "names": "{0: 'cat', 1: 'dog', 2: 'fox'}", "stride": "32", "imgsz": "[320, 320]"})
    made.graph.node[-1].output[0] = "floats"
    made.graph.initializer.extend([numpy_helper.from_array(F(1.390794), "step"), numpy_helper.from_array(np.int8(-125), "zero_of_steps")])
    made.graph.node.extend([helper.make_node("QuantizeLinear", ["floats", "step", "zero_of_steps"], ["bytes"]),
                            helper.make_node("DequantizeLinear", ["bytes", "step", "zero_of_steps"], ["output0"])])
    folder.write("best_int8.onnx", made)
    return {"model": "best_int8.onnx", "label": "fox", "said": "quantised in steps of 1.39"}


@case
def names_that_are_called_characters(folder):
    folder.write("model.onnx", constants_model({"fetch_name_0": [[.1, .7, .1, .1]]}, [1, 3, 224, 224], {"character": "0\n90\n180\n270"}))
    return {"model": "model.onnx", "label": "90"}


def named(folder, file, text, names, wanted, properties=""):
    scores = np.full((1, names), .01, F)
    scores[0, wanted[0]] = .9
    folder.write("model.onnx", constants_model({"prob": scores}, [1, 3, 32, 32]))
    folder.write(file, text)
    return {"model": "model.onnx", "label": wanted[1], "properties": properties}


@case
def names_in_data_yaml(folder):
    return named(folder, "data.yaml", "train: ../train/images\nval: ../valid/images\n\nnc: 3\nnames: ['cat', 'red fox', 'no']\ndownload: |\n  a script\n    of lines\n", 3, (1, "red fox"))


@case
def names_in_obj_names(folder):
    return named(folder, "obj.names", "cat\nred fox\ndog\n\n", 3, (1, "red fox"))


@case
def names_in_labels_json(folder):
    return named(folder, "labels.json", '{"0": "cat", "1": "red fox", "2": "dog"}', 3, (1, "red fox"))


def names_inside(folder, text):
    """Names in the ONNX file itself, of which the second class is a fox."""
    folder.write("model.onnx", constants_model({"prob": [[.05, .9, .05]]}, [1, 3, 32, 32], {"names": text}))
    return {"model": "model.onnx", "label": "fox"}


@case
def names_inside_as_json(folder):
    return names_inside(folder, '{"0": "cat", "1": "fox", "2": "dog"}')


@case
def names_inside_in_another_order(folder):
    return names_inside(folder, "{2: 'dog', 0: 'cat', 1: 'fox'}")


@case
def names_inside_with_their_numbers_after(folder):
    return names_inside(folder, '{"dog": 2, "fox": 1, "cat": 0}')


@case
def names_inside_as_a_list_with_commas(folder):
    return names_inside(folder, "cat, fox, dog")


@case
def names_by_label2id(folder):
    return named(folder, "config.json", '{"model_type": "vit", "label2id": {"cat": 0, "dog": 2, "red fox": 1}}', 3, (1, "red fox"))


@case
def names_in_a_table(folder):
    return named(folder, "labels.txt", "id,name\n0,cat\n1,red fox\n2,dog\n", 3, (1, "red fox"))


@case
def names_with_their_numbers(folder):
    return named(folder, "labelmap.txt", "0  cat\n1  red fox\n2  2 dogs\n", 3, (2, "2 dogs"))


@case
def names_that_are_numbers(folder):
    return named(folder, "labels.txt", "0\n1\n2\n", 3, (2, "2"))


@case
def names_as_python_prints_them(folder):
    return named(folder, "classes.txt", "{0: 'cat',\n 1: \"fox's\",\n 2: 'dog'}\n", 3, (1, "fox's"))
