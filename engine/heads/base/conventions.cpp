// Defines the table of conventions.
#include "engine/heads/base/conventions.h"

namespace clinfer {
namespace {

using Numbers = std::array<float, 3>;

constexpr ColorOrder kRgb = ColorOrder::rgb, kBgr = ColorOrder::bgr;
constexpr std::optional<ResizeMode> kStretch = ResizeMode::stretch,
                                    kLetterbox = ResizeMode::letterbox, kCrop = ResizeMode::crop,
                                    kAnySize = std::nullopt;
constexpr bool kCentered = true, kTopLeft = false, kTask = true;
constexpr Overlaps kByElement = Overlaps::element, kByNetwork = Overlaps::network,
                   kNobody = Overlaps::nobody;
constexpr Background kNoBackground = Background::none, kFirst = Background::first,
                     kLast = Background::last;

constexpr Numbers all(float value) { return {value, value, value}; }
constexpr Numbers kNone = all(0), kOne = all(1), kBytes = all(255), kHalf = all(127.5f);
constexpr Numbers kImageNetMean = {123.675f, 116.28f, 103.53f};
constexpr Numbers kImageNetScale = {58.395f, 57.12f, 57.375f};
constexpr Numbers turned(Numbers n) { return {n[2], n[1], n[0]}; }

// The value of padding that follows mean and scale, where its 0 is a pixel of the mean.
constexpr float kMeanGray = 116;

constexpr Convention kConventions[] = {
    {Family::yolo, "YOLO", kRgb, kNone, kBytes, kLetterbox, 114, kCentered, kByElement,
     kNoBackground, "ultralytics/ultralytics@0005af52af: ultralytics/data/augment.py (LetterBox)"},
    {Family::yolov6, "YOLOv6", kRgb, kNone, kBytes, kLetterbox, 114, kCentered, kByElement,
     kNoBackground,
     "meituan/YOLOv6@e86a483f3f: yolov6/core/inferer.py, yolov6/data/data_augment.py"},
    {Family::yolo_nas, "YOLO-NAS", kRgb, kNone, kBytes, kLetterbox, 114, kCentered, kByNetwork,
     kNoBackground,
     "Deci-AI/super-gradients@e0ccacf886: src/super_gradients/training/pretrained_models.py, "
     "processing/processing.py"},
    {Family::yolo_nas_pose, "YOLO-NAS-POSE", kBgr, kNone, kBytes, kLetterbox, 127, kTopLeft,
     kByNetwork, kNoBackground,
     "Deci-AI/super-gradients@e0ccacf886: src/super_gradients/training/processing/processing.py"},
    {Family::yolo_apart, "YOLO with boxes and scores apart", kRgb, kNone, kBytes, kLetterbox, 114,
     kCentered, kByElement, kNoBackground,
     "ultralytics/ultralytics@0005af52af: ultralytics/data/augment.py (LetterBox)"},
    {Family::yolov7_rows, "YOLOv7 with its suppression", kRgb, kNone, kBytes, kLetterbox, 114,
     kCentered, kByNetwork, kNoBackground,
     "WongKinYiu/yolov7@a207844b1c: utils/datasets.py (letterbox), tools/YOLOv7onnx.ipynb"},
    {Family::end_to_end, "end-to-end YOLO", kRgb, kNone, kBytes, kLetterbox, 114, kCentered,
     kByNetwork, kNoBackground,
     "THU-MIG/yolov10@453c6e38a5: ultralytics/data/augment.py (LetterBox)"},
    {Family::yolov5, "YOLOv5 and v7", kRgb, kNone, kBytes, kLetterbox, 114, kCentered, kByElement,
     kNoBackground, "ultralytics/yolov5@5081342f04: utils/augmentations.py (letterbox)"},
    {Family::darknet, "YOLO", kRgb, kNone, kBytes, kLetterbox, 127, kCentered, kByElement,
     kNoBackground, "pjreddie/darknet@f6afaabcdf: src/image.c (letterbox_image)"},
    {Family::yolov2, "YOLOv2", kRgb, kNone, kBytes, kLetterbox, 127, kCentered, kByElement,
     kNoBackground, "pjreddie/darknet@f6afaabcdf: src/image.c (letterbox_image)"},
    {Family::keras_yolo, "Keras' YOLO", kRgb, kNone, kBytes, kLetterbox, 128, kCentered, kByNetwork,
     kNoBackground, "qqwweee/keras-yolo3@e6598d13c7: yolo3/utils.py (letterbox_image)"},
    {Family::yolox, "YOLOX", kBgr, kNone, kOne, kLetterbox, 114, kTopLeft, kByElement,
     kNoBackground, "Megvii-BaseDetection/YOLOX@6ddff48243: yolox/data/data_augment.py (preproc)"},
    {Family::yolox_logits, "bubbliiiing's YOLOX", kRgb, kImageNetMean, kImageNetScale, kLetterbox,
     128, kCentered, kByElement, kNoBackground,
     "bubbliiiing/yolox-pytorch@bbd4ef975b: utils/utils.py (resize_image, preprocess_input)"},
    {Family::nanodet, "NanoDet", kBgr, turned(kImageNetMean), turned(kImageNetScale), kLetterbox, 0,
     kCentered, kByElement, kNoBackground,
     "RangiLyu/nanodet@be9b4a9001: config/legacy_v0.x_configs/nanodet-m.yml (keep_ratio, "
     "normalize)"},
    {Family::nanodet_plus, "NanoDet-Plus", kBgr, turned(kImageNetMean), turned(kImageNetScale),
     kStretch, 0, kCentered, kByElement, kNoBackground,
     "RangiLyu/nanodet@be9b4a9001: config/nanodet-plus-m_416.yml (keep_ratio, normalize)"},
    {Family::pp_yoloe, "PP-YOLOE", kRgb, kNone, kBytes, kStretch, 0, kCentered, kByElement,
     kNoBackground,
     "PaddlePaddle/PaddleDetection@666f597fd0: configs/ppyoloe/_base_/ppyoloe_plus_reader.yml"},
    {Family::paddle_detection, "PaddleDetection", kRgb, kImageNetMean, kImageNetScale, kStretch, 0,
     kCentered, kByNetwork, kNoBackground,
     "PaddlePaddle/PaddleDetection@666f597fd0: deploy/python/preprocess.py"},
    {Family::picodet, "PicoDet", kRgb, kImageNetMean, kImageNetScale, kStretch, 0, kCentered,
     kByElement, kNoBackground,
     "PaddlePaddle/PaddleDetection@666f597fd0: configs/picodet/_base_/picodet_416_reader.yml"},
    {Family::detr, "DETR", kRgb, kImageNetMean, kImageNetScale, kAnySize, 0, kCentered, kNobody,
     kLast, "facebookresearch/detr@29901c51d7: datasets/coco.py (make_coco_transforms)"},
    {Family::deformable_detr, "Deformable DETR and its kin", kRgb, kImageNetMean, kImageNetScale,
     kAnySize, 0, kCentered, kNobody, kNoBackground,
     "fundamentalvision/Deformable-DETR@11169a60c3: datasets/coco.py"},
    {Family::rtdetr, "RT-DETR, D-FINE and DEIM", kRgb, kNone, kBytes, kStretch, 0, kCentered,
     kNobody, kNoBackground,
     "lyuwenyu/RT-DETR@068dfde65f: rtdetrv2_pytorch/references/deploy/rtdetrv2_onnxruntime.py"},
    {Family::rfdetr, "RF-DETR", kRgb, kImageNetMean, kImageNetScale, kStretch, 0, kCentered,
     kNobody, kNoBackground, "roboflow/rf-detr@35ac6ab646: rfdetr/detr.py (predict)"},
    {Family::torchvision, "torchvision's detectors", kRgb, kNone, kBytes, kAnySize, 0, kCentered,
     kByNetwork, kNoBackground,
     "pytorch/vision@0446e68eac: torchvision/transforms/_presets.py (ObjectDetection)"},
    {Family::torchvision_fcos, "torchvision's FCOS", kRgb, kNone, kBytes, kAnySize, 0, kCentered,
     kByElement, kNoBackground,
     "pytorch/vision@0446e68eac: torchvision/transforms/_presets.py (ObjectDetection)"},
    {Family::torchvision_retinanet, "torchvision's RetinaNet", kRgb, kNone, kBytes, kAnySize, 0,
     kCentered, kByElement, kNoBackground,
     "pytorch/vision@0446e68eac: torchvision/transforms/_presets.py (ObjectDetection)"},
    {Family::fcos,
     "FCOS",
     kBgr,
     {102.9801f, 115.9465f, 122.7717f},
     kOne,
     kAnySize,
     0,
     kCentered,
     kByElement,
     kNoBackground,
     "tianzhi0549/FCOS@a773f12812: fcos_core/config/defaults.py"},
    {Family::centernet,
     "CenterNet",
     kBgr,
     {104.04f, 113.985f, 119.85f},
     {73.695f, 69.87f, 70.89f},
     kLetterbox,
     0,
     kCentered,
     kNobody,
     kNoBackground,
     "xingyizhou/CenterNet@4c50fd3a46: src/lib/detectors/base_detector.py (pre_process, fix_res)"},
    {Family::retinanet, "RetinaNet", kRgb, kImageNetMean, kImageNetScale, kAnySize, 0, kCentered,
     kByElement, kNoBackground, "NVIDIA/retinanet-examples@65e63109bf: odtk/data.py"},
    {Family::keras_retinanet,
     "Keras' RetinaNet",
     kBgr,
     {103.939f, 116.779f, 123.68f},
     kOne,
     kAnySize,
     0,
     kCentered,
     kByElement,
     kNoBackground,
     "fizyr/keras-retinanet@7ac91dfbba: keras_retinanet/utils/image.py (preprocess_image, caffe)"},
    {Family::efficientdet, "EfficientDet", kRgb, kImageNetMean, kImageNetScale, kLetterbox,
     kMeanGray, kTopLeft, kByElement, kNoBackground,
     "google/automl@6a54c8741e: efficientdet/dataloader.py (InputProcessor)"},
    {Family::tensorflow, "TensorFlow's object detection", kRgb, kNone, kOne, kStretch, 0, kCentered,
     kByNetwork, kNoBackground,
     "tensorflow/models@d318246cb2: "
     "research/object_detection/samples/configs/ssd_mobilenet_v1_coco.config "
     "(fixed_shape_resizer)"},
    {Family::tensorflow_lite, "TensorFlow Lite's detectors", kRgb, kHalf, kHalf, kStretch, 0,
     kCentered, kByNetwork, kNoBackground,
     "tensorflow/models@0cc5919e14: "
     "research/object_detection/g3doc/running_on_mobile_tf2.md"},
    {Family::tensorflow_ssd, "TensorFlow's SSD", kRgb, kHalf, kHalf, kStretch, 0, kCentered,
     kByElement, kFirst,
     "tensorflow/models@f775ce7638: "
     "research/object_detection/models/ssd_mobilenet_v1_feature_extractor.py "
     "(preprocess)"},
    {Family::ssd300, "SSD300", kRgb, kImageNetMean, kImageNetScale, kStretch, 0, kCentered,
     kByElement, kFirst,
     "NVIDIA/DeepLearningExamples@04099020ae: PyTorch/Detection/SSD/ssd/utils.py (SSDTransformer)"},
    {Family::st_ssd, "STMicroelectronics' SSD", kRgb, kHalf, kHalf, kStretch, 0, kCentered,
     kByElement, kFirst,
     "STMicroelectronics/stm32ai-modelzoo-services@46924c0a8b: "
     "object_detection/src/config_file_examples/evaluation_config.yaml"},
    {Family::detectnet, "TAO's DetectNet_v2", kRgb, kNone, kBytes, kStretch, 0, kCentered,
     kByElement, kNoBackground,
     "NVIDIA-AI-IOT/deepstream_tao_apps@5b678439a8: configs/nvinfer (net-scale-factor, "
     "model-color-format)"},
    {Family::suppressed, "detectors with their suppression inside", kRgb, kNone, kBytes, kAnySize,
     0, kCentered, kByNetwork, kNoBackground, "none: the most usual order and range", kTask},
    {Family::deepstream_yolo, "YOLO as DeepStream-Yolo writes it", kRgb, kNone, kBytes, kLetterbox,
     114, kCentered, kByElement, kNoBackground,
     "marcoslucianops/DeepStream-Yolo@2ccf52987c: config_infer_primary_yoloV8.txt"},
    {Family::aizoo, "AIZOO's detector of face masks", kRgb, kNone, kBytes, kStretch, 0, kCentered,
     kByElement, kNoBackground, "AIZOOTech/FaceMaskDetection@256dc65f72: tensorflow_infer.py"},
    {Family::fastestdet, "FastestDet", kBgr, kNone, kBytes, kStretch, 0, kCentered, kByElement,
     kNoBackground, "dog-qiuqiu/FastestDet@50473cd155: test.py"},
    {Family::yolo_fastest_v2, "YOLO-FastestV2", kBgr, kNone, kBytes, kStretch, 0, kCentered,
     kByElement, kNoBackground, "dog-qiuqiu/Yolo-FastestV2@ac2a5e3060: test.py"},
    {Family::dbface,
     "DBFace",
     kBgr,
     {104.04f, 113.985f, 119.85f},
     {73.695f, 69.87f, 70.89f},
     kLetterbox,
     0,
     kTopLeft,
     kByElement,
     kNoBackground,
     "dlunion/DBFace@b5fc28f818: main.py (detect), common.py (pad)"},
    {Family::head_angles, "head pose", kBgr, kNone, kOne, kStretch, 0, kCentered, kNobody,
     kNoBackground,
     "openvinotoolkit/open_model_zoo@7ef5b91f75: "
     "models/intel/head-pose-estimation-adas-0001/README.md"},
    {Family::head_pose, "Hopenet and 6DRepNet", kRgb, kImageNetMean, kImageNetScale, kCrop, 0,
     kCentered, kNobody, kNoBackground,
     "natanielruiz/deep-head-pose@f7bbb9981c: code/test_on_video_dlib.py; "
     "thohemp/6DRepNet@464b2ba55c: "
     "sixdrepnet/demo.py"},
    {Family::fsa_net, "FSA-Net", kBgr, kHalf, all(128), kStretch, 0, kCentered, kNobody,
     kNoBackground, "omasaht/headpose-fsanet-pytorch@002549c981: src/demo.py"},
    {Family::anomalib, "anomalib, whose networks normalise pictures themselves", kRgb, kNone,
     kBytes, kStretch, 0, kCentered, kNobody, kNoBackground,
     "open-edge-platform/anomalib@b723368617: src/anomalib/pre_processing"},
    {Family::lanes, "Ultra-Fast-Lane-Detection", kRgb, kImageNetMean, kImageNetScale, kStretch, 0,
     kCentered, kNobody, kNoBackground, "cfzd/Ultra-Fast-Lane-Detection@353df10775: demo.py"},
    {Family::lane_curves,
     "LSTR",
     kBgr,
     {104.01f, 114.03f, 119.92f},
     {73.6f, 69.89f, 70.92f},
     kStretch,
     0,
     kCentered,
     kNobody,
     kNoBackground,
     "liuruijin17/LSTR@c8fe59a1d8: test/tusimple.py, db/tusimple.py"},
    {Family::scrfd, "SCRFD", kRgb, kHalf, all(128), kLetterbox, 0, kTopLeft, kByElement,
     kNoBackground, "deepinsight/insightface@7fadd420c2: detection/scrfd/tools/scrfd.py (detect)"},
    {Family::retinaface,
     "RetinaFace",
     kBgr,
     {104, 117, 123},
     kOne,
     kAnySize,
     0,
     kCentered,
     kByElement,
     kFirst,
     "biubug6/Pytorch_Retinaface@b984b4b775: detect.py"},
    {Family::insightface_retinaface, "InsightFace's RetinaFace", kRgb, kNone, kOne, kAnySize, 0,
     kCentered, kByElement, kFirst,
     "deepinsight/insightface@7fadd420c2: detection/retinaface/retinaface.py (detect)"},
    {Family::ultraface, "UltraFace", kRgb, all(127), all(128), kStretch, 0, kCentered, kByElement,
     kFirst,
     "Linzaer/Ultra-Light-Fast-Generic-Face-Detector-1MB@dffdddda97: "
     "run_video_face_detect_onnx.py"},
    {Family::yunet, "YuNet", kBgr, kNone, kOne, kLetterbox, 0, kTopLeft, kByElement, kNoBackground,
     "opencv/opencv@2ab8250a7e: modules/objdetect/src/face_detect.cpp (padWithDivisor)"},
    {Family::yunet_rows, "YuNet of 2021", kBgr, kNone, kOne, kAnySize, 0, kCentered, kByElement,
     kFirst, "opencv/opencv_zoo@966be4cb6e: models/face_detection_yunet/yunet.py"},
    {Family::centerface, "CenterFace", kRgb, kNone, kOne, kStretch, 0, kCentered, kByElement,
     kNoBackground, "Star-Clouds/CenterFace@b82ec0c484: prj-python/centerface.py"},
    {Family::mtcnn, "MTCNN", kRgb, kHalf, all(128), kStretch, 0, kCentered, kNobody, kFirst,
     "davidsandberg/facenet@096ed770f1: src/align/detect_face.py"},
    {Family::mtcnn_proposals, "MTCNN's P-Net", kRgb, kHalf, all(128), kLetterbox, 0, kTopLeft,
     kByElement, kFirst,
     "davidsandberg/facenet@096ed770f1: src/align/detect_face.py (scales keep proportions)"},
    {Family::blazeface, "MediaPipe's detectors", kRgb, kHalf, kHalf, kLetterbox, 0, kCentered,
     kByElement, kNoBackground,
     "google-ai-edge/mediapipe@85c0cdc7d7: mediapipe/modules/face_detection/face_detection.pbtxt"},
    {Family::palms, "MediaPipe's detector of palms", kRgb, kNone, kBytes, kLetterbox, 0, kCentered,
     kByElement, kNoBackground,
     "google-ai-edge/mediapipe@85c0cdc7d7: "
     "mediapipe/modules/palm_detection/palm_detection_cpu.pbtxt"},
    {Family::facemesh, "FaceMesh", kRgb, kNone, kBytes, kStretch, 0, kCentered, kNobody,
     kNoBackground,
     "google-ai-edge/mediapipe@85c0cdc7d7: "
     "mediapipe/modules/face_landmark/face_landmark_side_model_cpu.pbtxt (graphs of 2020 gave the "
     "same file pixels from -1 to 1)"},
    {Family::pfld, "PFLD of 68 points", kRgb, kNone, kBytes, kStretch, 0, kCentered, kNobody,
     kNoBackground, "cunjian/pytorch_face_landmark@6f34bf9f03: test_camera_pfld_onnx.py"},
    {Family::pfld_bgr, "PFLD of 98 and 106 points", kBgr, kNone, kBytes, kStretch, 0, kCentered,
     kNobody, kNoBackground,
     "polarisZhao/PFLD-pytorch@b00750c37d: camera.py; xlite-dev/lite.ai.toolkit@bfbf6a54bd: "
     "lite/ort/cv/pfld.cpp"},
    {Family::face_tracker, "OpenSeeFace", kRgb, kImageNetMean, kImageNetScale, kStretch, 0,
     kCentered, kNobody, kNoBackground,
     "emilianavt/OpenSeeFace@dee5bb7606: tracker.py (preprocess)"},
    {Family::facemesh_irises, "FaceMesh with irises", kRgb, kNone, kBytes, kStretch, 0, kCentered,
     kNobody, kNoBackground,
     "google-ai-edge/mediapipe@85c0cdc7d7: "
     "mediapipe/modules/face_landmark/tensors_to_face_landmarks_with_attention.pbtxt"},
    {Family::irises, "MediaPipe's irises", kRgb, kNone, kBytes, kLetterbox, 0, kCentered, kNobody,
     kNoBackground,
     "google-ai-edge/mediapipe@85c0cdc7d7: "
     "mediapipe/modules/iris_landmark/iris_landmark_cpu.pbtxt"},
    {Family::hands, "MediaPipe's hand landmarks", kRgb, kNone, kBytes, kLetterbox, 0, kCentered,
     kNobody, kNoBackground,
     "google-ai-edge/mediapipe@85c0cdc7d7: "
     "mediapipe/modules/hand_landmark/hand_landmark_cpu.pbtxt"},
    {Family::blazepose, "BlazePose", kRgb, kNone, kBytes, kLetterbox, 0, kCentered, kNobody,
     kNoBackground,
     "google-ai-edge/mediapipe@85c0cdc7d7: "
     "mediapipe/modules/pose_landmark/pose_landmark_by_roi_cpu.pbtxt"},
    {Family::upper_body, "BlazePose of the upper body", kRgb, kNone, kBytes, kLetterbox, 0,
     kCentered, kNobody, kNoBackground,
     "google-ai-edge/mediapipe@85c0cdc7d7: "
     "mediapipe/modules/pose_landmark/pose_landmark_by_roi_cpu.pbtxt"},
    {Family::movenet, "MoveNet", kRgb, kNone, kOne, kLetterbox, 0, kCentered, kNobody,
     kNoBackground, "tensorflow/hub@164388e355: examples/colab/movenet.ipynb (resize_with_pad)"},
    {Family::posenet, "PoseNet", kRgb, kHalf, kHalf, kLetterbox, 0, kCentered, kNobody,
     kNoBackground,
     "tensorflow/tfjs-models@18a73420e5: posenet/src/util.ts (padAndResizeTo), "
     "posenet/src/mobilenet.ts"},
    {Family::heat_maps, "HRNet, ViTPose and SimpleBaseline", kRgb, kImageNetMean, kImageNetScale,
     kLetterbox, 0, kCentered, kNobody, kNoBackground,
     "leoxiaobin/deep-high-resolution-net.pytorch@6f69e4676a: lib/dataset/JointsDataset.py"},
    {Family::rtmpose, "RTMPose", kRgb, kImageNetMean, kImageNetScale, kLetterbox, 0, kCentered,
     kNobody, kNoBackground,
     "open-mmlab/mmpose@759b39c13f: projects/rtmpose/examples/onnxruntime/main.py"},
    {Family::openpose, "OpenPose", kBgr, kNone, kOne, kAnySize, 0, kCentered, kNobody,
     kNoBackground,
     "openvinotoolkit/open_model_zoo@7ef5b91f75: "
     "models/intel/human-pose-estimation-0001/README.md"},
    {Family::depth, "depth estimation", kRgb, kImageNetMean, kImageNetScale, kAnySize, 0, kCentered,
     kNobody, kNoBackground,
     "isl-org/MiDaS@454597711a: midas/model_loader.py; DepthAnything/Depth-Anything-V2@a561b849eb: "
     "depth_anything_v2/dpt.py",
     kTask},
    {Family::saliency, "saliency detection", kRgb, kImageNetMean, kImageNetScale, kStretch, 0,
     kCentered, kNobody, kNoBackground,
     "xuebinqin/U-2-Net@ac7e1c817e: data_loader.py (RescaleT, ToTensorLab)", kTask},
    {Family::selfie, "MediaPipe's selfie segmentation", kRgb, kNone, kBytes, kStretch, 0, kCentered,
     kNobody, kNoBackground,
     "google-ai-edge/mediapipe@85c0cdc7d7: "
     "mediapipe/modules/selfie_segmentation/selfie_segmentation_cpu.pbtxt"},
    {Family::segmentation, "semantic segmentation", kRgb, kImageNetMean, kImageNetScale, kAnySize,
     0, kCentered, kNobody, kNoBackground,
     "pytorch/vision@0446e68eac: torchvision/transforms/_presets.py (SemanticSegmentation)", kTask},
    {Family::twinlitenet, "TwinLiteNet", kRgb, kNone, kBytes, kStretch, 0, kCentered, kNobody,
     kNoBackground, "chequanghuy/TwinLiteNet@524141821c: test_image.py (Run)"},
    {Family::tensorflow_segmentation, "TensorFlow's semantic segmentation", kRgb, kHalf, kHalf,
     kAnySize, 0, kCentered, kNobody, kNoBackground,
     "tensorflow/models@08eebbce39: research/deeplab/core/feature_extractor.py", kTask},
    {Family::sinet,
     "SINet",
     kBgr,
     {102.890434f, 111.25247f, 126.91212f},
     {16047.9f, 16019.45f, 16920.7f},
     kStretch,
     0,
     kCentered,
     kNobody,
     kNoBackground,
     "anilsathyan7/Portrait-Segmentation@dbf69b043c: SINet/sinet_video.py "
     "(clovaai/ext_portrait_segmentation@9bc1bada1c "
     "trains with means of 107.3, 115.7, 132.4)"},
    {Family::open_model_zoo, "Open Model Zoo", kBgr, kNone, kOne, kStretch, 0, kCentered, kNobody,
     kNoBackground, "openvinotoolkit/open_model_zoo@7ef5b91f75: models/intel (README.md of each)"},
    {Family::text_detection, "PP-OCR's text detection", kBgr, kImageNetMean, kImageNetScale,
     kLetterbox, 0, kTopLeft, kNobody, kNoBackground,
     "PaddlePaddle/PaddleOCR@026f96b657: tools/infer/predict_det.py (DetResizeForTest)"},
    {Family::text_regions, "text detection by DB", kRgb, kImageNetMean, kImageNetScale, kAnySize, 0,
     kCentered, kNobody, kNoBackground,
     "DayBreak-u/chineseocr_lite@54a3df53af: dbnet/dbnet_infer.py", kTask},
    {Family::text_recognition, "PP-OCR's text recognition", kBgr, kHalf, kHalf, kLetterbox, 127.5f,
     kTopLeft, kNobody, kNoBackground,
     "PaddlePaddle/PaddleOCR@0002349df3: tools/infer/predict_rec.py (resize_norm_img)"},
    {Family::gray_lines, "recognition of gray lines of text", kRgb, kHalf, kHalf, kStretch, 0,
     kCentered, kNobody, kNoBackground,
     "meijieru/crnn.pytorch@3cc7904c5b: dataset.py (resizeNormalize); JaidedAI/EasyOCR@c4f3cd7225: "
     "easyocr/recognition.py (NormalizePAD)",
     kTask},
    {Family::plates, "license plate recognition", kBgr, kNone, kOne, kStretch, 0, kCentered,
     kNobody, kNoBackground,
     "openvinotoolkit/open_model_zoo@7ef5b91f75: "
     "models/intel/license-plate-recognition-barrier-0001/README.md"},
    {Family::lprnet, "LPRNet", kBgr, kHalf, all(128), kStretch, 0, kCentered, kNobody,
     kNoBackground, "sirius-ai/LPRNet_Pytorch@7c976664b3: data/load_data.py"},
    {Family::crnn_plates, "crnn_plate_recognition", kBgr, all(149.94f), all(49.215f), kStretch, 0,
     kCentered, kNobody, kNoBackground,
     "we0091234/crnn_plate_recognition@eb79fe92f5: demo.py (image_processing)"},
    {Family::text_direction, "PP-OCR's classifier of directions", kBgr, kHalf, kHalf, kStretch, 0,
     kCentered, kNobody, kNoBackground,
     "PaddlePaddle/PaddleOCR@0005f4d171: tools/infer/predict_cls.py (resize_norm_img; "
     "lines shorter than four times their height are padded there)"},
    {Family::text_line_direction, "PP-OCRv5's classifier of directions", kRgb, kImageNetMean,
     kImageNetScale, kStretch, 0, kCentered, kNobody, kNoBackground,
     "PaddlePaddle/PaddleClas@31a145bfc5: "
     "ppcls/configs/PULC/textline_orientation/PPLCNet_x1_0.yaml"},
    {Family::text_line_side, "chineseocr_lite's classifier of directions", kRgb, kHalf, kHalf,
     kLetterbox, 255, kTopLeft, kNobody, kNoBackground,
     "DayBreak-u/chineseocr_lite@54a3df53af: angnet/angle.py"},
    {Family::paddle_clas, "PaddleClas", kRgb, kImageNetMean, kImageNetScale, kCrop, 0, kCentered,
     kNobody, kNoBackground,
     "PaddlePaddle/PaddleClas@d178931fca: deploy/configs/inference_cls.yaml (resize_short, size)",
     false, 224.0f / 256},
    {Family::imagenet, "classification of ImageNet", kRgb, kImageNetMean, kImageNetScale, kCrop, 0,
     kCentered, kNobody, kNoBackground,
     "pytorch/vision@0446e68eac: torchvision/transforms/_presets.py (ImageClassification)", kTask,
     224.0f / 256},
    {Family::tensorflow_imagenet, "TensorFlow's classification of ImageNet", kRgb, kHalf, kHalf,
     kCrop, 0, kCentered, kNobody, kNoBackground,
     "tensorflow/models@001a5edd1e: research/slim/preprocessing/inception_preprocessing.py "
     "(preprocess_for_eval)",
     kTask, 0.875f},
    {Family::keras_classes, "Keras' classification", kRgb, kNone, kBytes, kStretch, 0, kCentered,
     kNobody, kNoBackground, "keras-team/keras-io@02cfe8063b: examples/vision/mnist_convnet.py",
     kTask},
    {Family::torchvision_classes, "torchvision's classifiers of classes of their own", kRgb,
     kImageNetMean, kImageNetScale, kAnySize, 0, kCentered, kNobody, kNoBackground,
     "pytorch/tutorials@c53e7d4efc: beginner_source/transfer_learning_tutorial.py (Normalize)",
     kTask},
    {Family::small_pictures, "PyTorch's classification of CIFAR", kRgb, kHalf, kHalf, kStretch, 0,
     kCentered, kNobody, kNoBackground,
     "pytorch/tutorials@c53e7d4efc: beginner_source/blitz/cifar10_tutorial.py", kTask},
    {Family::age, "SSR-Net", kBgr, kImageNetMean, kImageNetScale, kStretch, 0, kCentered, kNobody,
     kNoBackground, "oukohou/SSR_Net_Pytorch@164b4f19ed: inference_images.py"},
    {Family::antispoof, "Face-AntiSpoofing", kRgb, kNone, kBytes, kLetterbox, 0, kCentered, kNobody,
     kNoBackground,
     "hairymax/Face-AntiSpoofing@eed4e278d8: video_predict.py, src/FaceAntiSpoofing.py"},
    {Family::minifasnet, "Silent-Face-Anti-Spoofing", kBgr, kNone, kOne, kStretch, 0, kCentered,
     kNobody, kNoBackground,
     "minivision-ai/Silent-Face-Anti-Spoofing@b6d5f04ad7: src/data_io/functional.py (to_tensor)"},
    {Family::person_reid, "re-identification of persons", kRgb, kImageNetMean, kImageNetScale,
     kStretch, 0, kCentered, kNobody, kNoBackground,
     "KaiyangZhou/deep-person-reid@08bb2cc5eb: torchreid/data/transforms.py (build_transforms)",
     kTask},
    {Family::face_recognition, "face recognition", kRgb, kHalf, kHalf, kStretch, 0, kCentered,
     kNobody, kNoBackground,
     "deepinsight/insightface@2400a75dd0: python-package/insightface/model_zoo/arcface_onnx.py",
     kTask},
    {Family::peppa, "Peppa-Facial-Landmark", kBgr, all(127), all(127), kStretch, 0, kCentered,
     kNobody, kNoBackground,
     "ainrichman/Peppa-Facial-Landmark-PyTorch@34b3ddc379: onnx_detector.py (detect)"},
    {Family::open_nsfw,
     "Yahoo's open_nsfw",
     kBgr,
     {104, 117, 123},
     kOne,
     kStretch,
     0,
     kCentered,
     kNobody,
     kNoBackground,
     "yahoo/open_nsfw@d43a104503: classify_nsfw.py",
     false,
     224.0f / 256},
};

constexpr bool are_in_order() {
  for (size_t i = 0; i < std::size(kConventions); ++i)
    if (kConventions[i].family != static_cast<Family>(i)) return false;
  return true;
}
static_assert(are_in_order(), "a row is where its number is");

std::vector<float> shortest(const Numbers& numbers) {
  if (numbers[0] == numbers[1] && numbers[1] == numbers[2]) return {numbers[0]};
  return {numbers.begin(), numbers.end()};
}

}  // namespace

std::span<const Convention> conventions() { return kConventions; }

const Convention& convention_of(Family family) { return kConventions[static_cast<size_t>(family)]; }

PictureDefaults picture_of(Family family) {
  const Convention& row = convention_of(family);
  PictureDefaults picture{row.name,  row.resize,         row.pad_value,       row.centered,
                          row.color, shortest(row.mean), shortest(row.scale), row.task,
                          row.share};
  // Open Model Zoo describes the files that it converted.
  picture.converted = std::string_view(row.source).rfind("openvinotoolkit/open_model_zoo@", 0) == 0;
  return picture;
}

Suppression suppression_of(const ModelFacts& facts, Family family) {
  if (convention_of(family).overlaps != Overlaps::element) return Suppression::none;
  const std::string agnostic = lower(info(facts, "agnostic_nms"));
  return agnostic == "true" || agnostic == "yes" || agnostic == "1" ? Suppression::across_classes
                                                                    : Suppression::per_class;
}

}  // namespace clinfer
