// DetectionOutput: decodes the boxes of a single-shot detector, suppresses overlapping ones and
// lists the best. A GPU needs two launches, or one for a single list. The host takes a few
// microseconds, because it compares the scores with the threshold in memory order and decodes only
// candidates.
#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/arguments.h"
#include "kernels/base/system/work_limit.h"
#include "kernels/detection/box_lists.h"
#include "kernels/shape_util.h"
#include "kernels/storage.h"

namespace clinfer {

namespace {

enum class Code { corner, center_size, corner_size };

struct Settings {
  int64_t classes, priors, prior_size, background, top_k, keep_top_k;
  Code code;
  bool share_location, variance_in_target, normalized, clip_before, clip_after, decrease_label,
      has_objectness;
  float nms_threshold, confidence_threshold, objectness_threshold, width, height;
  int64_t location_classes() const { return share_location ? 1 : classes; }
};

Code code_of(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return std::toupper(c); });
  const size_t dot = text.rfind('.');
  if (dot != std::string::npos) text = text.substr(dot + 1);
  if (text == "CORNER") return Code::corner;
  if (text == "CENTER_SIZE") return Code::center_size;
  if (text == "CORNER_SIZE") return Code::corner_size;
  fail_unsupported("code_type \"" + text + "\"");
}

// Reads the settings, and checks all shapes against them. `shapes` are those of the inputs.
Settings read_settings(const Attributes& a, int opset, const std::vector<Shape>& shapes) {
  check_rank(shapes[0], 2, 2, "the box input");
  check_rank(shapes[1], 2, 2, "the class input");
  check_rank(shapes[2], 3, 3, "the prior input");
  Settings s{};
  s.normalized = a.get_bool("normalized", false);
  s.prior_size = s.normalized ? 4 : 5;
  s.priors = shapes[2][2] / s.prior_size;
  if (s.priors < 1 || shapes[2][2] % s.prior_size != 0)
    fail_model("the prior input " + to_string(shapes[2]) + " does not hold whole boxes of " +
               std::to_string(s.prior_size) + " numbers");
  s.classes = opset >= 8 ? shapes[1][1] / s.priors : a.get_int("num_classes");
  s.background = a.get_int("background_label_id", 0);
  s.top_k = a.get_int("top_k", -1);
  const std::vector<int64_t> keep = a.get_ints("keep_top_k");
  if (keep.empty() || (keep[0] < 1 && keep[0] != -1))
    fail_model("keep_top_k must be -1 or positive");
  s.keep_top_k = keep[0];
  s.code = code_of(a.get_string("code_type", "caffe.PriorBoxParameter.CORNER"));
  s.share_location = a.get_bool("share_location", true);
  s.variance_in_target = a.get_bool("variance_encoded_in_target", false);
  s.clip_before = a.get_bool("clip_before_nms", false);
  s.clip_after = a.get_bool("clip_after_nms", false);
  s.decrease_label = a.get_bool("decrease_label_id", false);
  s.nms_threshold = static_cast<float>(a.get_float("nms_threshold"));
  s.confidence_threshold = static_cast<float>(a.get_float("confidence_threshold", 0));
  s.objectness_threshold = static_cast<float>(a.get_float("objectness_score", 0));
  s.width = static_cast<float>(a.get_int("input_width", 1));
  s.height = static_cast<float>(a.get_int("input_height", 1));
  s.has_objectness = shapes.size() == 5;

  const int64_t images = shapes[0][0];
  if (s.classes < 1 || s.classes > std::numeric_limits<int32_t>::max())
    fail_model("num_classes is out of range");
  const auto expect = [&](size_t i, const Shape& shape, const char* what) {
    if (shapes[i] != shape)
      fail_model(std::string(what) + " has the shape " + to_string(shapes[i]) + ", expected " +
                 to_string(shape));
  };
  expect(0, {images, checked_product(s.priors * 4, s.location_classes())}, "the box input");
  expect(1, {images, checked_product(s.priors, s.classes)}, "the class input");
  if (shapes[2][0] != 1 && shapes[2][0] != images)
    fail_model("the priors' batch does not fit the boxes'");
  if (shapes[2][1] != 2 && !(s.variance_in_target && shapes[2][1] == 1))
    fail_model("the prior input " + to_string(shapes[2]) + " lacks variances");
  if (s.has_objectness) {
    expect(3, {images, checked_product(s.priors, 2)}, "the objectness input");
    expect(4, shapes[0], "the first boxes");
  }
  return s;
}

std::vector<ValueInfo> infer(const ShapeContext& context) {
  check_inputs(context, 3, 5);
  if (context.inputs.size() == 4) fail_model("takes 3 or 5 inputs, has 4");
  std::vector<Shape> shapes;
  for (const ValueInfo& in : context.inputs) shapes.push_back(in.shape);
  const Settings s = read_settings(context.attributes, context.opset, shapes);
  const int64_t each = s.keep_top_k > 0
                           ? s.keep_top_k
                           : checked_product(s.top_k > 0 ? s.top_k : s.priors, s.classes);
  const int64_t rows = checked_product(each, shapes[0][0]);
  checked_product(rows, 7);
  return {{context.inputs[0].type, {1, 1, rows, 7}}};
}

struct Box {
  float x0, y0, x1, y1;
  float area() const { return (x1 - x0) * (y1 - y0); }
};

// The selected boxes, stored in one array per coordinate for vector instructions: comparing each
// candidate with all of them dominates the time if many exceed the confidence threshold.
class KeptBoxes {
 public:
  void add(const Box& box, int32_t label) {
    x0_.push_back(box.x0), y0_.push_back(box.y0), x1_.push_back(box.x1), y1_.push_back(box.y1);
    area_.push_back(box.area()), label_.push_back(label);
  }
  // Returns whether the intersection of `box` with a box of equal label exceeds this part of the
  // union.
  bool overlaps(const Box& box, int32_t label, float threshold) const {
    constexpr size_t kBlock = 32;
    const float area = box.area();
    for (size_t first = 0; first < label_.size(); first += kBlock) {
      const size_t end = std::min(first + kBlock, label_.size());
      int hits = 0;
      for (size_t i = first; i < end; ++i) {
        const float width = std::min(box.x1, x1_[i]) - std::max(box.x0, x0_[i]);
        const float height = std::min(box.y1, y1_[i]) - std::max(box.y0, y0_[i]);
        const float shared = std::max(width, 0.0f) * std::max(height, 0.0f);
        const int over = shared / (area + area_[i] - shared) > threshold,
                  equal = label_[i] == label;
        hits |= over & equal;  // without a branch: compilers make vectors of it
      }
      if (hits != 0) return true;
    }
    return false;
  }

 private:
  std::vector<float> x0_, y0_, x1_, y1_, area_;
  std::vector<int32_t> label_;
};

Box clipped(const Box& b) {
  const auto unit = [](float v) { return std::clamp(v, 0.0f, 1.0f); };
  return {unit(b.x0), unit(b.y0), unit(b.x1), unit(b.y1)};
}

struct Candidate {
  float score;
  int32_t label, prior;
};

struct Detection : Candidate {
  Box box;
};

bool is_better(const Candidate& a, const Candidate& b) {
  if (a.score != b.score) return a.score > b.score;
  return a.label != b.label ? a.label < b.label : a.prior < b.prior;
}

constexpr double kEachBox = 10;  // multiplications, as WorkLimit counts work

// One image of the batch.
class Image {
 public:
  Image(const Settings& s, std::span<const Tensor> inputs, int64_t n) : s_(s) {
    const auto row = [&](size_t i, int64_t image) {
      return inputs[i].data<float>() + image * (inputs[i].elements() / inputs[i].shape()[0]);
    };
    boxes_ = row(0, n);
    scores_ = row(1, n);
    priors_ = row(2, inputs[2].shape()[0] == 1 ? 0 : n);
    variances_ = priors_ + s.priors * s.prior_size;
    if (s.has_objectness) {
      objectness_ = row(3, n);
      first_boxes_ = row(4, n);
      no_object_.resize(static_cast<size_t>(s.classes), 0.0f);
      if (s.background >= 0 && s.background < s.classes)
        no_object_[static_cast<size_t>(s.background)] = 1.0f;
    }
    count_ = s.priors;
    if (!s.normalized)  // a box of image -1 ends the list
      for (int64_t p = s.priors; p-- > 0;)
        if (priors_[p * s.prior_size] == -1.0f) count_ = p;
  }

  // Returns the detections grouped by label, best first.
  std::vector<Detection> detect() {
    if (s_.decrease_label)
      suppress_together();
    else
      suppress_by_class();
    if (s_.keep_top_k > 0 && kept_.size() > static_cast<size_t>(s_.keep_top_k)) {
      std::partial_sort(kept_.begin(), kept_.begin() + s_.keep_top_k, kept_.end(), is_better);
      kept_.resize(static_cast<size_t>(s_.keep_top_k));
    }
    std::sort(kept_.begin(), kept_.end(), [](const Candidate& a, const Candidate& b) {
      return a.label != b.label ? a.label < b.label : is_better(a, b);
    });
    return std::move(kept_);
  }

 private:
  Box box(const Candidate& c) const {
    const int64_t at = c.prior * s_.location_classes() + (s_.share_location ? 0 : c.label);
    const float* p = priors_ + c.prior * s_.prior_size + (s_.normalized ? 0 : 1);
    Box prior = relative({p[0], p[1], p[2], p[3]});
    // The refined boxes are scaled again, as in the OpenVINO versions with which models were
    // checked.
    if (s_.has_objectness) prior = relative(decode(prior, first_boxes_ + at * 4, c.prior));
    return decode(prior, boxes_ + at * 4, c.prior);
  }

  Box relative(const Box& b) const {
    if (s_.normalized) return b;
    return {b.x0 / s_.width, b.y0 / s_.height, b.x1 / s_.width, b.y1 / s_.height};
  }

  Box decode(const Box& prior, const float* delta, int64_t index) const {
    float d[4] = {delta[0], delta[1], delta[2], delta[3]};
    if (!s_.variance_in_target)
      for (int i = 0; i < 4; ++i) d[i] *= variances_[index * 4 + i];
    const float width = prior.x1 - prior.x0, height = prior.y1 - prior.y0;
    Box box;
    if (s_.code == Code::corner) {
      box = {prior.x0 + d[0], prior.y0 + d[1], prior.x1 + d[2], prior.y1 + d[3]};
    } else if (s_.code == Code::corner_size) {
      box = {prior.x0 + d[0] * width, prior.y0 + d[1] * height, prior.x1 + d[2] * width,
             prior.y1 + d[3] * height};
    } else {
      const float x = d[0] * width + (prior.x0 + prior.x1) / 2,
                  y = d[1] * height + (prior.y0 + prior.y1) / 2;
      const float half_width = std::exp(d[2]) * width / 2,
                  half_height = std::exp(d[3]) * height / 2;
      box = {x - half_width, y - half_height, x + half_width, y + half_height};
    }
    return s_.clip_before ? clipped(box) : box;
  }

  // Returns the scores of all classes of a prior. A prior that is not an object is background with
  // certainty.
  const float* scores_of(int64_t prior) const {
    const bool is_object =
        !s_.has_objectness || !(objectness_[prior * 2 + 1] < s_.objectness_threshold);
    return is_object ? scores_ + prior * s_.classes : no_object_.data();
  }

  void keep_best(std::vector<Candidate>& list) const {
    const size_t most =
        s_.top_k < 0 ? list.size() : std::min(list.size(), static_cast<size_t>(s_.top_k));
    if (most < list.size())
      std::nth_element(list.begin(), list.begin() + static_cast<int64_t>(most), list.end(),
                       is_better);
    list.resize(most);
    std::sort(list.begin(), list.end(), is_better);
  }

  // Takes candidates in order of score, and removes those that overlap one of their class in this
  // list too much.
  std::vector<Detection> suppressed(const std::vector<Candidate>& sorted) const {
    std::vector<Detection> kept;
    KeptBoxes boxes;
    for (const Candidate& c : sorted) {
      WorkLimit::may_go_on();
      const Box mine = box(c);
      if (boxes.overlaps(mine, c.label, s_.nms_threshold)) continue;
      boxes.add(mine, c.label);
      kept.push_back({c, mine});
    }
    return kept;
  }

  void suppress_by_class() {
    std::vector<std::vector<Candidate>> lists(static_cast<size_t>(s_.classes));
    for (int64_t p = 0; p < count_; ++p) {
      const float* scores = scores_of(p);
      for (int64_t c = 0; c < s_.classes; ++c)
        if (scores[c] > s_.confidence_threshold && c != s_.background)
          lists[static_cast<size_t>(c)].push_back(
              {scores[c], static_cast<int32_t>(c), static_cast<int32_t>(p)});
    }
    std::vector<std::vector<Detection>> kept(lists.size());
    WorkLimit::for_ranges(
        s_.classes, kEachBox * static_cast<double>(count_), [&](int64_t begin, int64_t end) {
          for (auto c = static_cast<size_t>(begin); c < static_cast<size_t>(end); ++c) {
            keep_best(lists[c]);
            kept[c] = suppressed(lists[c]);
          }
        });
    for (const auto& list : kept) kept_.insert(kept_.end(), list.begin(), list.end());
  }

  // Suppresses as MXNet does: each prior counts for its best class only, and all classes share
  // top_k.
  void suppress_together() {
    std::vector<Candidate> list;
    for (int64_t p = 0; p < count_; ++p) {
      const float* scores = scores_of(p);
      Candidate best{-1, 0, static_cast<int32_t>(p)};
      for (int64_t c = 1; c < s_.classes; ++c)
        if (scores[c] > best.score) best = {scores[c], static_cast<int32_t>(c), best.prior};
      if (best.label > 0 && best.score >= s_.confidence_threshold) list.push_back(best);
    }
    keep_best(list);
    kept_ = suppressed(list);
  }

  const Settings& s_;
  const float *boxes_, *scores_, *priors_, *variances_, *objectness_ = nullptr,
                                                        *first_boxes_ = nullptr;
  int64_t count_;
  std::vector<float> no_object_;
  std::vector<Detection> kept_;
};

void evaluate(const OpDesc& desc, std::span<const Tensor> inputs, std::span<Tensor> outputs) {
  std::vector<Shape> shapes;
  for (const Tensor& in : inputs) shapes.push_back(in.shape());
  const Settings s = read_settings(desc.attributes, desc.opset, shapes);
  float* out = outputs[0].mutable_data<float>();
  int64_t left = outputs[0].shape()[2];
  std::fill_n(out, outputs[0].elements(), 0.0f);
  std::vector<std::vector<Detection>> found(static_cast<size_t>(shapes[0][0]));
  const auto detect = [&](int64_t begin, int64_t end) {
    for (int64_t n = begin; n < end; ++n)
      found[static_cast<size_t>(n)] = Image(s, inputs, n).detect();
  };
  // Shares the classes among threads if there is only one image.
  if (shapes[0][0] == 1)
    detect(0, 1);
  else
    WorkLimit::for_ranges(shapes[0][0], kEachBox * static_cast<double>(s.priors * s.classes),
                          detect);
  for (int64_t n = 0; n < shapes[0][0]; ++n) {
    for (const Detection& d : found[static_cast<size_t>(n)]) {
      if (left == 0) return;
      const Box box = s.clip_after ? clipped(d.box) : d.box;
      const float row[7] = {static_cast<float>(n),
                            static_cast<float>(d.label - (s.decrease_label ? 1 : 0)),
                            d.score,
                            box.x0,
                            box.y0,
                            box.x1,
                            box.y1};
      out = std::copy(std::begin(row), std::end(row), out);
      --left;
    }
  }
  if (left > 0) *out = -1;  // ends the list
}

// ---- kernel ------------------------------------------------------------------------------------

constexpr int64_t kMostImages = 1024;  // each has a counter in local memory
constexpr int64_t kMostAhead = 12;     // keys take two registers each

Settings settings_of(const OpDesc& desc) {
  std::vector<Shape> shapes;
  for (const TensorDesc& in : desc.inputs) shapes.push_back(in.shape);
  return read_settings(desc.attributes, desc.opset, shapes);
}

// The number, lengths and positions of the lists.
struct Lists {
  Lists(const Settings& s, int64_t images)
      : each(s.decrease_label ? 1 : s.classes),
        listed(s.top_k < 0 ? s.priors : std::min(s.priors, s.top_k)),
        most(s.keep_top_k < 0 ? listed : std::min(listed, s.keep_top_k)),
        room(list_room(s.priors)),
        order_room(s.decrease_label ? list_room(most) : 0) {
    constexpr int64_t kKey = 8, kBox = 16, kCount = 4;
    memory.add(images * each * room * kKey);
    order = memory.add(images * order_room * kKey);
    places = memory.add(images * each * most * kBox);
    counts = memory.add(images * each * kCount);
  }
  int64_t each;          // lists of an image
  int64_t listed, most;  // boxes that are compared, and that may remain in a list
  int64_t room, order_room;
  ListMemory memory;
  int64_t order, places, counts;
};

std::string reject(const OpDesc& desc, const DeviceTraits& traits) {
  const Settings s = settings_of(desc);
  const int64_t images = desc.inputs[0].shape[0];
  if (images > kMostImages) return "takes up to " + std::to_string(kMostImages) + " images";
  return reject_lists(desc, traits, desc.own_inputs, s.priors, Lists(s, images).memory);
}

// Returns whether the one launch of a list can write the output.
bool is_single(const Settings& s, int64_t images) {
  const bool has_background = s.background >= 0 && s.background < s.classes;
  return images == 1 && !s.decrease_label && s.classes == 2 && has_background;
}

// Returns whether boxes, priors and variances can be read as aligned vectors of four numbers.
bool is_aligned(const OpDesc& desc, const Settings& s) {
  const auto fits = [&](size_t input) {
    const TensorDesc& in = desc.inputs[input];
    return in.offset % 4 == 0 && in.strides.back() == 1 &&
           std::all_of(in.strides.begin(), in.strides.end() - 1,
                       [](int64_t stride) { return stride % 4 == 0; });
  };
  return s.normalized && fits(0) && fits(2) && (!s.has_objectness || fits(4));
}

struct Args {
#include "kernels/detection/detection_output_args.cl"
};

KernelPlan plan(const OpDesc& desc, const DeviceTraits& traits, const TuningPoint& point) {
  const Settings s = settings_of(desc);
  const int64_t images = desc.inputs[0].shape[0];
  const Lists lists(s, images);
  const TensorDesc &priors = desc.inputs[2], &out = desc.outputs[0];
  const auto stride = [&](size_t input, size_t d) { return to_int(desc.inputs[input].strides[d]); };
  const Args args{.box_n = stride(0, 0),
                  .box_i = stride(0, 1),
                  .score_n = stride(1, 0),
                  .score_i = stride(1, 1),
                  .prior_n = priors.shape[0] == 1 ? 0 : stride(2, 0),
                  .prior_r = stride(2, 1),
                  .prior_i = stride(2, 2),
                  .object_n = s.has_objectness ? stride(3, 0) : 0,
                  .object_i = s.has_objectness ? stride(3, 1) : 0,
                  .first_n = s.has_objectness ? stride(4, 0) : 0,
                  .first_i = s.has_objectness ? stride(4, 1) : 0,
                  .priors = to_int(s.priors),
                  .classes = to_int(s.classes),
                  .lists = to_int(lists.each),
                  .background = to_int(s.background),
                  .rows = to_int(out.shape[2]),
                  .listed = to_int(lists.listed),
                  .most = to_int(lists.most),
                  .keep = to_int(s.keep_top_k > 0 ? s.keep_top_k : kMaxIndex),
                  .own_boxes = !s.share_location,
                  .room = to_int(lists.room),
                  .order_room = to_int(lists.order_room),
                  .order = to_int(lists.order),
                  .places = to_int(lists.places),
                  .counts = to_int(lists.counts),
                  .width = s.width,
                  .height = s.height,
                  .confidence = s.confidence_threshold,
                  .objectness = s.objectness_threshold,
                  .overlap = s.nms_threshold};
  const bool single = is_single(s, images);
  const auto flag = [](bool value) { return std::string(value ? "1" : "0"); };
  // Loads the same number of scores each time, as many as fit.
  const int64_t each = ceil_div(s.priors, point["LOCAL"]);
  const int64_t ahead = ceil_div(each, ceil_div(each, kMostAhead));
  KernelSpec spec;
  spec.source = "detection_output.cl";
  spec.defines = {{"T", storage_name(out.type)},
                  {"BOX_T", storage_name(desc.inputs[0].type)},
                  {"SCORE_T", storage_name(desc.inputs[1].type)},
                  {"PRIOR_T", storage_name(priors.type)},
                  {"CODE", s.code == Code::corner        ? "0"
                           : s.code == Code::center_size ? "1"
                                                         : "2"},
                  {"VARIANCES", flag(!s.variance_in_target)},
                  {"NORMALIZED", flag(s.normalized)},
                  {"OBJECTNESS", flag(s.has_objectness)},
                  {"CLIP_BEFORE", flag(s.clip_before)},
                  {"CLIP_AFTER", flag(s.clip_after)},
                  {"TOGETHER", flag(s.decrease_label)},
                  {"SINGLE", flag(single)},
                  {"ALIGNED", flag(is_aligned(desc, s))},
                  {"IMAGES", std::to_string(images)},
                  {"AHEAD", std::to_string(s.decrease_label ? 1 : ahead)}};
  if (s.has_objectness) {
    spec.defines.emplace_back("OBJECT_T", storage_name(desc.inputs[3].type));
    spec.defines.emplace_back("FIRST_T", storage_name(desc.inputs[4].type));
  }
  for (size_t i = 0; i < desc.own_inputs; ++i)
    spec.arguments.push_back(Argument::input(i, size_of(desc.inputs[i].type)));
  spec.arguments.push_back(Argument::output(0, size_of(out.type)));
  spec.arguments.push_back(Argument::workspace(8));
  spec.arguments.push_back(Argument::value(args));
  KernelPlan plan;
  plan.workspace = lists.memory.bytes();
  for (const bool merge : {false, true}) {
    if (single && merge) break;
    KernelSpec& launch = plan.launches.emplace_back(spec);
    launch.defines.emplace_back("MERGE", flag(merge));
    if (merge)
      set_lists(launch, images, traits, point, static_cast<size_t>(images));
    else
      set_lists(launch, single ? 1 : images * lists.each, traits, point, 1,
                std::max<int64_t>(lists.listed, 1));
  }
  return plan;
}

const KernelFamily kDetectionOutput{"detection_output", 1,   reject, list_space,
                                    list_heuristic,     plan};

}  // namespace

std::vector<OpDef> detection_output_ops() {
  return {{.type = "DetectionOutput",
           .opsets = opset_range(1),
           .infer_shapes = infer,
           .evaluate = evaluate,
           .families = {&kDetectionOutput},
           .layout = LayoutRule::any_to_rows,
           .host_reason = kListsOnHost,
           .keep_f32 = true}};
}

}  // namespace clinfer
