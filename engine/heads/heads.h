// One match function a head; each says whether the model's outputs fit it and how to decode them
// then.
#pragma once

#include "engine/heads/decoder.h"

namespace clinfer {

Match match_detection_output(const ModelFacts& facts);
Match match_boxes_scores(const ModelFacts& facts);
Match match_boxes_labels(const ModelFacts& facts);
Match match_end_to_end(const ModelFacts& facts);
Match match_yolox(const ModelFacts& facts);
Match match_yolov3(const ModelFacts& facts);
Match match_yolov4(const ModelFacts& facts);
Match match_yolov5(const ModelFacts& facts);
Match match_yolov8(const ModelFacts& facts);
Match match_nanodet(const ModelFacts& facts);
Match match_yunet(const ModelFacts& facts);
Match match_classification(const ModelFacts& facts);
Match match_tensors(const ModelFacts& facts);  // fits every model

}  // namespace clinfer
