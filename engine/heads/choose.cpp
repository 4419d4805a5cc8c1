// Lists the heads and chooses among them.
#include <algorithm>
#include <array>
#include <optional>
#include <set>

#include "engine/heads/base/common.h"
#include "engine/heads/base/heads.h"
#include "engine/heads/pictures/maps.h"
#include "engine/heads/readings.h"

namespace clinfer {
namespace {

// If several heads fit equally well, the first one is chosen, so the more usual reading comes
// first.
const std::array kHeads = {
    Head{"ssd", HeadKind::objects, Alike::one, Sizes::any,
         "rows of 7 as DetectionOutput makes them", match_detection_output},
    Head{"boxes-scores", HeadKind::objects, Alike::one, Sizes::any,
         "boxes [1,N,4] and scores [1,N,C]", match_boxes_scores},
    Head{"boxes-picked", HeadKind::objects, Alike::one, Sizes::any,
         "boxes, scores, and the rows that NonMaxSuppression picked [K,3]", match_selected_boxes},
    Head{"boxes-labels", HeadKind::objects, Alike::one, Sizes::any,
         "boxes with scores [N,5], or turned ones [N,6], and labels [N]", match_boxes_labels},
    // Three maps with the finest first are mostly v5's; v3 and v4 differ in the activation.
    Head{"yolov5", HeadKind::objects, Alike::one, Sizes::any,
         "YOLO v5 and v7: three anchors a cell", match_yolov5},
    Head{"yolov3", HeadKind::objects, Alike::one, Sizes::any,
         "YOLO v2 and v3: RegionYolo outputs, or raw maps", match_yolov3},
    Head{"yolov4", HeadKind::objects, Alike::one, Sizes::any, "YOLO v4: raw maps", match_yolov4},
    // Comes first, because YOLOX and v6 are exported as rows, while v8 and later, which have no
    // objectness, seldom are.
    Head{"yolox", HeadKind::objects, Alike::one, Sizes::any, "YOLOX and v6: [1,cells,5+C]",
         match_yolox},
    Head{"yolov8", HeadKind::objects, Alike::one, Sizes::any,
         "YOLO v8, v9, v11 and later: [1,4+C,cells]", match_yolov8},
    Head{"yolov10", HeadKind::objects, Alike::one, Sizes::any,
         "end-to-end rows of 6: corners, score, label", match_end_to_end},
    Head{"nanodet", HeadKind::objects, Alike::one, Sizes::any,
         "NanoDet and PicoDet: scores and distance distributions", match_nanodet},
    Head{"yunet", HeadKind::objects, Alike::one, Sizes::examples,
         "YuNet faces: cls, obj and bbox at each level", match_yunet},
    Head{"yolov8-pose", HeadKind::objects, Alike::one, Sizes::any,
         "YOLO v8 and later with key points", match_yolov8_pose},
    Head{"yolov8-seg", HeadKind::objects, Alike::one, Sizes::any, "YOLO v8 and later with masks",
         match_yolov8_seg},
    Head{"yolov8-obb", HeadKind::objects, Alike::one, Sizes::any,
         "YOLO v8 and later with oriented boxes", match_yolov8_obb},
    Head{"yolov8-maps", HeadKind::objects, Alike::one, Sizes::any,
         "YOLO v8 and later as maps [1,64+C,h,w]", match_yolov8_maps},
    Head{"yolov10-pose", HeadKind::objects, Alike::one, Sizes::any,
         "end-to-end rows with key points", match_end_to_end_pose},
    Head{"yolov10-seg", HeadKind::objects, Alike::one, Sizes::any,
         "end-to-end rows with mask coefficients", match_end_to_end_seg},
    Head{"yolov10-obb", HeadKind::objects, Alike::one, Sizes::any, "end-to-end rows with an angle",
         match_end_to_end_obb},
    Head{"named-rows", HeadKind::objects, Alike::one, Sizes::any,
         "rows whose columns the output's name lists", match_named_rows},
    Head{"yolov7-rows", HeadKind::objects, Alike::one, Sizes::any,
         "rows of 7: image, corners, class, score", match_yolov7_rows},
    Head{"yolo-nas-rows", HeadKind::objects, Alike::one, Sizes::any,
         "rows of 7: image, corners, score, class", match_nas_rows},
    Head{"paddle-rows", HeadKind::objects, Alike::one, Sizes::any,
         "PaddleDetection's rows: class, score, corners", match_class_first},
    Head{"boxes-scores-labels", HeadKind::objects, Alike::one, Sizes::any,
         "an output each of boxes, scores and class numbers", match_boxes_scores_labels},
    Head{"detr", HeadKind::objects, Alike::one, Sizes::any,
         "DETR and YOLOS: logits with no-object, and boxes", match_detr},
    Head{"rtdetr", HeadKind::objects, Alike::one, Sizes::any,
         "RT-DETR, RF-DETR, D-FINE, DEIM: logits and boxes", match_rtdetr},
    Head{"detr-rows", HeadKind::objects, Alike::one, Sizes::any,
         "queries [1,N,4+C]: centre, size, probabilities", match_detr_rows},
    Head{"mtcnn-proposals", HeadKind::objects, Alike::one, Sizes::any,
         "P-Net of MTCNN: probabilities and offsets of small squares", match_mtcnn_proposals},
    Head{"scrfd", HeadKind::objects, Alike::one, Sizes::examples,
         "SCRFD faces: scores, distances and points at each level", match_scrfd},
    Head{"retinaface", HeadKind::objects, Alike::one, Sizes::examples,
         "RetinaFace: offsets, scores and points of priors", match_retinaface},
    Head{"ultraface", HeadKind::objects, Alike::one, Sizes::any,
         "UltraFace: boxes and scores of 4420 priors and the like", match_ultraface},
    Head{"centerface", HeadKind::objects, Alike::one, Sizes::examples,
         "CenterFace: heat map, sizes, offsets, points", match_centerface},
    Head{"dbface", HeadKind::objects, Alike::one, Sizes::examples,
         "DBFace: heat map, sides, points", match_dbface},
    Head{"fastestdet", HeadKind::objects, Alike::one, Sizes::any, "FastestDet: one map [1,5+C,h,w]",
         match_fastestdet},
    Head{"yolo-fastestv2", HeadKind::objects, Alike::one, Sizes::any,
         "YOLO-FastestV2: two maps [1,h,w,15+C]", match_fastest_v2},
    Head{"blazeface", HeadKind::objects, Alike::one, Sizes::any,
         "MediaPipe's detectors of faces, palms and persons", match_blaze},
    Head{"fcos", HeadKind::objects, Alike::one, Sizes::any,
         "FCOS: classes, distances and centerness", match_fcos},
    Head{"centernet", HeadKind::objects, Alike::one, Sizes::any,
         "CenterNet: heat map, sizes, offsets", match_centernet},
    Head{"ssd-anchors", HeadKind::objects, Alike::one, Sizes::any,
         "SSD: offsets and scores of 1917 or 8732 anchors", match_ssd_anchors},
    Head{"retinanet", HeadKind::objects, Alike::one, Sizes::any,
         "RetinaNet: offsets and scores of nine boxes a cell", match_retinanet},
    Head{"efficientdet", HeadKind::objects, Alike::one, Sizes::any,
         "EfficientDet: offsets and scores of nine boxes a cell", match_efficientdet},
    Head{"detectnet", HeadKind::objects, Alike::one, Sizes::any,
         "TAO DetectNet_v2: coverage and boxes", match_detectnet},
    Head{"lanes", HeadKind::objects, Alike::one, Sizes::any,
         "Ultra-Fast-Lane-Detection and LSTR: lanes as lines of points", match_lanes},
    Head{"segmentation", HeadKind::map, Alike::one, Sizes::any,
         "classes of pixels: scores [1,C,h,w] or class numbers", match_segmentation},
    Head{"saliency", HeadKind::map, Alike::one, Sizes::any,
         "a share of foreground for each pixel: saliency, mattes", match_saliency},
    Head{"depth", HeadKind::map, Alike::one, Sizes::any, "a depth for each pixel", match_depth},
    Head{"anomaly", HeadKind::map, Alike::one, Sizes::any, "an anomaly score for each pixel",
         match_anomaly},
    Head{"openpose", HeadKind::objects, Alike::all, Sizes::any,
         "OpenPose: heat maps of points and fields of bones", match_part_fields},
    Head{"heatmaps", HeadKind::points, Alike::all, Sizes::any,
         "HRNet, ViTPose, SimpleBaseline: a heat map for each point", match_heatmaps},
    Head{"simcc", HeadKind::points, Alike::all, Sizes::any,
         "RTMPose: bins of x and of y for each point", match_simcc},
    Head{"movenet", HeadKind::objects, Alike::one, Sizes::any, "MoveNet: y, x, score of 17 points",
         match_movenet},
    Head{"landmarks", HeadKind::points, Alike::one, Sizes::any,
         "coordinates of points of a face, a hand or a body", match_landmarks},
    Head{"head-pose", HeadKind::answers, Alike::all, Sizes::any, "yaw, pitch and roll of a head",
         match_head_pose},
    Head{"mtcnn", HeadKind::points, Alike::all, Sizes::any,
         "R- and O-Net of MTCNN: a face in a region, and its points", match_mtcnn},
    Head{"text-detection", HeadKind::text, Alike::one, Sizes::any,
         "DB: a probability of text for each pixel", match_text_detection},
    Head{"text-recognition", HeadKind::text, Alike::one, Sizes::own,
         "characters in steps (CTC), by the dictionary in labels", match_text_recognition},
    Head{"embedding", HeadKind::answers, Alike::all, Sizes::own,
         "vectors that stand for the picture", match_embedding},
    Head{"classification", HeadKind::answers, Alike::all, Sizes::own, "vectors of class scores",
         match_classification},
};

// Returns the heads that a model_type of model_info means; empty for an unknown one.
std::vector<std::string> heads_of_type(const std::string& model_type) {
  static const auto& kCells =
      *new const std::vector<std::string>{"yolov8", "yolov8-pose", "yolov8-seg", "yolov8-obb"};
  static const auto& kRows =
      *new const std::vector<std::string>{"yolov10", "yolov10-pose", "yolov10-seg", "yolov10-obb"};
  static const auto joined = [](std::initializer_list<std::vector<std::string>> lists) {
    std::vector<std::string> all;
    for (const auto& list : lists) all.insert(all.end(), list.begin(), list.end());
    return all;
  };
  static const auto& kTypes =
      *new const std::vector<std::pair<const char*, std::vector<std::string>>>{
          {"ssd", {"ssd", "boxes-labels", "boxes-scores"}},
          {"maskrcnn", {"boxes-labels", "boxes-scores-labels"}},
          {"detection_output", {"ssd"}},
          {"boxes_labels", {"boxes-labels"}},
          {"rotated_detection", {"boxes-labels"}},
          {"boxes_scores", {"boxes-scores"}},
          {"ultra_lightweight_face_detection", {"ultraface", "boxes-scores"}},
          {"yolox", {"yolox"}},
          {"yolo_x", {"yolox"}},
          {"yolov3", {"yolov3"}},
          {"yolo_v3", {"yolov3"}},
          {"yolov4", {"yolov4"}},
          {"yolo_v4", {"yolov4"}},
          {"yolov5", {"yolov5", "yolov8"}},
          {"yolo_v5", {"yolov5", "yolov8"}},
          {"yolov6", {"yolox", "yolov8"}},
          {"yolo_v6", {"yolox", "yolov8"}},
          {"yolov7", {"yolov5", "yolov7-rows"}},
          {"yolo_v7", {"yolov5", "yolov7-rows"}},
          {"yolov8", joined({kCells, kRows})},
          {"yolo_v8", joined({kCells, kRows})},
          {"yolov9", joined({kCells, kRows})},
          {"yolov10", joined({kRows, kCells})},
          {"yolo_v10", joined({kRows, kCells})},
          {"yolo26", joined({kRows, kCells})},
          {"yolo_v26", joined({kRows, kCells})},
          {"yolo11", joined({kCells, kRows})},
          {"yolov11", joined({kCells, kRows})},
          {"yolo_v11", joined({kCells, kRows})},
          {"yolo12", joined({kCells, kRows})},
          {"yolov12", joined({kCells, kRows})},
          {"yolo", joined({kCells, kRows, {"yolov5", "yolox", "detr-rows", "yolov3", "yolov4"}})},
          {"nanodet", {"nanodet"}},
          {"yunet", {"yunet"}},
          {"scrfd", {"scrfd"}},
          {"retinaface", {"retinaface"}},
          {"classification", {"classification"}},
          {"segmentation", {"segmentation"}},
          {"semantic_segmentation", {"segmentation"}},
          {"anomalydetection", {"anomaly"}},
          {"anomaly_detection", {"anomaly"}},
          {"keypoint_detection", {"simcc", "heatmaps", "movenet"}},
          {"openpose", {"openpose"}},
          {"text_detection", {"text-detection"}},
          {"text_recognition", {"text-recognition"}},
          {"depth_estimation", {"depth"}},
          {"label", {"classification"}},
      };
  std::string type = lower(model_type);
  // Removes a suffix that names the variant: "nanodet-plus", "yolov3-onnx".
  if (const size_t dash = type.find('-'); dash != std::string::npos) type.resize(dash);
  for (const auto& [name, found] : kTypes)
    if (type == name) return found;
  return {};
}

struct Candidacy {
  const Head* head = nullptr;
  Match match;
};

// Returns the class number of the first label: 1 if the numbers count from 1 and no label names the
// background; -1 if a label does although the outputs have no background class. A file that numbers
// its names states it itself.
int first_label(const ModelFacts& facts, const Match& match) {
  const std::vector<std::string>& labels = facts.labels;
  if (labels.empty()) return 0;
  const bool background = is_background(labels[0]);
  const bool numbered = !info(facts, "labels_numbered").empty();
  if (match.from_one) return background || numbered ? 0 : 1;
  return background && match.classes != 0 && labels.size() == match.classes + 1 ? -1 : 0;
}

std::string reason_of(const Match& match) {
  return match.doubt.empty() ? match.reason : match.reason + ", " + match.doubt;
}

HeadChoice chosen(const ModelFacts& facts, const Candidacy& candidate, const std::string& because) {
  HeadChoice choice;
  choice.name = candidate.head->name;
  choice.reason = because + reason_of(candidate.match);
  choice.first_label = first_label(facts, candidate.match);
  choice.step = step_of(facts);
  choice.decode = candidate.match.decode;
  choice.fit = candidate.match.fit;
  choice.sizes = candidate.head->sizes;
  choice.picture = candidate.match.picture;
  choice.warnings = candidate.match.assumptions;
  choice.class_names = candidate.match.class_names;
  choice.attach_tensors = candidate.match.unsure;
  return choice;
}

// Warns of labels for another number of classes, but drops nothing.
void check_labels(const ModelFacts& facts, const Match& match, HeadChoice& choice) {
  const size_t labels = facts.labels.size(), classes = match.classes;
  if (labels == 0 || classes == 0 || labels == classes) return;
  if (labels == classes + 1 && (is_background(facts.labels[0]) || match.from_one)) return;
  if (labels + 1 == classes && match.background) return;
  choice.warnings.push_back(std::to_string(labels) + " labels, but the outputs tell " +
                            std::to_string(classes) +
                            " classes apart: they may be another model's; set labels or "
                            "labels-file");
}

std::string names_of(const std::vector<Candidacy>& candidates) {
  std::string names;
  for (const Candidacy& candidate : candidates)
    names += std::string(names.empty() ? "" : ", ") + candidate.head->name;
  return names;
}

// The largest step between cells, in pixels, of maps that describe points.
constexpr size_t kStepOfPoints = 8;

HeadChoice none(const ModelFacts& facts, std::string reason) {
  HeadChoice choice;
  choice.name = "none";
  choice.reason = std::move(reason);
  choice.decode = match_tensors(facts).decode;
  // Networks that make a picture of a picture take any size, and those that tell many numbers for
  // the cells of a picture.
  for (size_t i = 0; i < facts.outputs.size(); ++i) {
    const auto map = map_layout(facts, i);
    if (!map) continue;
    const size_t step = map->channels == 1 || map->channels == 3 ? 1 : kStepOfPoints;
    if (map->rows * step >= static_cast<size_t>(facts.height) &&
        map->columns * step >= static_cast<size_t>(facts.width))
      choice.sizes = Sizes::any;
  }
  return choice;
}

bool takes(const ModelFacts& facts, const std::string& post_process) {
  return std::any_of(kHeads.begin(), kHeads.end(), [&](const Head& head) {
    return post_process == head.name && head.match(facts).fit != Fit::no;
  });
}

HeadChoice named_head(const ModelFacts& facts, const std::string& post_process) {
  for (const Head& head : kHeads) {
    if (post_process != head.name) continue;
    const Match match = head.match(facts);
    if (match.fit == Fit::no)
      throw Error{ErrorCode::bad_argument, "post-process=" + post_process + " " + reason_of(match) +
                                               "; the model's outputs are " + describe(facts)};
    HeadChoice choice = chosen(facts, {&head, match}, "asked for: ");
    choice.warnings.clear();  // a head that was asked for is no guess
    choice.attach_tensors = false;
    check_labels(facts, match, choice);
    return choice;
  }
  throw Error{ErrorCode::bad_argument, "post-process=" + post_process + " is not known"};
}

// `lacking`: heads that would fit with labels, as "; head: what to set".
HeadChoice best_of(const ModelFacts& facts, const std::vector<Candidacy>& all,
                   const std::string& lacking) {
  const std::string model_type = info(facts, "model_type");
  const std::vector<std::string> allowed = heads_of_type(model_type);
  const auto is_allowed = [&](const Candidacy& candidate) {
    return std::find(allowed.begin(), allowed.end(), candidate.head->name) != allowed.end();
  };
  // Heads of the stated type come before all others if their shapes fit.
  std::vector<Candidacy> found;
  const bool typed = std::any_of(all.begin(), all.end(), [&](const Candidacy& candidate) {
    return is_allowed(candidate) && candidate.match.fit >= Fit::possible;
  });
  // If none of the stated type fits, others are a guess.
  const auto fit_of = [&](const Candidacy& candidate) {
    const bool guess = !allowed.empty() && !typed;
    return guess ? std::min(candidate.match.fit, Fit::possible) : candidate.match.fit;
  };
  Fit best = Fit::no;
  for (const Candidacy& candidate : all)
    if (!typed || is_allowed(candidate)) best = std::max(best, fit_of(candidate));
  for (const Candidacy& candidate : all)
    if ((!typed || is_allowed(candidate)) && fit_of(candidate) == best) found.push_back(candidate);

  if (best <= Fit::against) {
    std::string against;
    for (const Candidacy& candidate : all)
      if (candidate.match.fit == Fit::against)
        against += std::string("; ") + candidate.head->name + " would fit the shapes, but " +
                   reason_of(candidate.match) + "; post-process=" + candidate.head->name +
                   " reads them so";
    return none(facts, "no head fits the outputs " + describe(facts) + lacking + against);
  }
  const std::string because = typed ? "model_type " + model_type + ": " : "";
  HeadChoice choice = chosen(facts, found.front(), because);
  choice.fit = best;
  if (found.size() > 1) {
    choice.warnings.insert(
        choice.warnings.begin(),
        "the outputs " + describe(facts) + " can be read in more than one way: " + names_of(found) +
            "; they are read as " + choice.name +
            ", and raw tensors are attached beside; set post-process to one of these, or to none");
    choice.attach_tensors = true;
  } else if (best == Fit::possible && !typed) {
    choice.warnings.insert(choice.warnings.begin(),
                           "the outputs " + describe(facts) + " are possibly of the head " +
                               choice.name + " (" + reason_of(found.front().match) +
                               "); raw tensors are attached beside; set post-process=" +
                               choice.name + " if it is right, or another head, or none");
    choice.attach_tensors = true;
  }
  check_labels(facts, found.front().match, choice);
  return choice;
}

const Head* head_named(const std::string& name) {
  const auto found = std::find_if(kHeads.begin(), kHeads.end(),
                                  [&](const Head& head) { return name == head.name; });
  return found == kHeads.end() ? nullptr : &*found;
}

// Returns the head that was chosen first; networks with several tasks add others.
const Head* first_head_of(const HeadChoice& choice) {
  return head_named(choice.name.substr(0, choice.name.find('+')));
}

// Returns the outputs without which the head reads the others just as well; none if there are too
// many outputs.
std::vector<size_t> unread_outputs(const ModelFacts& facts, const std::string& name) {
  std::vector<size_t> read, unread;
  for (size_t i = 0; i < facts.outputs.size(); ++i) read.push_back(i);
  const Head* head = head_named(name);
  if (head == nullptr || facts.outputs.size() > kMostCompared) return unread;
  const Match whole = head->match(facts);
  // A head that the user named may fit less well.
  const Fit least = std::min(Fit::possible, whole.fit);
  // Goes from the last to the first, since heads read the first of several outputs that would do.
  for (size_t i = facts.outputs.size(); i-- > 0 && read.size() > 1;) {
    std::vector<size_t> others = read;
    std::erase(others, i);
    const Match match = head->match(with_outputs(facts, others));
    if (match.fit == Fit::no || match.fit < least || match.reason != whole.reason) continue;
    read = std::move(others);
    unread.insert(unread.begin(), i);
  }
  return unread;
}

// Makes a further head read some of the outputs.
void add_head(const Candidacy& further, const std::vector<size_t>& outputs_of_it,
              HeadChoice& choice) {
  choice.decode = [rest = outputs_of_it, first = choice.decode, other = further.match.decode](
                      std::span<const Tensor> outputs, const DecodeSettings& settings,
                      Results& results) {
    first(outputs, settings, results);
    std::vector<Tensor> own;
    for (const size_t i : rest)
      if (i < outputs.size()) own.push_back(outputs[i]);
    other(own, settings, results);
  };
  choice.warnings.insert(choice.warnings.end(), further.match.assumptions.begin(),
                         further.match.assumptions.end());
  choice.reason += "; and " + std::string(further.head->name) + ": " + reason_of(further.match);
  choice.name += std::string("+") + further.head->name;
}

// Returns the head that fits best, of one kind or of any.
std::optional<Candidacy> surest(const ModelFacts& facts, Fit least,
                                std::optional<HeadKind> kind = {}) {
  std::optional<Candidacy> best;
  for (const Head& head : kHeads)
    if (!kind || head.kind == *kind)
      if (Match match = head.match(facts);
          match.fit >= least && (!best || match.fit > best->match.fit))
        best = Candidacy{&head, std::move(match)};
  return best;
}

// Handles networks with several tasks, such as YOLOP: outputs that the head leaves and that are
// surely boxes or maps are read by further heads. The picture is prepared as for the boxes' family.
void add_further_heads(const ModelFacts& facts, HeadChoice& choice) {
  const Head* head = first_head_of(choice);
  if (choice.fit < Fit::likely || head == nullptr) return;
  const bool maps_first = head->kind == HeadKind::map;
  if (!maps_first && head->kind != HeadKind::objects) return;
  std::vector<size_t> others;
  for (const size_t i : unread_outputs(facts, choice.name)) {
    if (!map_layout(facts, i)) {
      others.push_back(i);
      continue;
    }
    // Only the output's own name counts, because facts about the whole model also hold for
    // auxiliary outputs.
    ModelFacts alone = with_outputs(facts, {i});
    alone.name.clear();
    alone.model_info.clear();
    alone.labels.clear();
    if (const auto map = surest(alone, Fit::certain, HeadKind::map)) add_head(*map, {i}, choice);
  }
  if (!maps_first || others.empty()) return;
  if (const auto boxes = surest(with_outputs(facts, others), Fit::likely, HeadKind::objects)) {
    choice.picture = boxes->match.picture;
    add_head(*boxes, others, choice);
  }
}

}  // namespace

std::span<const Head> heads() { return kHeads; }

const char* name_of(Fit fit) {
  switch (fit) {
    case Fit::against:
      return "against";
    case Fit::possible:
      return "possible";
    case Fit::likely:
      return "likely";
    case Fit::certain:
      return "certain";
    case Fit::no:
      break;
  }
  return "no";
}

namespace {

HeadChoice choose_among_all(const ModelFacts& facts) {
  std::vector<Candidacy> all;
  std::vector<HeadFit> considered;
  std::string lacking;
  for (const Head& head : kHeads) {
    Match match = head.match(facts);
    considered.push_back({head.name, match.fit, reason_of(match)});
    if (match.lacks_labels) lacking += std::string("; ") + head.name + ": " + match.reason;
    if (match.fit != Fit::no) all.push_back({&head, std::move(match)});
  }
  HeadChoice choice = best_of(facts, all, lacking);
  add_further_heads(facts, choice);
  choice.considered = std::move(considered);
  return choice;
}

std::string names_of(const ModelFacts& facts, const std::vector<size_t>& outputs) {
  std::string names;
  for (const size_t i : outputs) names += (names.empty() ? "" : ",") + facts.outputs[i].name;
  return names;
}

void warn_of_guess(std::string warning, HeadChoice& choice) {
  choice.warnings.insert(choice.warnings.begin(), std::move(warning));
  choice.attach_tensors = true;
}

bool same_kind(const OutputFacts& a, const OutputFacts& b) {
  return a.type == b.type && a.shape == b.shape;
}

// Warns if an output that the head does not read is as good as one that it reads: main and
// auxiliary heads, as of YOLO v9, cannot be distinguished by their shapes.
void say_alike(const Reading& reading, HeadChoice& choice) {
  const Head* head = first_head_of(choice);
  if (head == nullptr || head->alike != Alike::one) return;
  const ModelFacts& facts = reading.facts;
  const std::vector<size_t> unread = unread_outputs(facts, head->name);
  std::vector<size_t> read, other;
  for (size_t i = 0; i < facts.outputs.size(); ++i)
    if (std::find(unread.begin(), unread.end(), i) == unread.end()) read.push_back(i);
  for (const size_t i : read) {
    std::vector<size_t> without = read;
    std::erase(without, i);
    const auto twin = std::find_if(unread.begin(), unread.end(), [&](size_t j) {
      if (is_called_a_step(facts.outputs[j]) || !same_kind(facts.outputs[i], facts.outputs[j]))
        return false;
      std::vector<size_t> instead = without;
      instead.insert(std::lower_bound(instead.begin(), instead.end(), j), j);
      return head->match(with_outputs(facts, instead)).fit >= choice.fit;
    });
    other.push_back(twin == unread.end() ? i : *twin);
  }
  if (other == read) return;
  warn_of_guess("the outputs " + names_of(facts, other) + " could be read by the head " +
                    choice.name + " as well as " + names_of(facts, read) +
                    ", which are read; raw tensors are attached beside; set outputs=" +
                    names_of(facts, other) + " (or outputs=" + names_of(facts, read) +
                    ", if these are right)",
                choice);
}

// Warns if the outputs that a detector leaves are results themselves.
void say_rival(const Reading& whole, const Reading& reading, HeadChoice& choice) {
  const Head* head = first_head_of(choice);
  if (head == nullptr || choice.name != head->name || head->kind != HeadKind::objects) return;
  std::set<size_t> read(reading.outputs.begin(), reading.outputs.end());
  for (const size_t i : unread_outputs(reading.facts, head->name)) read.erase(reading.outputs[i]);
  std::vector<size_t> left;
  for (size_t i = 0; i < whole.outputs.size(); ++i) {
    const OutputFacts& output = whole.facts.outputs[i];
    // Ignores a vector for each object, or one for the picture, as trackers have them.
    const bool explained = explains(output) && !name_has(output, {"embed", "reid"});
    if (!read.count(whole.outputs[i]) && !explained && !is_called_a_step(output)) left.push_back(i);
  }
  if (left.empty()) return;
  std::optional<Candidacy> rival;
  for (const Reading& other : readings_of(with_outputs(whole.facts, left))) {
    if (!rival) rival = surest(other.facts, Fit::possible, HeadKind::objects);
    if (!rival) rival = surest(other.facts, Fit::likely);
  }
  // Maps of the head from which its rows were made.
  if (!rival || rival->head == head) return;
  warn_of_guess("the outputs " + describe(whole.facts) + " may be of two heads: they are read as " +
                    choice.name + " (" + choice.reason + "), and " + names_of(whole.facts, left) +
                    " could be read as " + rival->head->name +
                    "; raw tensors are attached beside; set outputs to those that count",
                choice);
}

// Warns if an output that the head leaves has an axis of as many objects as the outputs that it
// reads: it may hold masks or points in an unknown layout.
void say_unread(const Reading& reading, HeadChoice& choice) {
  const Head* head = first_head_of(choice);
  if (head == nullptr || head->kind != HeadKind::objects) return;
  const ModelFacts& facts = reading.facts;
  std::vector<size_t> unread = unread_outputs(facts, head->name);
  // Collects the numbers of rows of the tables that the head reads.
  constexpr int64_t kLeast = 8;
  std::set<int64_t> rows;
  for (size_t i = 0; i < facts.outputs.size(); ++i) {
    const Shape shape = squeeze_front(facts.outputs[i].shape);
    if (std::find(unread.begin(), unread.end(), i) == unread.end() && !shape.empty() &&
        shape.size() <= 2 && shape[0] >= kLeast)
      rows.insert(shape[0]);
  }
  std::erase_if(unread, [&](size_t i) {
    const OutputFacts& output = facts.outputs[i];
    return is_called_a_step(output) || output.shape.size() < 3 || !is_float_output(output) ||
           std::none_of(output.shape.begin(), output.shape.end(),
                        [&](int64_t size) { return rows.count(size) != 0; });
  });
  if (unread.empty()) return;
  warn_of_guess("the outputs " + names_of(facts, unread) +
                    " may belong to the objects that the head " + choice.name +
                    " reads, in a layout that is not known; raw tensors are attached "
                    "beside; set outputs to the others if they do not",
                choice);
}

// Reports which output was left out, because the others fit a head without it.
void say_left_out(const Reading& whole, const Reading& reading, HeadChoice& choice) {
  std::vector<size_t> left_out;
  for (size_t i = 0; i < whole.outputs.size(); ++i)
    if (std::find(reading.outputs.begin(), reading.outputs.end(), whole.outputs[i]) ==
        reading.outputs.end())
      left_out.push_back(i);
  warn_of_guess("no head surely fits the outputs " + describe(whole.facts) + "; without " +
                    names_of(whole.facts, left_out) + " they are read as " + choice.name + " (" +
                    choice.reason +
                    "), and raw tensors are attached beside; set outputs to those that count, or "
                    "post-process=none",
                choice);
}

}  // namespace

HeadChoice choose_head(const ModelFacts& facts, const std::string& post_process,
                       const std::vector<std::string>& outputs) {
  if (post_process == "none") return none(facts, "asked for");
  const size_t all = facts.outputs.size();
  const Reading asked = outputs.empty() ? Reading{} : reading_of(facts, outputs);
  std::vector<Reading> readings = readings_of(outputs.empty() ? facts : asked.facts);
  if (!outputs.empty())
    for (Reading& reading : readings)
      for (size_t& place : reading.outputs) place = asked.outputs[place];
  const auto read_by = [&](const Reading& reading, HeadChoice choice) {
    choice.decode = decode_of(reading, all, std::move(choice.decode));
    return choice;
  };
  if (post_process != "auto") {
    for (const Reading& reading : readings) {
      if (!takes(reading.facts, post_process)) continue;
      HeadChoice choice = named_head(reading.facts, post_process);
      say_alike(reading, choice);
      return read_by(reading, std::move(choice));
    }
    return named_head(readings[0].facts, post_process);  // reports why it does not fit
  }
  HeadChoice best = choose_among_all(readings[0].facts);
  size_t chosen = 0;
  const auto consider = [&](size_t i, auto better) {
    HeadChoice choice = choose_among_all(readings[i].facts);
    if (!better(choice)) return;
    best = std::move(choice);
    chosen = i;
  };
  for (size_t i = 1; i < readings.size(); ++i)
    consider(i, [&](const HeadChoice& choice) {
      // Among guesses, prefers one that needs no explanation outputs.
      const bool fewer = readings[i].outputs.size() < all;
      const bool guess = fewer && choice.fit == Fit::possible && best.fit == Fit::possible;
      return choice.fit > best.fit || guess;
    });
  if (best.fit < Fit::likely) {
    const size_t stated = readings.size();
    for (size_t whole = 0; whole < stated; ++whole) {
      if (readings[whole].outputs.size() < readings[0].outputs.size()) continue;
      for (Reading& reading : readings_without_one(readings[whole])) {
        readings.push_back(std::move(reading));
        consider(readings.size() - 1, [&](const HeadChoice& choice) {
          // Prefers other results to an embedding, since a vector is more likely an additional
          // output.
          const bool better =
              choice.fit > best.fit || (choice.fit == best.fit && best.name == "embedding");
          return better && choice.fit >= Fit::likely;
        });
      }
    }
    if (chosen >= stated) say_left_out(readings[0], readings[chosen], best);
  }
  if (!best.attach_tensors) {
    say_alike(readings[chosen], best);
    if (!best.attach_tensors) say_rival(readings[0], readings[chosen], best);
    if (!best.attach_tensors) say_unread(readings[chosen], best);
  }
  return read_by(readings[chosen], std::move(best));
}

}  // namespace clinfer
