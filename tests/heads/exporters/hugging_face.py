"""Models with the files of Hugging Face's transformers, timm and OpenCLIP."""
from cases import boxed, case, fed, feeds, FRAME, HALF, IMAGENET, middle, NORMALISED, probe, processor, shorter_edge, whole


@case
def vit_stretches(folder):
    return feeds(folder, (64, 64), fed((64, 64), whole(), *HALF), processor("ViTImageProcessor", size={"height": 64, "width": 64}, do_normalize=True, image_mean=HALF[0], image_std=HALF[1]))


@case
def beit_stretches_then_cuts(folder):
    part = middle(FRAME[0] * 64 / 80, FRAME[1] * 64 / 80)
    return feeds(folder, (64, 64), fed((64, 64), part, *IMAGENET), processor("BeitImageProcessor", size={"height": 80, "width": 80}, do_center_crop=True, crop_size={"height": 64, "width": 64}, **NORMALISED))


@case
def clip_of_old_with_numbers(folder):
    return feeds(folder, (64, 64), fed((64, 64), shorter_edge(64, 64), *IMAGENET),
                 {"preprocessor_config.json": {"feature_extractor_type": "CLIPFeatureExtractor", "size": 64, "crop_size": 64, "do_resize": True, "do_center_crop": True, **NORMALISED}})


@case
def convnext_of_384_stretches(folder):
    return feeds(folder, (384, 384), fed((384, 384), whole(), *IMAGENET), processor("ConvNextImageProcessor", size={"shortest_edge": 384}, crop_pct=.95, **NORMALISED))


@case
def convnext_of_old_with_a_number(folder):
    return feeds(folder, (96, 96), fed((96, 96), shorter_edge(int(96 / .8), 96), *IMAGENET),
                 {"preprocessor_config.json": {"feature_extractor_type": "ConvNextFeatureExtractor", "size": 96, "crop_pct": .8, "do_resize": True, **NORMALISED}})


@case
def levit_grows_the_edge(folder):
    return feeds(folder, (224, 224), fed((224, 224), shorter_edge(256, 224), *IMAGENET),
                 processor("LevitImageProcessor", size={"shortest_edge": 224}, do_center_crop=True, crop_size={"height": 224, "width": 224}, **NORMALISED))


@case
def efficientnet_divides_twice(folder):
    twice = tuple(s * s for s in IMAGENET[1])
    return feeds(folder, (64, 64), fed((64, 64), whole(), IMAGENET[0], twice),
                 processor("EfficientNetImageProcessor", size={"height": 64, "width": 64}, do_center_crop=False, include_top=True, rescale_offset=False, **NORMALISED))


@case
def offset_and_normalised(folder):
    return feeds(folder, (64, 64), fed((64, 64), whole(), *HALF, unit=1 / 127.5, offset=-1),
                 {"preprocessor_config.json": {"image_processor_type": "VivitImageProcessor", "size": {"height": 64, "width": 64}, "do_center_crop": False, "rescale_factor": 1 / 127.5, "rescale_offset": True,
                                               "do_normalize": True, "image_mean": HALF[0], "image_std": HALF[1]}})


@case
def mobilevit_is_blue_first_by_default(folder):
    return feeds(folder, (64, 64), fed((64, 64), shorter_edge(72, 64), blue_first=True),
                 processor("MobileViTFeatureExtractor", size={"shortest_edge": 72}, do_center_crop=True, crop_size={"height": 64, "width": 64}))


@case
def a_processor_inside_another(folder):
    inner = processor("SiglipImageProcessor", size={"height": 64, "width": 64}, do_normalize=True, image_mean=HALF[0], image_std=HALF[1])
    return feeds(folder, (64, 64), fed((64, 64), whole(), *HALF), {"processor_config.json": {"processor_class": "SiglipProcessor", "image_processor": inner["preprocessor_config.json"]}})


@case
def transformers_js(folder):
    folder.write("onnx/model_quantized.onnx", probe((64, 64)))
    return feeds(folder, (64, 64), fed((64, 64), shorter_edge(80, 64), *IMAGENET),
                 {"config.json": {"model_type": "resnet", "architectures": ["ResNetForImageClassification"], "id2label": {str(i): f"class {i}" for i in range(15)}},
                  **processor("ConvNextImageProcessor", size={"shortest_edge": 64}, crop_pct=.8, **NORMALISED)}, "onnx/model.onnx", load="", label="class")


def timm(folder, size, want, config, **more):
    return feeds(folder, size, want, {"config.json": {"architecture": "resnet18", "num_classes": 15, **config}}, **more)


@case
def timm_squashes(folder):
    part = middle(FRAME[0] * 64 / 71, FRAME[1] * 64 / 71)
    return timm(folder, (64, 64), fed((64, 64), part, *HALF), {"pretrained_cfg": {"input_size": [3, 64, 64], "crop_pct": .9, "crop_mode": "squash", "mean": HALF[0], "std": HALF[1]}})


@case
def timm_with_a_border(folder):
    return timm(folder, (96, 96), fed((96, 96), boxed((96, 96), True), *HALF, pad=128), {"pretrained_cfg": {"input_size": [3, 96, 96], "crop_pct": 1.0, "crop_mode": "border", "mean": HALF[0], "std": HALF[1]}})


@case
def timm_at_the_size_of_tests(folder):
    return timm(folder, (96, 96), fed((96, 96), shorter_edge(96, 96), *IMAGENET),
                {"pretrained_cfg": {"input_size": [3, 64, 64], "crop_pct": .8, "test_input_size": [3, 96, 96], "test_crop_pct": 1.0, "mean": IMAGENET[0], "std": IMAGENET[1]}})


@case
def timm_of_old_without_a_group(folder):
    names = [f"flower {i}" for i in range(15)]
    return timm(folder, (64, 64), fed((64, 64), shorter_edge(73, 64), *IMAGENET), {"input_size": [3, 64, 64], "crop_pct": .875, "mean": IMAGENET[0], "std": IMAGENET[1], "label_names": names}, label="flower")


@case
def open_clip_cuts(folder):
    numbers = ((.48145466, .4578275, .40821073), (.26862954, .26130258, .27577711))
    return feeds(folder, (64, 64), fed((64, 64), shorter_edge(64, 64), *numbers), {"preprocess_cfg.json": {"size": 64, "mode": "RGB", "mean": numbers[0], "std": numbers[1], "resize_mode": "shortest"}})


@case
def open_clip_pads(folder):
    return feeds(folder, (96, 72), fed((96, 72), boxed((96, 72), True), *HALF, pad=77),
                 {"open_clip_config.json": {"model_cfg": {}, "preprocess_cfg": {"size": [72, 96], "mean": HALF[0], "std": HALF[1], "resize_mode": "longest", "fill_color": 77}}})


@case
def open_clip_in_a_folder_of_its_own(folder):
    return feeds(folder, (64, 64), fed((64, 64), whole(), *HALF), {"visual/preprocess_cfg.json": {"size": [64, 64], "mean": HALF[0], "std": HALF[1], "resize_mode": "squash"}, "config.json": {"embed_dim": 15}},
                 "visual/model.onnx")
