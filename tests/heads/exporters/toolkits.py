"""Models with the files of OpenMMLab, Paddle, NVIDIA, Ultralytics and recorders."""
from cases import boxed, case, fed, feeds, HALF, IMAGENET, processor, shorter_edge, whole


def pipeline(*transforms):
    return {"pipeline.json": {"pipeline": {"input": ["img"], "output": ["out"], "tasks": [{"type": "Task", "module": "Transform", "transforms": [{"type": "LoadImageFromFile"}, *transforms]}]}}}


@case
def mmdeploy_by_the_edge(folder):
    return feeds(folder, (64, 64), fed((64, 64), shorter_edge(80, 64), (103.53, 116.28, 123.675), (57.375, 57.12, 58.395), blue_first=True, unit=1),
                 pipeline({"type": "Resize", "keep_ratio": True, "size": [-1, 80]}, {"type": "CenterCrop", "crop_size": [64, 64]}, {"type": "Normalize", "to_rgb": False, "mean": [103.53, 116.28, 123.675], "std": [57.375, 57.12, 58.395]}))


@case
def mmdeploy_pads(folder):
    return feeds(folder, (96, 96), fed((96, 96), boxed((96, 96), False), unit=1 / 255, pad=114),
                 pipeline({"type": "Resize", "keep_ratio": True, "size": [96, 96]}, {"type": "Pad", "size": [96, 96], "pad_val": {"img": [114, 114, 114]}}, {"type": "Normalize", "to_rgb": True, "mean": [0, 0, 0], "std": [255, 255, 255]}))


@case
def paddlex_classifies(folder):
    steps = "PreProcess:\n  transform_ops:\n  - ResizeImage:\n      resize_short: 80\n  - CropImage:\n      size: 64\n  - NormalizeImage:\n      mean: [0.485, 0.456, 0.406]\n      std: [0.229, 0.224, 0.225]\n      scale: 1.0/255.0\n      order: ''\n  - ToCHWImage: null\n"
    names = "PostProcess:\n  Topk:\n    topk: 5\n    label_list:\n" + "".join(f"    - kind {i}\n" for i in range(15))
    return feeds(folder, (64, 64), fed((64, 64), shorter_edge(80, 64), *IMAGENET), {"inference.yml": "Global:\n  model_name: PP-LCNet_x1_0\n" + steps + names}, "inference.onnx", label="kind")


@case
def paddlex_detects(folder):
    steps = "mode: paddle\narch: YOLO\ndraw_threshold: 0.5\nPreprocess:\n- interp: 2\n  keep_ratio: false\n  target_size: [64, 64]\n  type: Resize\n- mean: [0.0, 0.0, 0.0]\n  norm_type: none\n  std: [1.0, 1.0, 1.0]\n  type: NormalizeImage\n- type: Permute\nlabel_list:\n- person\n"
    return feeds(folder, (64, 64), fed((64, 64), whole()), {"inference.yml": steps}, "inference.onnx")


@case
def deepstream(folder):
    config = "# made by TAO\n[property]\ngpu-id=0\nnet-scale-factor=0.01735207357279195\noffsets=123.675;116.28;103.53\nmodel-color-format=1\nonnx-file=model.onnx\nlabelfile-path=/home/somebody/labels.txt\nnetwork-type=1\nmaintain-aspect-ratio=1\nsymmetric-padding=1\n"
    return feeds(folder, (96, 96), fed((96, 96), boxed((96, 96), True), (123.675, 116.28, 103.53), (1 / .01735207357279195,) * 3, blue_first=True, unit=1, pad=0),
                 {"nvinfer_config.txt": config, "labels.txt": ";".join(f"sort {i}" for i in range(15)) + "\n"}, label="sort")


@case
def deepstream_of_another_model(folder):
    config = "[property]\nnet-scale-factor=0.5\nmodel-color-format=1\nonnx-file=other.onnx\n"
    return feeds(folder, (64, 64), fed((64, 64), whole(), *HALF), {"config_infer_other.txt": config, **processor("ViTImageProcessor", size={"height": 64, "width": 64}, do_normalize=True, image_mean=HALF[0], image_std=HALF[1])})


@case
def ultralytics_classifies(folder):
    return feeds(folder, (64, 64), fed((64, 64), shorter_edge(64, 64)), {"metadata.yaml": "description: Ultralytics YOLO11n-cls model\ntask: classify\nimgsz:\n- 64\n- 64\nnames:\n" + "".join(f"  {i}: thing {i}\n" for i in range(15))}, label="thing")


@case
def a_recorder_that_saves_half_of_the_columns(folder):
    """Pixels twice as wide as high: the picture is 1200x400, of which each column counts twice."""
    config = "[property]\nnet-scale-factor=0.00392156862745098\nmodel-color-format=0\nmaintain-aspect-ratio=1\n"
    return feeds(folder, (96, 96), fed((96, 96), (0, 0, 600, 1200), pad=0), {"nvinfer_config.txt": config}, before="capssetter caps=video/x-raw,pixel-aspect-ratio=2/1")
