// The list of heads and the choice among them.
#include <algorithm>
#include <array>

#include "engine/heads/common.h"
#include "engine/heads/heads.h"

namespace clinfer {
namespace {

const std::array<Head, 12> kHeads{{
    {"ssd", "rows of 7 as DetectionOutput makes them", match_detection_output},
    {"boxes-scores", "boxes [1,N,4] and scores [1,N,C]", match_boxes_scores},
    {"boxes-labels", "boxes with scores [N,5] and labels [N]", match_boxes_labels},
    {"yolov3", "YOLO v2 and v3: RegionYolo outputs, or raw maps", match_yolov3},
    {"yolov4", "YOLO v4: raw maps", match_yolov4},
    {"yolov5", "YOLO v5 and v7: three anchors a cell", match_yolov5},
    {"yolov8", "YOLO v8, v9, v11 and later: [1,4+C,cells]", match_yolov8},
    {"yolov10", "end-to-end rows of 6: corners, score, label", match_end_to_end},
    {"yolox", "YOLOX: [1,cells,5+C]", match_yolox},
    {"nanodet", "NanoDet: scores and distance distributions", match_nanodet},
    {"yunet", "YuNet faces: cls, obj and bbox at each level", match_yunet},
    {"classification", "vectors of class scores", match_classification},
}};

// Heads that a model_type of model_info means; empty when it says nothing to us.
std::vector<std::string> heads_of_type(const std::string& model_type) {
  static const std::vector<std::pair<const char*, std::vector<std::string>>> kTypes = {
      {"ssd", {"ssd", "boxes-labels", "boxes-scores"}},
      {"detection_output", {"ssd"}},
      {"boxes_labels", {"boxes-labels"}},
      {"boxes_scores", {"boxes-scores"}},
      {"ultra_lightweight_face_detection", {"boxes-scores"}},
      {"yolox", {"yolox"}},
      {"yolo_x", {"yolox"}},
      {"yolov3", {"yolov3"}},
      {"yolo_v3", {"yolov3"}},
      {"yolov4", {"yolov4"}},
      {"yolo_v4", {"yolov4"}},
      {"yolov5", {"yolov5", "yolov8"}},
      {"yolo_v5", {"yolov5", "yolov8"}},
      {"yolov7", {"yolov5"}},
      {"yolo_v7", {"yolov5"}},
      {"yolov8", {"yolov8"}},
      {"yolo_v8", {"yolov8"}},
      {"yolov9", {"yolov8"}},
      {"yolov10", {"yolov10"}},
      {"yolo_v10", {"yolov10"}},
      {"yolo26", {"yolov10", "yolov8"}},
      {"yolo_v26", {"yolov10", "yolov8"}},
      {"yolo11", {"yolov8"}},
      {"yolov11", {"yolov8"}},
      {"yolo_v11", {"yolov8"}},
      {"yolo", {"yolov8", "yolov5", "yolov10", "yolox", "yolov3", "yolov4"}},
      {"nanodet", {"nanodet"}},
      {"yunet", {"yunet"}},
      {"classification", {"classification"}},
      {"label", {"classification"}},
  };
  std::string type = lower(model_type);
  // "nanodet-plus", "yolov3-onnx": a suffix names the variant.
  if (const size_t dash = type.find('-'); dash != std::string::npos) type.resize(dash);
  for (const auto& [name, found] : kTypes)
    if (type == name) return found;
  return {};
}

struct Candidate {
  const Head* head = nullptr;
  Match match;
};

std::vector<Candidate> candidates_among(const ModelFacts& facts,
                                        const std::vector<std::string>& allowed) {
  std::vector<Candidate> found;
  for (const Head& head : kHeads) {
    if (!allowed.empty() && std::find(allowed.begin(), allowed.end(), head.name) == allowed.end())
      continue;
    Match match = head.match(facts);
    if (match.fit != Fit::no) found.push_back({&head, std::move(match)});
  }
  return found;
}

std::string names_of(const std::vector<Candidate>& candidates) {
  std::string names;
  for (const Candidate& candidate : candidates)
    names += std::string(names.empty() ? "" : ", ") + candidate.head->name;
  return names;
}

}  // namespace

std::span<const Head> heads() { return kHeads; }

HeadChoice choose_head(const ModelFacts& facts, const std::string& post_process) {
  if (post_process == "none") return {"none", "asked for", match_tensors(facts).decode};
  if (post_process != "auto") {
    for (const Head& head : kHeads) {
      if (post_process != head.name) continue;
      Match match = head.match(facts);
      if (match.fit == Fit::no) {
        throw Error{ErrorCode::bad_argument, "post-process=" + post_process + " " + match.reason +
                                                 "; the model's outputs are " + describe(facts)};
      }
      return {head.name, "asked for: " + match.reason, std::move(match.decode)};
    }
    throw Error{ErrorCode::bad_argument, "post-process=" + post_process + " is not known"};
  }

  const std::string model_type = info(facts, "model_type");
  const std::vector<std::string> allowed = heads_of_type(model_type);
  std::vector<Candidate> found;
  if (!allowed.empty()) {
    found = candidates_among(facts, allowed);
    // The order of the list is the order of preference for this type.
    for (const std::string& name : allowed)
      for (Candidate& candidate : found)
        if (name == candidate.head->name &&
            (candidate.match.fit == Fit::certain || found.size() == 1))
          return {candidate.head->name, "model_type " + model_type + ": " + candidate.match.reason,
                  std::move(candidate.match.decode)};
  }
  if (found.empty()) found = candidates_among(facts, {});
  const std::string shapes_fit = names_of(found);
  std::erase_if(found, [](const Candidate& c) { return c.match.fit == Fit::against; });
  if (found.empty())
    return {
        "none",
        (shapes_fit.empty() ? "no head fits the outputs "
                            : shapes_fit + " would fit, but for another number of labels than " +
                                  std::to_string(facts.labels.size()) + ", the outputs ") +
            describe(facts),
        match_tensors(facts).decode};

  std::vector<Candidate> certain;
  for (Candidate& candidate : found)
    if (candidate.match.fit == Fit::certain) certain.push_back(candidate);
  if (certain.size() == 1)
    return {certain[0].head->name, certain[0].match.reason, std::move(certain[0].match.decode)};
  const std::vector<Candidate>& tied = certain.empty() ? found : certain;
  if (tied.size() == 1 && std::string(tied[0].head->name) != "classification")
    return {tied[0].head->name, tied[0].match.reason, tied[0].match.decode};
  if (tied.size() == 1)  // an embedding and landmarks are vectors too
    return {"none",
            "nothing says that the outputs " + describe(facts) +
                " are class scores (labels, a softmax); post-process=classification reads them so",
            match_tensors(facts).decode};
  throw Error{ErrorCode::bad_argument,
              "the outputs " + describe(facts) +
                  " can be read in more than one way: set post-process to one of " +
                  names_of(tied) + ", or to none for the raw tensors"};
}

}  // namespace clinfer
