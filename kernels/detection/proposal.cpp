// Proposal computes the regions of a region proposal network: moves anchors by the deltas, selects
// the best by score, and suppresses overlapping ones. Equal scores are ordered by (row, column,
// anchor).
#include <algorithm>
#include <cmath>

#include "kernels/arguments.h"
#include "kernels/base/system/work_limit.h"
#include "kernels/detection/box_lists.h"
#include "kernels/shape_util.h"
#include "kernels/storage.h"

namespace clinfer {

namespace {

struct Settings {
  int64_t before, after;  // maximum numbers of boxes before and after suppression
  float base, stride, least, overlap, size_scale, coordinate_scale;
  std::vector<float> ratios, scales;
  bool clip_before, clip_after, normalize, tensorflow;
  float pixel() const {
    return tensorflow ? 0.0f : 1.0f;
  }  // a box includes its last pixel, except in TensorFlow's form
  int64_t anchors() const { return static_cast<int64_t>(ratios.size() * scales.size()); }
};

Settings read_settings(const Attributes& a) {
  const auto number = [&](const char* name, std::optional<double> otherwise = {}) {
    return static_cast<float>(a.get_float(name, otherwise));
  };
  const auto list = [&](const char* name) {
    std::vector<float> values;
    for (double v : a.get_floats(name)) values.push_back(static_cast<float>(v));
    if (values.empty() || values.size() > 1024)
      fail_model("attribute " + std::string(name) + " has " + std::to_string(values.size()) +
                 " entries");
    return values;
  };
  Settings s{};
  s.before = a.get_int("pre_nms_topn");
  s.after = a.get_int("post_nms_topn");
  s.base = number("base_size");
  s.stride = number("feat_stride");
  s.least = number("min_size");
  s.overlap = number("nms_thresh");
  s.size_scale = number("box_size_scale", 1);
  s.coordinate_scale = number("box_coordinate_scale", 1);
  s.ratios = list("ratio");
  s.scales = list("scale");
  s.clip_before = a.get_bool("clip_before_nms", true);
  s.clip_after = a.get_bool("clip_after_nms", false);
  s.normalize = a.get_bool("normalize", false);
  s.tensorflow = a.get_string("framework", "") == "tensorflow";
  if (s.before < 1 || s.after < 1) fail_model("pre_nms_topn and post_nms_topn must be positive");
  return s;
}

std::vector<ValueInfo> infer(const ShapeContext& context) {
  check_inputs(context, 3, 3);
  const Shape &scores = context.inputs[0].shape, &deltas = context.inputs[1].shape;
  check_rank(scores, 4, 4, "the scores");
  check_rank(deltas, 4, 4, "the deltas");
  const Settings s = read_settings(context.attributes);
  const Shape expected_scores{scores[0], 2 * s.anchors(), scores[2], scores[3]},
      expected_deltas{scores[0], 4 * s.anchors(), scores[2], scores[3]};
  if (scores != expected_scores || deltas != expected_deltas)
    fail_model("scores " + to_string(scores) + " and deltas " + to_string(deltas) + " do not fit " +
               std::to_string(s.anchors()) + " anchors");
  const int64_t numbers = checked_count(context.inputs[2].shape);
  if (numbers != 3 && numbers != 4)
    fail_model("the picture's size must be height, width and one or two scales");
  const int64_t rows = checked_product(scores[0], s.after);
  checked_product(rows, 5);
  std::vector<ValueInfo> outputs{{context.inputs[0].type, {rows, 5}}};
  if (context.opset >= 4) outputs.push_back({context.inputs[0].type, {rows}});
  return outputs;
}

struct Box {
  float x0, y0, x1, y1, score;
  int32_t index = 0;
};

// Returns the boxes around the cell at (0, 0), by ratio, then scale.
std::vector<Box> make_anchors(const Settings& s) {
  std::vector<Box> anchors;
  const float area = s.base * s.base,
              centre = 0.5f * (s.base - s.pixel()) - (s.tensorflow ? s.base * 0.5f : 0.0f);
  for (float ratio : s.ratios) {
    float width = std::sqrt(area / ratio);
    if (!s.tensorflow) width = std::round(width);
    const float height = s.tensorflow ? width * ratio : std::round(width * ratio);
    for (float scale : s.scales) {
      const float half_width = 0.5f * (width * scale - s.pixel()),
                  half_height = 0.5f * (height * scale - s.pixel());
      anchors.push_back({centre - half_width, centre - half_height, centre + half_width,
                         centre + half_height, 0});
    }
  }
  return anchors;
}

struct Picture {
  float height, width, scale_y, scale_x;
};

Box moved(const Settings& s, const Picture& picture, Box box, const float* delta, int64_t step) {
  if (s.tensorflow) {
    box.x0 = std::clamp(box.x0, 0.0f, picture.width);
    box.y0 = std::clamp(box.y0, 0.0f, picture.height);
    box.x1 = std::clamp(box.x1, 0.0f, picture.width);
    box.y1 = std::clamp(box.y1, 0.0f, picture.height);
  }
  const float width = box.x1 - box.x0 + s.pixel(), height = box.y1 - box.y0 + s.pixel();
  const float x = delta[0] / s.coordinate_scale * width + box.x0 + 0.5f * width;
  const float y = delta[step] / s.coordinate_scale * height + box.y0 + 0.5f * height;
  const float half_width = 0.5f * std::exp(delta[2 * step] / s.size_scale) * width;
  const float half_height = 0.5f * std::exp(delta[3 * step] / s.size_scale) * height;
  return {x - half_width, y - half_height, x + half_width, y + half_height, box.score, box.index};
}

Box clipped(const Box& b, const Picture& picture, float pixel) {
  const auto within = [&](float v, float size) {
    return std::max(0.0f, std::min(v, size - pixel));
  };
  return {within(b.x0, picture.width),
          within(b.y0, picture.height),
          within(b.x1, picture.width),
          within(b.y1, picture.height),
          b.score,
          b.index};
}

std::vector<Box> propose(const Settings& s, const Picture& picture, const std::vector<Box>& anchors,
                         const float* scores, const float* deltas, int64_t rows, int64_t columns) {
  std::vector<Box> boxes;
  boxes.reserve(static_cast<size_t>(rows * columns) * anchors.size());
  const int64_t plane = rows * columns;
  for (int64_t h = 0; h < rows; ++h)
    for (int64_t w = 0; w < columns; ++w) {
      // TensorFlow's deltas are in the order y, x, height, width.
      const float x = static_cast<float>(s.tensorflow ? h : w) * s.stride,
                  y = static_cast<float>(s.tensorflow ? w : h) * s.stride;
      for (size_t a = 0; a < anchors.size(); ++a) {
        const int64_t at = h * columns + w, anchor = static_cast<int64_t>(a);
        Box box = moved(s, picture,
                        {anchors[a].x0 + x, anchors[a].y0 + y, anchors[a].x1 + x, anchors[a].y1 + y,
                         0, static_cast<int32_t>(boxes.size())},
                        deltas + anchor * 4 * plane + at, plane);
        if (s.clip_before) box = clipped(box, picture, s.pixel());
        const bool is_large = box.x1 - box.x0 + s.pixel() >= s.least * picture.scale_x &&
                              box.y1 - box.y0 + s.pixel() >= s.least * picture.scale_y;
        const float score = scores[anchor * plane + at];
        box.score = is_large && !std::isnan(score) ? score : 0.0f;
        boxes.push_back(box);
      }
    }
  const auto most = static_cast<int64_t>(std::min(boxes.size(), static_cast<size_t>(s.before)));
  std::partial_sort(boxes.begin(), boxes.begin() + most, boxes.end(),
                    [](const Box& a, const Box& b) {
                      return a.score != b.score ? a.score > b.score : a.index < b.index;
                    });
  boxes.resize(static_cast<size_t>(most));
  return boxes;
}

std::vector<Box> suppressed(const Settings& s, const std::vector<Box>& boxes) {
  const auto area = [&](const Box& b) {
    return (b.x1 - b.x0 + s.pixel()) * (b.y1 - b.y0 + s.pixel());
  };
  std::vector<Box> kept;
  for (const Box& b : boxes) {
    if (kept.size() == static_cast<size_t>(s.after)) break;
    WorkLimit::may_go_on();
    const bool free = std::none_of(kept.begin(), kept.end(), [&](const Box& k) {
      const float width = std::max(std::min(b.x1, k.x1) - std::max(b.x0, k.x0) + s.pixel(), 0.0f);
      const float height = std::max(std::min(b.y1, k.y1) - std::max(b.y0, k.y0) + s.pixel(), 0.0f);
      const float shared = width * height;
      return shared > s.overlap * (area(b) + area(k) - shared);
    });
    if (free) kept.push_back(b);
  }
  return kept;
}

void evaluate(const OpDesc& desc, std::span<const Tensor> inputs, std::span<Tensor> outputs) {
  const Settings s = read_settings(desc.attributes);
  const Shape& shape = inputs[0].shape();
  const std::vector<float> size = inputs[2].to_floats();
  Picture picture{size[0], size[1], size[2], size.size() == 4 ? size[3] : size[2]};
  if (s.tensorflow) std::swap(picture.height, picture.width);  // there, x runs along the rows
  if (!(picture.height >= 0 && picture.width >= 0))
    throw Error(ErrorCode::bad_argument, "the picture's size is negative");
  const std::vector<Box> anchors = make_anchors(s);
  const int64_t plane = shape[2] * shape[3];
  for (Tensor& output : outputs) std::fill_n(output.mutable_data<float>(), output.elements(), 0.0f);
  const auto propose_image = [&](int64_t n) {
    const float* scores =
        // The scores of being an object.
        inputs[0].data<float>() + (n * 2 + 1) * s.anchors() * plane;
    const float* deltas = inputs[1].data<float>() + n * 4 * s.anchors() * plane;
    const std::vector<Box> kept =
        suppressed(s, propose(s, picture, anchors, scores, deltas, shape[2], shape[3]));
    float* to = outputs[0].mutable_data<float>() + n * s.after * 5;
    for (size_t i = 0; i < kept.size(); ++i) {
      const Box b = s.clip_after ? clipped(kept[i], picture, 0) : kept[i];
      const float x_scale = s.normalize ? picture.width : 1.0f,
                  y_scale = s.normalize ? picture.height : 1.0f;
      for (float v :
           {static_cast<float>(n), b.x0 / x_scale, b.y0 / y_scale, b.x1 / x_scale, b.y1 / y_scale})
        *to++ = v;
      if (outputs.size() > 1)
        outputs[1].mutable_data<float>()[n * s.after + static_cast<int64_t>(i)] = b.score;
    }
    if (kept.size() < static_cast<size_t>(s.after)) *to = -1;  // ends the list
  };
  constexpr double kEachBox = 20;  // multiplications
  WorkLimit::for_ranges(shape[0], kEachBox * static_cast<double>(s.anchors() * plane),
                        [&](int64_t begin, int64_t end) {
                          for (int64_t n = begin; n < end; ++n) propose_image(n);
                        });
}

// ---- kernel ------------------------------------------------------------------------------------

// The lengths and positions of the lists, one for each image.
struct Lists {
  Lists(const Settings& s, const Shape& scores)
      : boxes(s.anchors() * scores[2] * scores[3]),
        most(std::min({boxes, s.before, s.after})),
        room(list_room(boxes)) {
    constexpr int64_t kKey = 8, kBox = 16;
    memory.add(scores[0] * room * kKey);
    places = memory.add(scores[0] * most * kBox);
  }
  int64_t boxes, most;  // most: boxes that may remain in a list
  int64_t room;
  ListMemory memory;
  int64_t places;
};

std::string reject(const OpDesc& desc, const DeviceTraits& traits) {
  const Lists lists(read_settings(desc.attributes), desc.inputs[0].shape);
  if (!desc.inputs[2].is_row_major()) return "the picture's size is scattered";
  return reject_lists(desc, traits, desc.own_inputs, lists.boxes, lists.memory);
}

struct Args {
#include "kernels/detection/proposal_args.cl"
};

KernelPlan plan(const OpDesc& desc, const DeviceTraits& traits, const TuningPoint& point) {
  const Settings s = read_settings(desc.attributes);
  const TensorDesc &scores = desc.inputs[0], &deltas = desc.inputs[1], &size = desc.inputs[2];
  const Lists lists(s, scores.shape);
  const bool probabilities = desc.outputs.size() > 1;
  const Args args{.score_n = to_int(scores.strides[0]),
                  .score_c = to_int(scores.strides[1]),
                  .score_h = to_int(scores.strides[2]),
                  .score_w = to_int(scores.strides[3]),
                  .delta_n = to_int(deltas.strides[0]),
                  .delta_c = to_int(deltas.strides[1]),
                  .delta_h = to_int(deltas.strides[2]),
                  .delta_w = to_int(deltas.strides[3]),
                  .anchors = to_int(s.anchors()),
                  .rows = to_int(scores.shape[2]),
                  .columns = to_int(scores.shape[3]),
                  .scale_x = to_int(size.elements() - 1),
                  .before = to_int(std::min(s.before, kMaxIndex)),
                  .after = to_int(s.after),
                  .most = to_int(lists.most),
                  .room = to_int(lists.room),
                  .places = to_int(lists.places),
                  .stride = s.stride,
                  .least = s.least,
                  .overlap = s.overlap,
                  .size_scale = s.size_scale,
                  .coordinate_scale = s.coordinate_scale};
  const auto flag = [](bool value) { return std::string(value ? "1" : "0"); };
  KernelPlan plan;
  plan.packed.push_back([s] {
    std::vector<float> values;
    for (const Box& b : make_anchors(s)) values.insert(values.end(), {b.x0, b.y0, b.x1, b.y1});
    return to_bytes(values, ElementType::f32);
  });
  KernelSpec spec;
  spec.source = "proposal.cl";
  spec.defines = {{"T", storage_name(desc.outputs[0].type)}, {"SCORE_T", storage_name(scores.type)},
                  {"DELTA_T", storage_name(deltas.type)},    {"SIZE_T", storage_name(size.type)},
                  {"PROBABILITIES", flag(probabilities)},    {"CLIP_BEFORE", flag(s.clip_before)},
                  {"CLIP_AFTER", flag(s.clip_after)},        {"NORMALIZE", flag(s.normalize)},
                  {"TENSORFLOW", flag(s.tensorflow)}};
  for (size_t i = 0; i < desc.own_inputs; ++i)
    spec.arguments.push_back(Argument::input(i, size_of(desc.inputs[i].type)));
  spec.arguments.push_back(Argument::packed(0, sizeof(float)));
  for (size_t i = 0; i < desc.outputs.size(); ++i)
    spec.arguments.push_back(Argument::output(i, size_of(desc.outputs[i].type)));
  spec.arguments.push_back(Argument::workspace(8));
  spec.arguments.push_back(Argument::value(args));
  set_lists(spec, scores.shape[0], traits, point);
  plan.workspace = lists.memory.bytes();
  plan.launches.push_back(std::move(spec));
  return plan;
}

const KernelFamily kProposal{"proposal", 1, reject, list_space, list_heuristic, plan};

}  // namespace

std::vector<OpDef> proposal_ops() {
  return {{.type = "Proposal",
           .opsets = opset_range(1),
           .infer_shapes = infer,
           .evaluate = evaluate,
           .families = {&kProposal},
           .layout = LayoutRule::any_to_rows,
           .host_reason = kListsOnHost,
           .keep_f32 = true}};
}

}  // namespace clinfer
