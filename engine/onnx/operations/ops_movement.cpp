// Translates operations that only move values: changes of shape, slices, pads, blocks.
#include <algorithm>
#include <limits>
#include <numeric>

#include "engine/onnx/op_table.h"
#include "kernels/expand.h"
#include "kernels/shape_util.h"

namespace clinfer {

namespace {

// ---- shapes -------------------------------------------------------------------------------------

void reshape(OnnxNode& n) {
  const Edge shape = n.opset() < 5 ? n.ints(n.ints_of("shape")) : n.in(1);
  n.out(n.reshape_to(n.in(0), shape, n.int_of("allowzero", 0) == 0));
}

void flatten(OnnxNode& n) {
  const Edge x = n.in(0);
  const int64_t rank = n.rank(x), stated = n.int_of("axis", 1),
                axis = stated < 0 ? stated + rank : stated;
  if (axis < 0 || axis > rank) bad_node("axis " + std::to_string(stated) + " is out of range");
  if (axis == 1 && !n.varies(x, 0)) return n.out(n.reshape(x, {0, -1}));
  if (axis == 0) return n.out(n.reshape_to(x, n.ints({1, -1})));
  int64_t trailing = 1;
  for (int64_t d = axis; d < rank; ++d) trailing = checked_product(trailing, n.dim(x, d));
  if (axis == 1) return n.out(n.reshape(x, {0, trailing}));  // there may be no rows
  const Shape& shape = n.shape(x);
  if (trailing == 0)
    return n.out(n.reshape_to(x, n.ints({count(Shape(shape.begin(), shape.begin() + axis)), 0})));
  n.out(n.reshape_to(x, n.ints({-1, trailing})));
}

void transpose(OnnxNode& n) {
  std::vector<int64_t> reversed(static_cast<size_t>(n.rank(n.in(0))));
  std::iota(reversed.rbegin(), reversed.rend(), int64_t{0});
  n.out(n.op("Transpose", 1, {n.in(0), n.ints(n.ints_of("perm", reversed))}));
}

void squeeze(OnnxNode& n) {
  const auto axes = n.ints_since(13, "axes", 1);
  n.out(axes ? n.squeeze(n.in(0), n.axes(*axes, n.rank(n.in(0)))) : n.op("Squeeze", 1, {n.in(0)}));
}

void unsqueeze(OnnxNode& n) {
  const auto axes = n.ints_since(13, "axes", 1);
  if (!axes) bad_node("has no axes");
  const int64_t rank = n.rank(n.in(0)) + static_cast<int64_t>(axes->size());
  std::vector<int64_t> sorted = n.axes(*axes, rank);
  std::sort(sorted.begin(), sorted.end());
  n.out(n.unsqueeze(n.in(0), sorted));
}

void shape(OnnxNode& n) {
  const int64_t rank = n.rank(n.in(0));
  const auto in_range = [&](int64_t at) {
    return std::clamp(at < 0 ? at + rank : at, int64_t{0}, rank);
  };
  const int64_t start = in_range(n.int_of("start", 0)), end = in_range(n.int_of("end", rank));
  const Edge all = n.shape_of(n.in(0));
  n.out(start == 0 && end == rank ? all : n.slice(all, 0, start, std::max(start, end)));
}

void size(OnnxNode& n) { n.out(n.reduce("ReduceProd", n.shape_of(n.in(0)), {0}, false)); }

void expand(OnnxNode& n) {
  n.out(n.op("Broadcast", 3, {n.in(0), n.in(1)}, {{"mode", "bidirectional"}}));
}

void tile(OnnxNode& n) {
  if (n.opset() >= 6) return n.out(n.op("Tile", 1, {n.in(0), n.in(1)}));
  std::vector<int64_t> repeats(static_cast<size_t>(n.rank(n.in(0))), 1);
  repeats[static_cast<size_t>(n.axis(n.need_int(n.in(2), "axis"), n.rank(n.in(0))))] =
      n.need_int(n.in(1), "tiles");
  n.out(n.op("Tile", 1, {n.in(0), n.ints(repeats)}));
}

// ---- parts --------------------------------------------------------------------------------------

void concat(OnnxNode& n) {
  std::vector<Edge> parts;
  for (size_t i = 0; i < n.input_count(); ++i) parts.push_back(n.in(i));
  const int64_t axis = n.axis(
      n.int_of("axis", n.opset() < 4 ? std::optional<int64_t>(1) : std::nullopt), n.rank(n.in(0)));
  n.out(n.concat(parts, axis));
}

void split(OnnxNode& n) {
  const Edge x = n.in(0);
  const int64_t axis = n.axis(n.int_of("axis", 0), n.rank(x));
  const bool computed = n.opset() >= 13 && n.has(1) && n.known(n.in(1)).empty();
  auto lengths = computed ? std::nullopt : n.ints_since(13, "split", 1);
  const auto parts = static_cast<int64_t>(n.output_count());
  if (computed) {
    const Edge first =
        n.op("VariadicSplit", 1, {x, n.integer(axis), n.in(1)}, {}, static_cast<size_t>(parts));
    for (size_t i = 0; i < n.output_count(); ++i) n.out(i, port(first, static_cast<int>(i)));
    return;
  }
  if (!lengths) {  // equal parts; the last may be smaller
    const int64_t size = n.dim(x, axis);
    const int64_t most = (size + parts - 1) / std::max<int64_t>(parts, 1);
    if (most * parts == size) {
      const std::vector<Edge> equal = n.split(x, axis, parts);
      for (size_t i = 0; i < equal.size(); ++i) n.out(i, equal[i]);
      return;
    }
    lengths.emplace();
    for (int64_t left = size; left > 0 || static_cast<int64_t>(lengths->size()) < parts;
         left -= most)
      lengths->push_back(std::clamp(left, int64_t{0}, most));
  }
  if (static_cast<int64_t>(lengths->size()) != parts)
    bad_node("splits into " + std::to_string(lengths->size()) + " parts and has " +
             std::to_string(parts) + " outputs");
  const Edge first =
      n.op("VariadicSplit", 1, {x, n.integer(axis), n.ints(*lengths)}, {}, lengths->size());
  for (size_t i = 0; i < lengths->size(); ++i) n.out(i, port(first, static_cast<int>(i)));
}

void slice(OnnxNode& n) {
  const Edge x = n.in(0);
  if (n.opset() < 10) {
    const std::vector<int64_t> starts = n.ints_of("starts"), ends = n.ints_of("ends");
    std::vector<int64_t> axes(starts.size());
    std::iota(axes.begin(), axes.end(), int64_t{0});
    axes = n.ints_of("axes", axes);
    if (ends.size() != starts.size() || axes.size() != starts.size())
      bad_node("starts, ends and axes differ in length");
    return n.out(n.op("Slice", 8,
                      {x, n.ints(starts), n.ints(ends),
                       n.ints(std::vector<int64_t>(starts.size(), 1)), n.ints(axes)}));
  }
  const Edge starts = n.in(1);
  if (n.rank(starts) != 1) bad_node("the starts must be a list");
  const auto parts = static_cast<size_t>(n.dim(starts, 0));
  const Edge steps = n.has(4) ? n.in(4) : n.ints(std::vector<int64_t>(parts, 1));
  std::vector<Edge> inputs{x, starts, n.in(2), steps};
  if (n.has(3)) inputs.push_back(n.in(3));
  n.out(n.op("Slice", 8, inputs));
}

// ---- pads ---------------------------------------------------------------------------------------

// Pads with wrapping: each end is extended with values of the other end.
Edge wrapped(OnnxNode& n, Edge x, const std::vector<int64_t>& begin,
             const std::vector<int64_t>& end) {
  for (size_t d = 0; d < begin.size(); ++d) {
    const auto axis = static_cast<int64_t>(d);
    const int64_t size = n.dim(x, axis);
    if (size < 1) bad_node("pads an empty dimension");
    if (begin[d] == 0 && end[d] == 0) continue;
    if (size + begin[d] + end[d] < 0) bad_node("pads cut off more than there is");
    std::vector<int64_t> places = index_list(size + begin[d] + end[d]);
    for (size_t i = 0; i < places.size(); ++i)
      places[i] = ((static_cast<int64_t>(i) - begin[d]) % size + size) % size;
    x = n.gather(x, n.ints(places), axis);
  }
  return x;
}

// Writes pads that are computed as operations, because the number of rows that a search finds is
// known only at run time.
void pad_computed(OnnxNode& n, const Edge& x, const std::string& mode, const Edge& value) {
  const int64_t rank = n.rank(x);
  const Edge pads = n.convert(n.in(1), ElementType::i64);
  if (n.dim(pads, 0) != 2 * rank)
    bad_node("has " + std::to_string(n.dim(pads, 0)) + " pads for " + std::to_string(rank) +
             " axes");
  n.out(n.op("Pad", 12, {x, n.slice(pads, 0, 0, rank), n.slice(pads, 0, rank, 2 * rank), value},
             {{"pad_mode", mode}}));
}

void pad(OnnxNode& n) {
  const Edge x = n.in(0);
  const int64_t rank = n.rank(x);
  const std::string mode = n.string_of("mode", "constant");
  const bool listed = n.proto().domain() != kMicrosoft && n.opset() < 11;
  Edge value = n.has(2) ? n.in(2) : n.number_like(x, double{n.float_of("value", 0.f)});
  if (n.rank(value) > 0) value = n.reshape_to(value, n.ints({}));
  value = n.convert(value, n.type(x));
  if (!listed && !n.has(3) && mode != "wrap" && !constant_value(n.in(1)))
    return pad_computed(n, x, mode, value);
  const std::vector<int64_t> pads =
      listed ? n.ints_of(n.opset() < 2 ? "paddings" : "pads") : n.need_ints(n.in(1), "pads");
  std::vector<int64_t> axes(static_cast<size_t>(rank));
  std::iota(axes.begin(), axes.end(), int64_t{0});
  if (n.has(3)) axes = n.axes(n.need_ints(n.in(3), "axes"), rank);
  if (pads.size() != axes.size() * 2)
    bad_node("has " + std::to_string(pads.size()) + " pads for " + std::to_string(axes.size()) +
             " axes");
  for (const int64_t p : pads)
    if (p < -std::numeric_limits<int32_t>::max() || p > std::numeric_limits<int32_t>::max())
      bad_node("pads are out of range");
  std::vector<int64_t> begin(static_cast<size_t>(rank), 0), end(static_cast<size_t>(rank), 0);
  for (size_t i = 0; i < axes.size(); ++i) {
    begin[static_cast<size_t>(axes[i])] = pads[i];
    end[static_cast<size_t>(axes[i])] = pads[i + axes.size()];
  }
  if (mode == "wrap") return n.out(wrapped(n, x, begin, end));
  n.out(n.op("Pad", 12, {x, n.ints(begin), n.ints(end), value}, {{"pad_mode", mode}}));
}

// Cuts or pads both ends of each axis equally to reach the stated size.
void center_crop_pad(OnnxNode& n) {
  Edge x = n.in(0);
  const int64_t rank = n.rank(x);
  std::vector<int64_t> all(static_cast<size_t>(rank));
  std::iota(all.begin(), all.end(), int64_t{0});
  const std::vector<int64_t> axes = n.axes(n.ints_of("axes", all), rank),
                             sizes = n.need_ints(n.in(1), "the shape");
  if (axes.size() != sizes.size()) bad_node("shape and axes differ in length");
  std::vector<int64_t> begin(static_cast<size_t>(rank), 0), end(begin);
  for (size_t i = 0; i < axes.size(); ++i) {
    const auto d = static_cast<size_t>(axes[i]);
    if (sizes[i] < 0) bad_node("the shape has a negative size");
    const int64_t more = sizes[i] - n.dim(x, axes[i]);
    begin[d] = more >= 0 ? more / 2 : -((-more) / 2);
    end[d] = more - begin[d];
  }
  n.out(n.op("Pad", 12, {x, n.ints(begin), n.ints(end), n.number_like(x, 0)},
             {{"pad_mode", "constant"}}));
}

// ---- blocks -------------------------------------------------------------------------------------

void depth_to_space(OnnxNode& n) {
  const std::string mode = n.string_of("mode", "DCR");
  if (mode != "DCR" && mode != "CRD")
    bad_node("mode=\"" + printable(mode) + "\" is none of DCR, CRD");
  n.out(n.op("DepthToSpace", 1, {n.in(0)},
             {{"block_size", std::to_string(n.int_of("blocksize"))},
              {"mode", mode == "DCR" ? "blocks_first" : "depth_first"}}));
}

void space_to_depth(OnnxNode& n) {
  const std::string mode = n.string_of("mode", "DCR");
  if (mode != "DCR" && mode != "CRD")
    bad_node("mode=\"" + printable(mode) + "\" is none of DCR, CRD");
  n.out(n.op("SpaceToDepth", 1, {n.in(0)},
             {{"block_size", std::to_string(n.int_of("blocksize"))},
              {"mode", mode == "DCR" ? "blocks_first" : "depth_first"}}));
}

void col2im(OnnxNode& n) {
  const std::vector<int64_t> size = n.need_ints(n.in(1), "the size of the image"),
                             block = n.need_ints(n.in(2), "the size of the blocks");
  if (size.size() != 2 || block.size() != 2) return onnx_col2im_any(n, size, block);
  const std::vector<int64_t> pads = n.ints_of("pads", std::vector<int64_t>(4, 0));
  if (pads.size() != 4) bad_node("pads must list 4 numbers");
  const std::vector<int64_t> ones{1, 1};
  n.out(n.reshape(n.op("Col2Im", 15, {n.in(0), n.ints(size), n.ints(block)},
                       {{"strides", text_of(n.ints_of("strides", ones))},
                        {"dilations", text_of(n.ints_of("dilations", ones))},
                        {"pads_begin", text_of(std::vector<int64_t>{pads[0], pads[1]})},
                        {"pads_end", text_of(std::vector<int64_t>{pads[2], pads[3]})}}),
                  {0, 0, 0, 0}));
}

void reverse_sequence(OnnxNode& n) {
  n.out(n.op("ReverseSequence", 1, {n.in(0), n.in(1)},
             {{"batch_axis", std::to_string(n.int_of("batch_axis", 1))},
              {"seq_axis", std::to_string(n.int_of("time_axis", 0))}}));
}

}  // namespace

std::vector<OnnxOp> onnx_movement_ops() {
  return {{"CenterCropPad", center_crop_pad},
          {"Col2Im", col2im},
          {"Concat", concat},
          {"DepthToSpace", depth_to_space},
          {"Expand", expand},
          {"Flatten", flatten},
          {"Pad", pad},
          {"Reshape", reshape},
          {"ReverseSequence", reverse_sequence},
          {"Shape", shape},
          {"Size", size},
          {"Slice", slice},
          {"SpaceToDepth", space_to_depth},
          {"Split", split},
          {"Squeeze", squeeze},
          {"Tile", tile},
          {"Transpose", transpose},
          {"Unsqueeze", unsqueeze},
          {"Pad", pad, kMicrosoft}};
}

}  // namespace clinfer
