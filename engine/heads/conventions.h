// How each family's networks take their pictures, as their authors' code does it. The table in
// docs/heads.md is printed from these rows.
#pragma once

#include <array>
#include <span>

#include "engine/heads/decoder.h"

namespace clinfer {

enum class Family {
  yolo,  // Ultralytics', and those that follow them
  yolov6,
  yolo_nas,
  yolo_nas_pose,
  yolo_apart,
  yolov7_rows,
  end_to_end,
  yolov5,
  darknet,
  yolov2,
  keras_yolo,
  yolox,
  nanodet,
  nanodet_plus,
  pp_yoloe,
  paddle_detection,
  detr,
  deformable_detr,
  rtdetr,
  rfdetr,
  torchvision,
  torchvision_fcos,
  torchvision_retinanet,
  fcos,
  centernet,
  retinanet,
  keras_retinanet,
  efficientdet,
  tensorflow,
  tensorflow_lite,
  tensorflow_ssd,
  ssd300,
  detectnet,
  suppressed,
  deepstream_yolo,
  aizoo,
  fastestdet,
  yolo_fastest_v2,
  dbface,
  head_angles,
  head_pose,
  fsa_net,
  anomalib,
  lanes,
  lane_curves,
  scrfd,
  retinaface,
  insightface_retinaface,
  ultraface,
  yunet,
  yunet_rows,
  centerface,
  mtcnn,
  blazeface,
  palms,
  facemesh,
  pfld,
  facemesh_irises,
  irises,
  hands,
  blazepose,
  upper_body,
  movenet,
  posenet,
  heat_maps,
  rtmpose,
  openpose,
  depth,
  saliency,
  selfie,
  segmentation,
  tensorflow_segmentation,
  text_detection,
  text_recognition,
  plates,
  lprnet,
  text_direction,
  paddle_clas,
};

// Mean and scale are of pixels 0..255, in the order of `color`.
struct Convention {
  Family family;
  const char* name;  // for messages: "as NAME takes them"
  ColorOrder color;
  std::array<float, 3> mean, scale;
  // nullopt: the authors' networks take pictures of any size, so nothing says how to fill an input of
  // one size.
  std::optional<ResizeMode> resize;
  float pad_value;
  bool centered;
  const char* source;  // repository and file of the authors' code
  bool task = false;   // what is usual for a task, not how one project's networks take pictures
  float share = 1;     // of the picture's middle that is taken, where it is cropped
};

// In the order of Family.
std::span<const Convention> conventions();

PictureDefaults picture_of(Family family);

// The remover of boxes that overlap a better one: the element, the network itself, or nobody, as each row
// is an object or there are no boxes.
enum class Overlaps { element, network, nobody };
Overlaps overlaps_of(Family family);

// The class that means that there is nothing, among a family's class scores.
enum class Background { none, first, last };
Background background_of(Family family);

}  // namespace clinfer
