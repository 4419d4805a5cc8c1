// Lists how the networks of each family take their pictures, as in their authors' code, and what
// only the family's row says about their outputs. The table in docs/heads.md is generated from
// these rows.
#pragma once

#include <array>
#include <span>

#include "engine/heads/base/common.h"

namespace clinfer {

enum class Family {
  yolo,  // Ultralytics' networks, and those that follow them
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
  yolox_logits,
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
  st_ssd,
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
  pfld_bgr,
  face_tracker,
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
  twinlitenet,
  tensorflow_segmentation,
  sinet,
  open_model_zoo,
  text_detection,
  text_regions,
  text_recognition,
  gray_lines,
  plates,
  lprnet,
  crnn_plates,
  text_direction,
  text_line_direction,
  text_line_side,
  paddle_clas,
  imagenet,
  tensorflow_imagenet,
  keras_classes,
  torchvision_classes,
  small_pictures,
  age,
  antispoof,
  minifasnet,
  person_reid,
  face_recognition,
  peppa,
  open_nsfw,
};

// The place where boxes that overlap a better one are removed: in the element, in the network, or
// nowhere, because each row is an object or there are no boxes.
enum class Overlaps { element, network, nobody };

// The class score of a family that stands for the background.
enum class Background { none, first, last };

// Mean and scale are for pixels 0..255, in the order of `color`.
struct Convention {
  Family family;
  const char* name;  // for messages: "as NAME takes them"
  ColorOrder color;
  std::array<float, 3> mean, scale;
  // nullopt: the authors' networks take pictures of any size, so nothing tells how to fill an input
  // of fixed size.
  std::optional<ResizeMode> resize;
  float pad_value;
  bool centered;
  Overlaps overlaps;
  Background background;
  const char* source;  // repository and file of the authors' code
  bool task = false;   // true for what is usual for a task, not for one project's networks
  float share = 1;     // of the picture's centre, if it is cropped
};

// Returns the rows in the order of Family.
std::span<const Convention> conventions();

const Convention& convention_of(Family family);

PictureDefaults picture_of(Family family);

// Returns the suppression that is left to the decoder of a family's outputs: per_class unless the
// model says otherwise (`agnostic_nms`); none if the family's networks suppress boxes themselves,
// or each row is an object.
Suppression suppression_of(const ModelFacts& facts, Family family);

}  // namespace clinfer
