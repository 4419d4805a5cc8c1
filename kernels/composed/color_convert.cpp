// NV12toRGB, NV12toBGR, I420toRGB, I420toBGR: conversions of pictures in planes, in models that
// include their preprocessing. Channels last, BT.601 of limited range.
#include <array>

#include "kernels/expand.h"
#include "kernels/shape_util.h"

namespace clinfer {

namespace {

struct Picture {
  int64_t images, height, width;
};

// Returns the planes as values [images, height, width, channels]: Y, then UV or U and V of half the
// size.
std::vector<size_t> planes_of(Expansion& x, bool interleaved, Picture& p) {
  const ShapeContext& context = x.context();
  const size_t most = interleaved ? 2 : 3;
  check_inputs(context, 1, most);
  const size_t given = context.inputs.size();
  if (given != 1 && given != most) fail_model("takes one plane or " + std::to_string(most));
  for (const ValueInfo& input : context.inputs) {
    check_rank(input.shape, 4, 4, "a plane");
    if (input.type != context.inputs[0].type) fail_model("the planes differ in type");
    if (!is_float(input.type) && input.type != ElementType::u8)
      fail_model("the planes are neither bytes nor floats");
  }
  const Shape& first = x.shape(0);
  p = {first[0], given == 1 ? first[1] / 3 * 2 : first[1], first[2]};
  if (first[3] != 1 || p.height % 2 != 0 || p.width % 2 != 0 || (given == 1 && first[1] % 3 != 0))
    fail_model("a picture cannot have planes of the shape " + to_string(first));
  const int64_t channels = interleaved ? 2 : 1;
  const Shape half{p.images, p.height / 2, p.width / 2, channels};
  if (given == most) {
    std::vector<size_t> planes{0};
    for (size_t i = 1; i < most; ++i) {
      if (x.shape(i) != half)
        fail_model("the colours " + to_string(x.shape(i)) + " do not fit the picture " +
                   to_string(first));
      planes.push_back(i);
    }
    return planes;
  }
  const int64_t luma = p.height * p.width, each = luma / 4 * channels;
  const size_t flat = x.reshape(0, {p.images, first[1] * p.width});
  std::vector<size_t> planes{
      x.reshape(x.slice(flat, 1, 0, luma), {p.images, p.height, p.width, 1})};
  for (int64_t at = luma; at < luma + luma / 2; at += each)
    planes.push_back(x.reshape(x.slice(flat, 1, at, at + each), half));
  return planes;
}

// Repeats each value of a plane of half the size for the four pixels that share it.
size_t doubled(Expansion& x, size_t plane, const Picture& p) {
  const int64_t channels = x.shape(plane)[3];
  const size_t apart = x.reshape(plane, {p.images, p.height / 2, 1, p.width / 2, 1, channels});
  const size_t wide =
      x.step("Broadcast", 3, {apart, x.ints({p.images, p.height / 2, 2, p.width / 2, 2, channels})},
             {{"mode", "numpy"}});
  return x.reshape(wide, {p.images, p.height, p.width, channels});
}

void convert_color(Expansion& x) {
  const std::string& type = x.context().type;
  Picture p{};
  std::vector<size_t> parts = planes_of(x, type.starts_with("NV12"), p);
  const ElementType element = x.info(0).type;
  for (size_t& part : parts) part = x.convert(part, ElementType::f32);
  for (size_t i = 1; i < parts.size(); ++i) parts[i] = doubled(x, parts[i], p);
  const size_t yuv = x.step("Concat", 1, parts, {{"axis", "3"}});
  // Rows: the contributions of Y - 16, U - 128 and V - 128 to red, green and blue.
  std::array<std::array<float, 3>, 3> by{
      {{1.164f, 1.164f, 1.164f}, {0, -0.391f, 2.018f}, {1.596f, -0.813f, 0}}};
  std::vector<float> matrix;
  for (auto& row : by) {
    if (type.ends_with("BGR")) std::swap(row[0], row[2]);
    matrix.insert(matrix.end(), row.begin(), row.end());
  }
  const size_t centred = x.step(
      "Subtract", 1, {yuv, x.constant(Tensor::of<float>(ElementType::f32, {3}, {16, 128, 128}))});
  const size_t color = x.step(
      "MatMul", 1, {centred, x.constant(Tensor::of<float>(ElementType::f32, {3, 3}, matrix))},
      {{"transpose_a", "false"}, {"transpose_b", "false"}});
  size_t out = x.step("Clamp", 1, {color}, {{"min", "0"}, {"max", "255"}});
  if (!is_float(element)) out = x.step("Round", 5, {out}, {{"mode", "half_away_from_zero"}});
  x.outputs = {x.convert(out, element)};
}

}  // namespace

std::vector<OpDef> color_convert_ops() {
  std::vector<OpDef> ops;
  for (const char* type : {"NV12toRGB", "NV12toBGR", "I420toRGB", "I420toBGR"})
    ops.push_back(expanded_op(type, opset_range(8), convert_color));
  return ops;
}

}  // namespace clinfer
