// NonMaxSuppression: selects, for each image and class, the best boxes that do not overlap better
// ones. Their number depends on values: infer_shapes states the maximum, evaluate() replaces its
// outputs by tensors with as many rows as were selected, and a kernel writes -1 into unused rows.
#include <algorithm>
#include <cmath>
#include <queue>

#include "kernels/arguments.h"
#include "kernels/base/system/work_limit.h"
#include "kernels/detection/box_lists.h"
#include "kernels/shape_util.h"
#include "kernels/storage.h"

namespace clinfer {

namespace {

struct Box {
  float y0, x0, y1, x1;
  float area() const { return (y1 - y0) * (x1 - x0); }
};

Box read_box(const float* v, bool is_center) {
  if (is_center) return {v[1] - v[3] / 2, v[0] - v[2] / 2, v[1] + v[3] / 2, v[0] + v[2] / 2};
  return {std::min(v[0], v[2]), std::min(v[1], v[3]), std::max(v[0], v[2]),
          std::max(v[1], v[3])};  // corners in any order
}

float overlap(const Box& a, const Box& b) {
  if (a.area() <= 0 || b.area() <= 0) return 0;
  const float height = std::max(std::min(a.y1, b.y1) - std::max(a.y0, b.y0), 0.0f);
  const float width = std::max(std::min(a.x1, b.x1) - std::max(a.x0, b.x0), 0.0f);
  const float shared = height * width;
  return shared / (a.area() + b.area() - shared);
}

struct Candidate {
  float score;
  int64_t image, label, box;
  size_t checked = 0;  // number of selected boxes that it was compared with
};

// Orders by score; equal scores by image, class and box.
bool is_better(const Candidate& a, const Candidate& b) {
  if (a.score != b.score) return a.score > b.score;
  if (a.image != b.image) return a.image < b.image;
  return a.label != b.label ? a.label < b.label : a.box < b.box;
}

constexpr double kEachBox = 10;  // multiplications, as WorkLimit counts work

struct Thresholds {
  int64_t most;  // per class
  // soft_scale: 0 removes boxes that overlap too much; otherwise their scores are lowered.
  float overlap, score, soft_scale;
};

// Appends the boxes of one image and class. A soft-suppressed candidate returns to the queue with
// its lower score.
void select(const float* boxes, const float* scores, int64_t count, bool is_center,
            const Thresholds& t, Candidate proto, std::vector<Candidate>& result) {
  const auto is_worse = [](const Candidate& a, const Candidate& b) { return is_better(b, a); };
  std::vector<Candidate> list;
  for (int64_t i = 0; i < count; ++i)
    if (scores[i] > t.score) {
      proto.score = scores[i];
      proto.box = i;
      list.push_back(proto);
    }
  std::priority_queue<Candidate, std::vector<Candidate>, decltype(is_worse)> queue(is_worse,
                                                                                   std::move(list));
  std::vector<Box> selected;
  while (!queue.empty() && static_cast<int64_t>(selected.size()) < t.most) {
    WorkLimit::may_go_on();
    Candidate next = queue.top();
    queue.pop();
    const float before = next.score;
    const Box box = read_box(boxes + next.box * 4, is_center);
    bool suppressed = false;
    for (size_t k = selected.size(); k-- > next.checked;) {
      const float shared = overlap(box, selected[k]);
      if (t.soft_scale == 0 && shared >= t.overlap) {
        suppressed = true;
        break;
      }
      next.score *= std::exp(t.soft_scale * shared * shared);
      if (next.score <= t.score) break;
    }
    if (suppressed) continue;
    next.checked = selected.size();
    if (next.score == before) {
      selected.push_back(box);
      result.push_back(next);
    } else if (next.score > t.score) {
      queue.push(next);
    }
  }
}

float float_input(std::span<const Tensor> inputs, size_t i, const char* what) {
  return i < inputs.size() ? one_float(inputs[i], what) : 0.0f;
}

std::vector<ValueInfo> infer(const ShapeContext& context) {
  check_inputs(context, 2, context.opset >= 5 ? 6 : 5);
  const Shape &boxes = context.inputs[0].shape, &scores = context.inputs[1].shape;
  check_rank(boxes, 3, 3, "the boxes");
  check_rank(scores, 3, 3, "the scores");
  if (boxes[2] != 4 || boxes[0] != scores[0] || boxes[1] != scores[2])
    fail_model("boxes " + to_string(boxes) + " and scores " + to_string(scores) + " do not fit");
  const std::string encoding = context.attributes.get_string("box_encoding", "corner");
  if (encoding != "corner" && encoding != "center") fail_model("box_encoding \"" + encoding + "\"");
  int64_t most = boxes[1];
  if (!has_input(context, 2))
    most = 0;
  else if (!context.inputs[2].value.empty())
    most = std::clamp<int64_t>(constant_int(context, 2, "max_output_boxes_per_class"), 0, most);
  for (size_t i = 2; i < context.inputs.size(); ++i)
    if (checked_count(context.inputs[i].shape) != 1)
      fail_model("input " + std::to_string(i) + " must be one number");
  const int64_t rows = checked_product(checked_product(scores[0], scores[1]), most);
  checked_product(rows, 3);
  const ElementType type =
      context.opset >= 3 ? index_type(context.attributes, "output_type") : ElementType::i64;
  std::vector<ValueInfo> outputs{{type, {rows, 3}}};
  if (context.opset >= 5) {
    outputs.push_back({ElementType::f32, {rows, 3}});
    outputs.push_back({type, {1}});
  }
  return outputs;
}

Thresholds thresholds_of(std::span<const Tensor> inputs) {
  const float sigma = float_input(inputs, 5, "soft_nms_sigma");
  return {inputs.size() > 2 ? one_int(inputs[2], "max_output_boxes_per_class") : 0,
          float_input(inputs, 3, "iou_threshold"), float_input(inputs, 4, "score_threshold"),
          sigma > 0 ? -0.5f / sigma : 0.0f};
}

bool is_center_encoding(const Attributes& a) {
  return a.get_string("box_encoding", "corner") == "center";
}
bool is_sorted(const Attributes& a) { return a.get_bool("sort_result_descending", true); }

void evaluate(const OpDesc& desc, std::span<const Tensor> inputs, std::span<Tensor> outputs) {
  const bool is_center = is_center_encoding(desc.attributes);
  const Thresholds t = thresholds_of(inputs);
  const Shape& shape = inputs[1].shape();
  std::vector<std::vector<Candidate>> lists(static_cast<size_t>(shape[0] * shape[1]));
  WorkLimit::for_ranges(shape[0] * shape[1], kEachBox * static_cast<double>(shape[2]),
                        [&](int64_t begin, int64_t end) {
                          for (int64_t i = begin; i < end; ++i) {
                            const int64_t n = i / shape[1], c = i % shape[1];
                            select(inputs[0].data<float>() + n * shape[2] * 4,
                                   inputs[1].data<float>() + i * shape[2], shape[2], is_center, t,
                                   {0, n, c, 0}, lists[static_cast<size_t>(i)]);
                          }
                        });
  std::vector<Candidate> rows;
  for (const auto& list : lists) rows.insert(rows.end(), list.begin(), list.end());
  if (is_sorted(desc.attributes)) std::sort(rows.begin(), rows.end(), is_better);

  const auto count = static_cast<int64_t>(rows.size());
  std::vector<int64_t> indices;
  for (const Candidate& row : rows) indices.insert(indices.end(), {row.image, row.label, row.box});
  outputs[0] = Tensor::allocate(outputs[0].type(), {count, 3});
  store_ints(indices, outputs[0]);
  if (outputs.size() > 1) {
    outputs[1] = Tensor::allocate(ElementType::f32, {count, 3});
    float* to = outputs[1].mutable_data<float>();
    for (const Candidate& row : rows)
      for (float v : {static_cast<float>(row.image), static_cast<float>(row.label), row.score})
        *to++ = v;
  }
  if (outputs.size() > 2) store_ints(std::vector<int64_t>{count}, outputs[2]);
}

// ---- kernel ------------------------------------------------------------------------------------

// The number, lengths and positions of the lists.
struct Lists {
  Lists(const Shape& scores, int64_t rows)
      : count(scores[0] * scores[1]),
        most(rows / std::max<int64_t>(count, 1)),
        room(list_room(scores[2])) {
    constexpr int64_t kKey = 8, kBox = 16, kCount = 4;
    memory.add(count * room * kKey);
    merged = memory.add(list_room(rows) * kKey);
    places = memory.add(rows * kBox);
    counts = memory.add(count * kCount);
  }
  int64_t count, most;  // most: boxes that may remain in a list
  int64_t room;
  ListMemory memory;
  int64_t merged, places, counts;
};

std::string reject(const OpDesc& desc, const DeviceTraits& traits) {
  for (size_t i = 2; i < desc.own_inputs; ++i)
    if (desc.constants[i].empty()) return "a threshold is not constant";
  const int64_t rows = desc.outputs[0].shape[0], read = desc.inputs[1].elements();
  if (rows > read) return "there are more rows to read back than scores";
  if (thresholds_of(desc.constants).soft_scale != 0)
    return "each box that is selected changes the scores of all others";
  for (size_t i : {size_t{0}, size_t{2}})
    if (i < desc.outputs.size() && desc.outputs[i].type != ElementType::i32 &&
        desc.outputs[i].type != ElementType::i64)
      return "gives i32 and i64 only";
  return reject_lists(desc, traits, 2, desc.inputs[1].shape[2],
                      Lists(desc.inputs[1].shape, rows).memory);
}

struct Args {
#include "kernels/detection/non_max_suppression_args.cl"
};

KernelPlan plan(const OpDesc& desc, const DeviceTraits& traits, const TuningPoint& point) {
  const Thresholds t = thresholds_of(desc.constants);
  const TensorDesc &boxes = desc.inputs[0], &scores = desc.inputs[1];
  const Lists lists(scores.shape, desc.outputs[0].shape[0]);
  const bool details = desc.outputs.size() > 1;
  const Args args{.box_n = to_int(boxes.strides[0]),
                  .box_b = to_int(boxes.strides[1]),
                  .box_i = to_int(boxes.strides[2]),
                  .score_n = to_int(scores.strides[0]),
                  .score_c = to_int(scores.strides[1]),
                  .score_b = to_int(scores.strides[2]),
                  .lists = to_int(lists.count),
                  .classes = to_int(scores.shape[1]),
                  .boxes = to_int(scores.shape[2]),
                  .most = to_int(lists.most),
                  .room = to_int(lists.room),
                  .merged = to_int(lists.merged),
                  .places = to_int(lists.places),
                  .counts = to_int(lists.counts),
                  .overlap = t.overlap,
                  .threshold = t.score};
  KernelSpec spec;
  spec.source = "non_max_suppression.cl";
  spec.defines = {{"BOX_T", storage_name(boxes.type)},
                  {"SCORE_T", storage_name(scores.type)},
                  {"INDEX", size_of(desc.outputs[0].type) == 8 ? "long" : "int"},
                  {"T", details ? storage_name(desc.outputs[1].type) : "float"},
                  {"DETAILS", details ? "1" : "0"},
                  {"CENTER", is_center_encoding(desc.attributes) ? "1" : "0"},
                  {"SORTED", is_sorted(desc.attributes) ? "1" : "0"}};
  spec.arguments = {Argument::input(0, size_of(boxes.type)),
                    Argument::input(1, size_of(scores.type))};
  for (size_t i = 0; i < desc.outputs.size(); ++i)
    spec.arguments.push_back(Argument::output(i, size_of(desc.outputs[i].type)));
  spec.arguments.push_back(Argument::workspace(8));
  spec.arguments.push_back(Argument::value(args));
  KernelPlan plan;
  plan.workspace = lists.memory.bytes();
  plan.launches = {spec, spec};
  for (size_t merge : {size_t{0}, size_t{1}}) {
    plan.launches[merge].defines.emplace_back("MERGE", std::to_string(merge));
    set_lists(plan.launches[merge], merge ? 1 : lists.count, traits, point);
  }
  return plan;
}

const KernelFamily kNonMaxSuppression{"non_max_suppression", 1,   reject, list_space,
                                      list_heuristic,        plan};

}  // namespace

std::vector<OpDef> non_max_suppression_ops() {
  return {{.type = "NonMaxSuppression",
           .opsets = opset_range(1),
           .infer_shapes = infer,
           .evaluate = evaluate,
           .families = {&kNonMaxSuppression},
           .layout = LayoutRule::any_to_rows,
           .host_reason = kListsOnHost,
           .rows_depend_on_data = true,
           .keep_f32 = true}};
}

}  // namespace clinfer
