// Networks for element tests.
#include "tests/gst/test_model.h"

#include <filesystem>
#include <vector>

#include "tests/small_ir.h"

namespace clinfer::testing_models {

const TemporaryFolder& folder() {
  static const TemporaryFolder instance;
  return instance;
}

std::string write_file(const std::string& name, const std::string& text) {
  return folder().write(name, text);
}

std::string color_model(const std::string& name, int side) {
  // Written once: an element may be reading it.
  if (const std::string path = folder() / (name + ".xml"); std::filesystem::exists(path))
    return path;
  const int64_t pixels = int64_t{side} * side, inputs = 3 * pixels;
  std::vector<float> weights(static_cast<size_t>(inputs) * 3, 0.0f);
  for (int64_t channel = 0; channel < 3; ++channel)
    for (int64_t i = 0; i < pixels; ++i)
      weights[static_cast<size_t>((channel * pixels + i) * 3 + channel)] =
          0.1f / static_cast<float>(pixels);
  test::SmallIr ir(name);
  const int data = ir.input({1, 3, side, side}, "data"), shape = ir.integers({1, inputs});
  const int flat =
      ir.add("Reshape", 1, "special_zero=\"false\"", {data, shape}, {1, inputs}, "flat");
  ir.result(ir.add("MatMul", 1, "transpose_a=\"false\" transpose_b=\"false\"",
                   {flat, ir.constant({inputs, 3}, weights)}, {1, 3}, "color"));
  return ir.write(folder());
}

std::string color_model() { return color_model("color", 16); }

std::string blocks_model() {
  if (const std::string path = folder() / "blocks.xml"; std::filesystem::exists(path)) return path;
  test::SmallIr ir("blocks");
  ir.result(ir.add("AvgPool", 1,
                   "kernel=\"4,4\" strides=\"4,4\" pads_begin=\"0,0\" pads_end=\"0,0\" "
                   "exclude-pad=\"true\" rounding_type=\"floor\" auto_pad=\"explicit\"",
                   {ir.input({1, 1, 16, 16}, "data")}, {1, 1, 4, 4}, "blocks"));
  return ir.write(folder());
}

std::string same_picture(int channels, int height, int width) {
  const Shape picture{1, channels, height, width};
  test::SmallIr ir("same" + std::to_string(channels));
  ir.result(ir.add("Clamp", 1, "min=\"-1000\" max=\"1000\"", {ir.input(picture)}, picture, "out"));
  return ir.write(folder());
}

}  // namespace clinfer::testing_models
