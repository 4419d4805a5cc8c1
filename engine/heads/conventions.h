// How each family's networks take their pictures, as their authors' code does it, and what of their
// outputs its rows alone say. The table in
// docs/heads.md is printed from these rows.
#pragma once

#include <array>
#include <span>

#include "engine/heads/common.h"

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
  picodet,
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
  mtcnn_proposals,
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
  sinet,
  open_model_zoo,
  text_detection,
  text_recognition,
  plates,
  lprnet,
  text_direction,
  paddle_clas,
};

// The remover of boxes that overlap a better one: the element, the network itself, or nobody, as each row
// is an object or there are no boxes.
enum class Overlaps { element, network, nobody };

// The class that means that there is nothing, among a family's class scores.
enum class Background { none, first, last };

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
  Overlaps overlaps;
  Background background;
  const char* source;  // repository and file of the authors' code
  bool task = false;   // what is usual for a task, not how one project's networks take pictures
  float share = 1;     // of the picture's middle that is taken, where it is cropped
};

// In the order of Family.
std::span<const Convention> conventions();

const Convention& convention_of(Family family);

PictureDefaults picture_of(Family family);

// Returns the suppression that is left to the decoder of a family's outputs: per_class unless the model says otherwise
// (`agnostic_nms`); none where the family's networks suppress themselves, or each row is an object.
Suppression suppression_of(const ModelFacts& facts, Family family);

}  // namespace clinfer
