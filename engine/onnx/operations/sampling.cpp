// Writes operations that the engine lacks as gathers and sums: grid sampling of volumes, Col2Im of
// any number of dimensions, and RoiAlign with the largest of weighted pixels.
#include "engine/onnx/op_table.h"
#include "kernels/expand.h"
#include "kernels/shape_util.h"

namespace clinfer {

namespace {

Edge floor_of(OnnxNode& n, const Edge& e) { return n.op("Floor", 1, {e}); }

// Returns 1 where a place is inside 0..size-1, else 0.
Edge is_inside(OnnxNode& n, const Edge& place, int64_t size) {
  const Edge low = n.op("GreaterEqual", 1, {place, n.number(0)}),
             high = n.op("LessEqual", 1, {place, n.number(static_cast<float>(size - 1))});
  return n.convert(n.op("LogicalAnd", 1, {low, high}), ElementType::f32);
}

// Reflects places outside at the border.
Edge reflected(OnnxNode& n, const Edge& place, int64_t size, bool corners) {
  const float low = corners ? 0.f : -0.5f;
  const float span = corners ? static_cast<float>(size - 1) : static_cast<float>(size);
  if (span <= 0) return n.multiply(place, n.number(0));
  const Edge off = n.op("Abs", 1, {n.subtract(place, n.number(low))});
  const Edge turns = floor_of(n, n.divide(off, n.number(span)));
  const Edge rest = n.subtract(off, n.multiply(turns, n.number(span)));
  const Edge odd = n.op("FloorMod", 1, {turns, n.number(2)});
  const Edge back =
      n.op("Select", 1,
           {n.op("Greater", 1, {odd, n.number(0.5f)}), n.subtract(n.number(span), rest), rest});
  return n.clamp(n.add(back, n.number(low)), 0, static_cast<double>(size - 1));
}

}  // namespace

// x is [N,C,D,H,W]; grid is [N,d,h,w,3] with x, y, z from -1 to 1.
void onnx_grid_sample_volumes(OnnxNode& n) {
  const Edge x = n.in(0), grid = n.in(1);
  const Shape volume = n.shape(x, 5), out = n.shape(grid, 5);
  const std::string mode = n.string_of("mode", "linear"),
                    padding = n.string_of("padding_mode", "zeros");
  const bool corners = n.int_of("align_corners", 0) != 0, nearest = mode == "nearest";
  if (!nearest && mode != "linear" && mode != "bilinear")
    unsupported_node("mode=\"" + printable(mode) + "\" of volumes is not supported");
  if (padding != "zeros" && padding != "border" && padding != "reflection")
    bad_node("padding_mode=\"" + printable(padding) + "\" is none of zeros, border, reflection");
  if (out[4] != 3) bad_node("the grid must have three numbers for each place");
  if (volume[2] < 1 || volume[3] < 1 || volume[4] < 1) bad_node("the volume is empty");
  const int64_t places = checked_count({out[1], out[2], out[3]});
  const Edge list = n.reshape(grid, {0, places, 3});
  struct Axis {
    Edge first, share;  // the lower neighbour, and the distance to it
    int64_t size, stride;
  };
  std::vector<Axis> axes;
  for (size_t d = 0; d < 3; ++d) {  // depth, height, width: z, y, x
    const int64_t size = volume[2 + d], at = 2 - static_cast<int64_t>(d);
    const Edge from = n.squeeze(n.slice(list, 2, at, at + 1), {2});  // [N, places]
    const float factor = (corners ? static_cast<float>(size - 1) : static_cast<float>(size)) / 2;
    Edge place =
        n.add(n.multiply(from, n.number(factor)), n.number(static_cast<float>(size - 1) / 2));
    if (padding == "border") place = n.clamp(place, 0, static_cast<double>(size - 1));
    if (padding == "reflection") place = reflected(n, place, size, corners);
    const Edge first = nearest ? n.round(place) : floor_of(n, place);
    axes.push_back({first, n.subtract(place, first), size,
                    d == 0   ? volume[3] * volume[4]
                    : d == 1 ? volume[4]
                             : 1});
  }
  const Edge flat = n.reshape(x, {0, 0, -1});
  Edge sum;
  for (int corner = 0; corner < (nearest ? 1 : 8); ++corner) {
    Edge index, weight;
    for (size_t d = 0; d < 3; ++d) {
      const Axis& axis = axes[d];
      const bool upper = (corner >> d & 1) != 0;
      const Edge place = upper ? n.add(axis.first, n.number(1)) : axis.first;
      Edge part = is_inside(n, place, axis.size);
      if (!nearest)
        part = n.multiply(part, upper ? axis.share : n.subtract(n.number(1), axis.share));
      weight = weight.node ? n.multiply(weight, part) : part;
      // The products are added as integers, because f32 does not represent large sums exactly.
      const Edge whole = n.multiply(
          n.convert(n.clamp(place, 0, static_cast<double>(axis.size - 1)), ElementType::i32),
          n.constant(Tensor::of(ElementType::i32, {}, std::vector<int64_t>{axis.stride})));
      index = index.node ? n.add(index, whole) : whole;
    }
    const Edge values =
        n.op("Gather", 8, {flat, index, n.integer(2)}, {{"batch_dims", "1"}});  // [N,C,places]
    const Edge part = n.multiply(values, n.unsqueeze(weight, {1}));
    sum = sum.node ? n.add(sum, part) : part;
  }
  n.out(n.reshape(sum, {0, 0, out[1], out[2], out[3]}));
}

// Writes Col2Im of any number of dimensions as a transposed convolution with one weight of 1 for
// each place of a block.
void onnx_col2im_any(OnnxNode& n, const std::vector<int64_t>& size,
                     const std::vector<int64_t>& block) {
  const size_t dims = size.size();
  if (dims < 1 || dims > 3) unsupported_node("images have 1 to 3 dimensions");
  const std::vector<int64_t> ones(dims, 1),
      strides = n.ints_of("strides", ones), dilations = n.ints_of("dilations", ones),
      pads = n.ints_of("pads", std::vector<int64_t>(2 * dims, 0));
  if (block.size() != dims || strides.size() != dims || dilations.size() != dims ||
      pads.size() != 2 * dims)
    bad_node("block, strides, dilations and pads must be of " + std::to_string(dims) +
             " dimensions");
  std::vector<int64_t> blocks, more;
  for (size_t d = 0; d < dims; ++d) {
    for (const int64_t value : {size[d], block[d], strides[d], dilations[d]})
      if (value < 1 || value > (int64_t{1} << 20)) bad_node("a size is out of range");
    if (pads[d] < 0 || pads[dims + d] < 0) bad_node("pads are below 0");
    const int64_t extent = dilations[d] * (block[d] - 1) + 1,
                  room = size[d] + pads[d] + pads[dims + d] - extent;
    if (room < 0) bad_node("a block is larger than the image");
    blocks.push_back(room / strides[d] + 1);
    more.push_back(room % strides[d]);
  }
  const int64_t places = checked_count(block), all = checked_count(blocks);
  const Shape given = n.shape(n.in(0), 3);
  if (places < 1 || given[1] % places != 0 || given[2] != all)
    bad_node("the input " + to_string(given) + " does not hold such blocks");
  const int64_t channels = given[1] / places;
  Tensor weights = table({places, places});
  for (int64_t i = 0; i < places; ++i) weights.mutable_data<float>()[i * places + i] = 1;
  Shape shape{places, 1};
  shape.insert(shape.end(), block.begin(), block.end());
  std::vector<int64_t> rows{-1, places}, result{-1, channels};
  rows.insert(rows.end(), blocks.begin(), blocks.end());
  result.insert(result.end(), size.begin(), size.end());
  const Edge image =
      n.op("ConvolutionBackpropData", 1,
           {n.reshape_to(n.in(0), n.ints(rows)), n.constant(weights.reshaped(shape))},
           {{"strides", text_of(strides)},
            {"dilations", text_of(dilations)},
            {"pads_begin", text_of(std::vector<int64_t>(pads.begin(), pads.begin() + dims))},
            {"pads_end", text_of(std::vector<int64_t>(pads.begin() + dims, pads.end()))},
            {"output_padding", text_of(more)},
            {"auto_pad", "explicit"}});
  n.out(n.reshape_to(image, n.ints(result)));
}

// Takes the largest of the weighted pixels around the samples of each bin. Refuses
// sampling_ratio=0, with which the number of samples depends on the regions.
void onnx_roi_align_largest(OnnxNode& n, bool half_pixel) {
  const Edge x = n.in(0), regions = n.in(1);
  const Shape shape = n.shape(x, 4);
  const int64_t height = n.int_of("output_height", 1), width = n.int_of("output_width", 1),
                samples = n.int_of("sampling_ratio", 0);
  if (samples == 0) unsupported_node("mode=\"max\" with sampling_ratio=0 is not supported");
  constexpr int64_t kMost = 1 << 12;
  for (const int64_t value : {height, width, samples})
    if (value < 1 || value > kMost) bad_node("a size is out of range");
  if (n.dim(regions, 1) != 4) bad_node("regions have 4 numbers");
  const Edge corners = n.subtract(n.multiply(regions, n.number(n.float_of("spatial_scale", 1.f))),
                                  n.number(half_pixel ? 0.5f : 0.f));
  // The two pixels around each sample along one axis, as integers, and their weights; [regions, n].
  struct Pixels {
    Edge low, high, of_low, of_high;
  };
  const auto along = [&](int64_t first, int64_t bins, int64_t size) {
    const Edge begin = n.slice(corners, 1, first, first + 1),
               end = n.slice(corners, 1, first + 2, first + 3);
    Edge length = n.subtract(end, begin);
    if (!half_pixel) length = n.op("Maximum", 1, {length, n.number(1)});
    std::vector<float> shares;
    for (int64_t k = 0; k < bins * samples; ++k)
      shares.push_back((static_cast<float>(k) + 0.5f) / static_cast<float>(bins * samples));
    const Edge share =
        n.constant(Tensor::of(ElementType::f32, {1, static_cast<int64_t>(shares.size())}, shares));
    const Edge place = n.add(begin, n.multiply(length, share));
    const auto last = static_cast<float>(size - 1);
    const Edge inside =
        n.convert(n.op("LogicalAnd", 1,
                       {n.op("GreaterEqual", 1, {place, n.number(-1)}),
                        n.op("LessEqual", 1, {place, n.number(static_cast<float>(size))})}),
                  ElementType::f32);
    const Edge held = n.clamp(place, 0, double{last}), low = floor_of(n, held);
    const Edge high = n.clamp(n.add(low, n.number(1)), 0, double{last});
    const Edge share_of_high = n.subtract(held, low);
    return Pixels{n.convert(low, ElementType::i32), n.convert(high, ElementType::i32),
                  n.multiply(n.subtract(n.number(1), share_of_high), inside),
                  n.multiply(share_of_high, inside)};
  };
  if (shape[2] < 1 || shape[3] < 1) bad_node("the picture is empty");
  const Pixels rows = along(1, height, shape[2]), columns = along(0, width, shape[3]);
  const auto integer = [&](int64_t value) {
    return n.constant(Tensor::of(ElementType::i32, {}, std::vector<int64_t>{value}));
  };
  const Edge pixels = n.reshape_to(n.transpose(x, {0, 2, 3, 1}), n.ints({-1, shape[1]}));
  const Edge image = n.unsqueeze(n.multiply(n.convert(n.in(2), ElementType::i32),
                                            integer(checked_count({shape[2], shape[3]}))),
                                 {1, 2});
  Edge best;
  for (const auto& [row, of_row] : {std::pair{rows.low, rows.of_low}, {rows.high, rows.of_high}})
    for (const auto& [column, of_column] :
         {std::pair{columns.low, columns.of_low}, {columns.high, columns.of_high}}) {
      const Edge at = n.add(n.add(image, n.multiply(n.unsqueeze(row, {2}), integer(shape[3]))),
                            n.unsqueeze(column, {1}));
      const Edge weight = n.multiply(n.unsqueeze(of_row, {2}), n.unsqueeze(of_column, {1}));
      const Edge value = n.multiply(n.gather(pixels, at, 0), n.unsqueeze(weight, {3}));
      best = best.node ? n.op("Maximum", 1, {best, value}) : value;
    }
  best = n.reshape_to(best, n.ints({-1, height, samples, width, samples, shape[1]}));
  n.out(n.transpose(n.reduce("ReduceMax", best, {2, 4}, false), {0, 3, 1, 2}));
}

}  // namespace clinfer
