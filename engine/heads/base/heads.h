// Declares one match function for each head. It tells whether the model's outputs fit the head, and
// how to decode them then.
#pragma once

#include "engine/heads/base/decoder.h"

namespace clinfer {

Match match_detection_output(const ModelFacts& facts);
Match match_boxes_scores_labels(const ModelFacts& facts);
Match match_selected_boxes(const ModelFacts& facts);
Match match_detr(const ModelFacts& facts);
Match match_rtdetr(const ModelFacts& facts);
Match match_detr_rows(const ModelFacts& facts);
Match match_boxes_labels(const ModelFacts& facts);
Match match_boxes_scores(const ModelFacts& facts);
Match match_scrfd(const ModelFacts& facts);
Match match_retinaface(const ModelFacts& facts);
Match match_ultraface(const ModelFacts& facts);
Match match_yunet(const ModelFacts& facts);
Match match_centerface(const ModelFacts& facts);
Match match_blaze(const ModelFacts& facts);
Match match_yolov8(const ModelFacts& facts);
Match match_yolov8_pose(const ModelFacts& facts);
Match match_yolov8_seg(const ModelFacts& facts);
Match match_yolov8_obb(const ModelFacts& facts);
Match match_end_to_end(const ModelFacts& facts);
Match match_end_to_end_pose(const ModelFacts& facts);
Match match_end_to_end_seg(const ModelFacts& facts);
Match match_end_to_end_obb(const ModelFacts& facts);
Match match_class_first(const ModelFacts& facts);
Match match_yolov7_rows(const ModelFacts& facts);
Match match_nas_rows(const ModelFacts& facts);
Match match_named_rows(const ModelFacts& facts);
Match match_yolov5(const ModelFacts& facts);
Match match_yolox(const ModelFacts& facts);
Match match_yolov3(const ModelFacts& facts);
Match match_yolov4(const ModelFacts& facts);
Match match_yolov8_maps(const ModelFacts& facts);
Match match_nanodet(const ModelFacts& facts);
Match match_fcos(const ModelFacts& facts);
Match match_centernet(const ModelFacts& facts);
Match match_dbface(const ModelFacts& facts);
Match match_fastestdet(const ModelFacts& facts);
Match match_fastest_v2(const ModelFacts& facts);
Match match_ssd_anchors(const ModelFacts& facts);
Match match_retinanet(const ModelFacts& facts);
Match match_efficientdet(const ModelFacts& facts);
Match match_detectnet(const ModelFacts& facts);
Match match_classification(const ModelFacts& facts);
Match match_segmentation(const ModelFacts& facts);
Match match_saliency(const ModelFacts& facts);
Match match_depth(const ModelFacts& facts);
Match match_anomaly(const ModelFacts& facts);
Match match_part_fields(const ModelFacts& facts);
Match match_heatmaps(const ModelFacts& facts);
Match match_simcc(const ModelFacts& facts);
Match match_movenet(const ModelFacts& facts);
Match match_landmarks(const ModelFacts& facts);
Match match_lanes(const ModelFacts& facts);
Match match_head_pose(const ModelFacts& facts);
Match match_mtcnn(const ModelFacts& facts);
Match match_mtcnn_proposals(const ModelFacts& facts);
Match match_text_detection(const ModelFacts& facts);
Match match_text_recognition(const ModelFacts& facts);
Match match_embedding(const ModelFacts& facts);
Match match_tensors(const ModelFacts& facts);  // fits every model

}  // namespace clinfer
