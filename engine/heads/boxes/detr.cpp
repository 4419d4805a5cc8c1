// Reads DETR and similar networks: class logits and boxes (centre and size, shares of the picture)
// for each query. DETR and YOLOS have a softmax with no-object as the last class; Deformable DETR,
// RT-DETR, RF-DETR, D-FINE and DEIM a sigmoid for each class. Also reads RT-DETR as Ultralytics
// exports it: both in one output, squashed.
#include <algorithm>

#include "engine/heads/base/common.h"
#include "engine/heads/base/conventions.h"
#include "engine/heads/base/heads.h"
#include "engine/heads/pictures/masks.h"

namespace clinfer {
namespace {

struct Queries {
  size_t boxes = 0, logits = 0, count = 0, classes = 0;
  std::optional<MaskGrids> masks;
  bool rf = false;  // true for RF-DETR's names: dets, labels
};

// Returns the family that config.json (or model_info) names; empty if it is none of these.
std::string stated_family(const ModelFacts& facts) {
  std::string type = lower(info(facts, "model_type"));
  std::erase_if(type, [](char c) { return c == '_' || c == '-' || c == ' '; });
  return type;
}
bool is_softmax_family(const std::string& type) {
  return type == "detr" || type == "yolos" || type == "tabletransformer";
}
bool is_sigmoid_family(const std::string& type) {
  for (const char* known : {"rtdetr", "dfine", "deim", "rfdetr", "lwdetr", "deformabledetr",
                            "conditionaldetr", "dabdetr", "deta", "groundingdino"})
    if (type.rfind(known, 0) == 0) return true;
  return false;
}

// Returns whether these are the families' numbers of queries, and of columns for COCO and
// Objects365.
bool are_usual(size_t queries, size_t columns) {
  const bool count = queries == 100 || queries == 200 || queries == 300 || queries == 900;
  const bool classes = columns == 80 || columns == 91 || columns == 92 || columns == 251 ||
                       columns == 365 || columns == 366;
  return count && classes;
}

// Finds queries if names say nothing: by the family, or the usual numbers, and two tables with as
// many rows, whose rows are not cells. Masks may accompany them.
std::optional<Queries> find_unnamed_queries(const ModelFacts& facts) {
  const std::string type = stated_family(facts);
  std::optional<Queries> found;
  for (size_t b = 0; b < facts.outputs.size(); ++b) {
    const auto boxes = table_of(facts.outputs[b]);
    if (!boxes || boxes->columns != 4 || boxes->rows < 10 || facts.outputs[b].shape.size() != 3)
      continue;
    const auto n = static_cast<int64_t>(boxes->rows);
    for (size_t l = 0; l < facts.outputs.size() && !found; ++l) {
      const auto logits = table_of(facts.outputs[l]);
      if (l == b || !logits || logits->rows != boxes->rows || facts.outputs[l].shape.size() != 3 ||
          is_softmax(facts.outputs[l]) || facts.outputs[l].op == "Sigmoid")
        continue;
      const bool stated = is_softmax_family(type) || is_sigmoid_family(type);
      if (!stated && (!are_usual(boxes->rows, logits->columns) || grid_levels(facts, n, 1) ||
                      grid_levels(facts, n, 3)))
        continue;
      found = Queries{b, l, boxes->rows, logits->columns, find_mask_grids(facts, boxes->rows)};
    }
  }
  return found;
}

// Considers names first, because many families have pairs of [1,N,4] and [1,N,C].
std::optional<Queries> find_queries(const ModelFacts& facts) {
  Queries found;
  bool has_boxes = false, has_logits = false;
  for (size_t i = 0; i < facts.outputs.size(); ++i) {
    const OutputFacts& output = facts.outputs[i];
    const auto table = table_of(output);
    if (!table || output.shape.size() != 3) continue;
    if (!has_boxes && table->columns == 4 && name_has(output, {"pred_box", "pred_bbox", "dets"})) {
      found.boxes = i;
      found.count = table->rows;
      found.rf = name_has(output, {"dets"});
      has_boxes = true;
    }
  }
  for (size_t i = 0; i < facts.outputs.size() && has_boxes; ++i) {
    const OutputFacts& output = facts.outputs[i];
    const auto table = table_of(output);
    if (!table || i == found.boxes || table->rows != found.count || output.shape.size() != 3)
      continue;
    if (!has_logits && name_has(output, {"logit", "labels", "pred_class"})) {
      found.logits = i;
      found.classes = table->columns;
      has_logits = true;
    }
  }
  if (!has_logits) return find_unnamed_queries(facts);
  for (const OutputFacts& output : facts.outputs)
    if (name_has(output, {"mask"})) found.masks = find_mask_grids(facts, found.count);
  return found;
}

bool is_open_vocabulary(const ModelFacts& facts) {
  for (const std::string& name : facts.input_names)
    if (name.find("input_ids") != std::string::npos || name.find("text") != std::string::npos)
      return true;
  return std::any_of(facts.outputs.begin(), facts.outputs.end(), [](const OutputFacts& output) {
    return name_has(output, {"_embeds", "embedding"});
  });
}

struct QueryHead {
  ModelFacts facts;
  Queries queries;
  bool softmax = false;
  // True if nothing states the squashing: the first inference that tells decides (first: softmax).
  bool is_open = false;
  Decided squashing;

  // Tells by values: with a softmax, no-object, the last class, leads in most queries; with
  // sigmoids, most queries have no positive number.
  Decided::Kind squashing_seen(const Floats& logits) const {
    if (queries.count < 50 || queries.classes < 2) return Decided::open;
    size_t last_leads = 0, none_positive = 0;
    std::vector<float> buffer;
    for (size_t i = 0; i < queries.count; ++i) {
      const float* row = logits.run(i * queries.classes, queries.classes, buffer);
      const auto lead = static_cast<size_t>(std::max_element(row, row + queries.classes) - row);
      none_positive += row[lead] < 0;
      last_leads += row[lead] > 0 && lead + 1 == queries.classes;
    }
    return last_leads * 4 > queries.count * 3      ? Decided::first
           : none_positive * 4 > queries.count * 3 ? Decided::second
                                                   : Decided::open;
  }

  // Returns the best class of a query and its probability.
  std::pair<size_t, float> best(const float* logits, bool by_softmax) const {
    const size_t classes = by_softmax ? queries.classes - 1 : queries.classes;
    size_t label = 0;
    for (size_t k = 1; k < classes; ++k)
      if (logits[k] > logits[label]) label = k;
    if (!by_softmax) return {label, sigmoid(logits[label])};
    const float top = std::max(logits[label], logits[classes]);
    float sum = 0;
    for (size_t k = 0; k <= classes; ++k) sum += std::exp(logits[k] - top);
    return {label, std::exp(logits[label] - top) / sum};
  }

  void operator()(std::span<const Tensor> outputs, const DecodeSettings& settings,
                  Results& results) const {
    const Floats boxes(output_of(outputs, queries.boxes, queries.count * 4));
    const Floats logits(output_of(outputs, queries.logits, queries.count * queries.classes));
    const float width = static_cast<float>(facts.width), height = static_cast<float>(facts.height);
    Candidates candidates(settings);
    std::vector<float> buffer, box_buffer;
    size_t likely = 0;
    float reach = 0;
    const Decided::Kind usual = softmax ? Decided::first : Decided::second;
    const bool by_softmax =
        is_open ? squashing.settle(squashing_seen(logits), usual) == Decided::first : softmax;
    for (size_t i = 0; i < queries.count; ++i) {
      const auto [label, score] =
          best(logits.run(i * queries.classes, queries.classes, buffer), by_softmax);
      const float* box = boxes.run(i * 4, 4, box_buffer);
      for (int k = 0; k < 4; ++k)
        if (std::isfinite(box[k])) reach = std::max(reach, std::fabs(box[k]));
      likely += score > 0.5f;
      candidates.add_centered(box[0] * width, box[1] * height, box[2] * width, box[3] * height,
                              score, static_cast<double>(label), i);
    }
    // There are far more queries than objects. If most are objects, the squashing is wrong.
    if (queries.count >= 50 && likely * 4 > queries.count * 3) {
      results.contradiction =
          std::to_string(likely) + " of " + std::to_string(queries.count) + " queries are objects";
      return;
    }
    if (reach > 4) {
      results.contradiction =
          "boxes that are to be shares of the picture reach " + std::to_string(reach);
      return;
    }
    std::optional<Floats> masks;
    if (queries.masks && queries.masks->output < outputs.size())
      masks.emplace(outputs[queries.masks->output]);
    finish(settings, Suppression::none, candidates, results,
           [&](const Candidate& kept, Detection& detection) {
             if (!masks ||
                 masks->size() != queries.count * queries.masks->rows * queries.masks->columns)
               return;
             MaskGrids grids = *queries.masks;
             grids.whole_picture = true;
             detection.mask =
                 grid_mask(grids, *masks, kept.row, true, detection, facts.width, facts.height);
           });
  }
};

// The squashing function: a softmax with no-object, or sigmoids. It is decided by statements of the
// model, then by the number of labels, then by custom.
struct Squash {
  bool softmax = false;
  Fit fit = Fit::certain;
  std::string why, assumption;
};
Squash squash_of(const ModelFacts& facts, const Queries& queries) {
  const std::string type = stated_family(facts);
  if (is_softmax_family(type)) return {true, Fit::certain, "model_type " + type, ""};
  if (is_sigmoid_family(type)) return {false, Fit::certain, "model_type " + type, ""};
  if (queries.rf) return {false, Fit::certain, "RF-DETR's output names", ""};
  const size_t labels = facts.labels.size(), columns = queries.classes;
  if (facts.own_labels && labels != 0 && labels + 1 == columns)
    return {true, Fit::certain, "one column more than labels", ""};
  if (labels != 0 && labels == columns)
    return {false, Fit::certain, "as many columns as labels", ""};
  const bool softmax =
      columns == 92 || columns == 251 || (columns != 80 && columns != 91 && queries.count <= 100);
  const std::string kind =
      softmax ? "a softmax with no-object as the last class" : "a sigmoid for each class";
  return {softmax, Fit::likely, std::to_string(columns) + " columns",
          "nothing says how class scores are to be squashed; unless their values tell, " +
              std::to_string(columns) + " columns are read as " + kind +
              "; post-process=" + (softmax ? "rtdetr" : "detr") + " reads them as " +
              (softmax ? "a sigmoid for each class" : "a softmax with no-object")};
}

Match match_queries(const ModelFacts& facts, bool softmax) {
  const auto queries = find_queries(facts);
  if (!queries || (softmax && queries->classes < 2))
    return {Fit::no, "needs logits [1,N,C] and pred_boxes [1,N,4]", {}};
  if (is_open_vocabulary(facts))
    return {Fit::no, "classes are embeddings of texts, which are not known here", {}};
  const Squash squash = squash_of(facts, *queries);
  Match match;
  const bool is_open = squash.softmax == softmax && squash.fit == Fit::likely;
  match.decode = QueryHead{facts, *queries, softmax, is_open, {}};
  match.reason = "logits " + facts.outputs[queries->logits].name + ", boxes " +
                 facts.outputs[queries->boxes].name +
                 (queries->masks ? ", masks " + facts.outputs[queries->masks->output].name : "") +
                 "; " + squash.why;
  match.fit = squash.softmax == softmax ? squash.fit : Fit::against;
  if (squash.softmax == softmax && !squash.assumption.empty())
    match.assumptions.push_back(squash.assumption);
  const std::string type = stated_family(facts);
  const bool imagenet = softmax || queries->rf || type.rfind("deformable", 0) == 0 ||
                        type.rfind("conditional", 0) == 0 || type.rfind("dab", 0) == 0 ||
                        type.rfind("deta", 0) == 0 || type.rfind("lw", 0) == 0;
  match.picture = picture_of(!imagenet     ? Family::rtdetr
                             : queries->rf ? Family::rfdetr
                             : softmax     ? Family::detr
                                           : Family::deformable_detr);
  match.classes = queries->classes - (softmax ? 1 : 0);
  return match;
}

}  // namespace

Match match_detr(const ModelFacts& facts) { return match_queries(facts, true); }
Match match_rtdetr(const ModelFacts& facts) { return match_queries(facts, false); }

Match match_detr_rows(const ModelFacts& facts) {
  if (facts.outputs.size() != 1) return {Fit::no, "needs one output [1,queries,4+classes]", {}};
  const auto table = table_of(facts.outputs[0]);
  if (!table || facts.outputs[0].shape.size() != 3 || table->columns < 5 || table->columns == 6 ||
      table->rows > 2000 || table->rows < 10)
    return {Fit::no, "needs one output [1,queries,4+classes]", {}};
  if (is_softmax(facts.outputs[0]))
    return {Fit::no, "needs rows of boxes and classes, which come out of no softmax", {}};
  const size_t labels = facts.labels.size(), classes = table->columns - 4;
  auto decode = [facts, table = *table, classes](std::span<const Tensor> outputs,
                                                 const DecodeSettings& settings, Results& results) {
    const Floats values(output_of(outputs, 0, table.rows * table.columns));
    const float width = static_cast<float>(facts.width), height = static_cast<float>(facts.height);
    Candidates candidates(settings);
    std::vector<float> buffer;
    float reach = 0;
    for (size_t i = 0; i < table.rows; ++i) {
      const float* row = values.run(i * table.columns, table.columns, buffer);
      size_t best = 4;
      for (size_t k = 4; k < 4 + classes; ++k) {
        if (row[k] > row[best]) best = k;
        candidates.expect_probability(row[k]);
      }
      for (size_t k = 0; k < 4; ++k)
        if (std::isfinite(row[k])) reach = std::max(reach, std::fabs(row[k]));
      candidates.add_centered(row[0] * width, row[1] * height, row[2] * width, row[3] * height,
                              row[best], static_cast<double>(best - 4), i);
    }
    if (reach > 4)
      results.contradiction = "boxes that are to be shares of the picture are not";
    else
      finish(settings, Suppression::none, candidates, results);
  };
  Match match;
  match.decode = decode;
  match.reason = std::to_string(table->rows) + " queries of 4 + " + std::to_string(classes);
  const auto n = static_cast<int64_t>(table->rows);
  const bool cells = grid_levels(facts, n, 1) || grid_levels(facts, n, 3) ||
                     grid_levels(facts, static_cast<int64_t>(table->columns), 1);
  match.fit = cells                                        ? Fit::against
              : labels == classes && labels != 0           ? Fit::certain
              : labels == 0 && (n == 300 || classes == 80) ? Fit::likely
                                                           : Fit::against;
  match.picture = picture_of(Family::rtdetr);
  match.classes = classes;
  return match;
}

}  // namespace clinfer
