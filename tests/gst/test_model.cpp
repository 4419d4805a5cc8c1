// Networks for element tests.
#include "tests/gst/test_model.h"

#include <filesystem>
#include <vector>

namespace clinfer::testing_models {
namespace {

std::string dims(std::initializer_list<int> shape) {
  std::string text;
  for (int d : shape) text += "<dim>" + std::to_string(d) + "</dim>";
  return text;
}

std::string port(int id, const char* precision, std::initializer_list<int> shape) {
  return "<port id=\"" + std::to_string(id) + "\" precision=\"" + precision + "\">" + dims(shape) +
         "</port>";
}

}  // namespace

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
  const int pixels = side * side, inputs = 3 * pixels;
  const std::string s = std::to_string(side), n = std::to_string(inputs);
  std::vector<float> weights(static_cast<size_t>(inputs) * 3, 0.0f);
  for (int channel = 0; channel < 3; ++channel)
    for (int i = 0; i < pixels; ++i)
      weights[static_cast<size_t>((channel * pixels + i) * 3 + channel)] =
          0.1f / static_cast<float>(pixels);
  const long long shape[] = {1, inputs};
  std::string bin(reinterpret_cast<const char*>(shape), sizeof shape);
  bin.append(reinterpret_cast<const char*>(weights.data()), weights.size() * 4);
  write_file(name + ".bin", bin);
  const std::string xml =
      "<?xml version=\"1.0\"?>\n<net name=\"" + name +
      "\" version=\"11\">\n<layers>\n"
      "<layer id=\"0\" name=\"data\" type=\"Parameter\" version=\"opset1\"><data shape=\"1,3," +
      s + "," + s +
      "\" element_type=\"f32\"/>"
      "<output>" +
      port(0, "FP32", {1, 3, side, side}) +
      "</output></layer>\n"
      "<layer id=\"1\" name=\"shape\" type=\"Const\" version=\"opset1\"><data element_type=\"i64\" "
      "shape=\"2\" offset=\"0\" size=\"16\"/>"
      "<output>" +
      port(0, "I64", {2}) +
      "</output></layer>\n"
      "<layer id=\"2\" name=\"flat\" type=\"Reshape\" version=\"opset1\"><data "
      "special_zero=\"false\"/>"
      "<input>" +
      port(0, "FP32", {1, 3, side, side}) + port(1, "I64", {2}) + "</input><output>" +
      port(2, "FP32", {1, inputs}) +
      "</output></layer>\n"
      "<layer id=\"3\" name=\"weights\" type=\"Const\" version=\"opset1\"><data "
      "element_type=\"f32\" shape=\"" +
      n + ",3\" offset=\"16\" size=\"" + std::to_string(inputs * 12) +
      "\"/>"
      "<output>" +
      port(0, "FP32", {inputs, 3}) +
      "</output></layer>\n"
      "<layer id=\"4\" name=\"color\" type=\"MatMul\" version=\"opset1\"><data "
      "transpose_a=\"false\" transpose_b=\"false\"/>"
      "<input>" +
      port(0, "FP32", {1, inputs}) + port(1, "FP32", {inputs, 3}) + "</input><output>" +
      port(2, "FP32", {1, 3}) +
      "</output></layer>\n"
      "<layer id=\"5\" name=\"result\" type=\"Result\" version=\"opset1\"><input>" +
      port(0, "FP32", {1, 3}) +
      "</input></layer>\n"
      "</layers>\n<edges>\n"
      "<edge from-layer=\"0\" from-port=\"0\" to-layer=\"2\" to-port=\"0\"/>\n"
      "<edge from-layer=\"1\" from-port=\"0\" to-layer=\"2\" to-port=\"1\"/>\n"
      "<edge from-layer=\"2\" from-port=\"2\" to-layer=\"4\" to-port=\"0\"/>\n"
      "<edge from-layer=\"3\" from-port=\"0\" to-layer=\"4\" to-port=\"1\"/>\n"
      "<edge from-layer=\"4\" from-port=\"2\" to-layer=\"5\" to-port=\"0\"/>\n"
      "</edges>\n</net>\n";
  return write_file(name + ".xml", xml);
}

std::string color_model() { return color_model("color", 16); }

std::string blocks_model() {
  if (const std::string path = folder() / "blocks.xml"; std::filesystem::exists(path)) return path;
  write_file("blocks.bin", "");
  return write_file(
      "blocks.xml",
      "<?xml version=\"1.0\"?>\n<net name=\"blocks\" version=\"11\">\n<layers>\n"
      "<layer id=\"0\" name=\"data\" type=\"Parameter\" version=\"opset1\"><data "
      "shape=\"1,1,16,16\" element_type=\"f32\"/><output>" +
          port(0, "FP32", {1, 1, 16, 16}) +
          "</output></layer>\n"
          "<layer id=\"1\" name=\"blocks\" type=\"AvgPool\" version=\"opset1\"><data "
          "kernel=\"4,4\" strides=\"4,4\" pads_begin=\"0,0\" pads_end=\"0,0\" "
          "exclude-pad=\"true\" rounding_type=\"floor\" auto_pad=\"explicit\"/><input>" +
          port(0, "FP32", {1, 1, 16, 16}) + "</input><output>" + port(1, "FP32", {1, 1, 4, 4}) +
          "</output></layer>\n"
          "<layer id=\"2\" name=\"result\" type=\"Result\" version=\"opset1\"><input>" +
          port(0, "FP32", {1, 1, 4, 4}) +
          "</input></layer>\n"
          "</layers>\n<edges>\n"
          "<edge from-layer=\"0\" from-port=\"0\" to-layer=\"1\" to-port=\"0\"/>\n"
          "<edge from-layer=\"1\" from-port=\"1\" to-layer=\"2\" to-port=\"0\"/>\n"
          "</edges>\n</net>\n");
}

std::string same_picture(int channels, int height, int width) {
  std::string dims;
  for (const int d : {1, channels, height, width}) dims += "<dim>" + std::to_string(d) + "</dim>";
  const std::string shape =
      "1," + std::to_string(channels) + "," + std::to_string(height) + "," + std::to_string(width);
  const std::string name = "same" + std::to_string(channels) + ".xml";
  write_file(name.substr(0, 5) + ".bin", "");
  return write_file(name, R"(<net name="same" version="11"><layers>
    <layer id="0" name="in" type="Parameter" version="opset1"><data element_type="f32" shape=")" +
                              shape + R"("/>
      <output><port id="0" precision="FP32">)" +
                              dims +
                              R"(</port></output></layer>
    <layer id="1" name="out" type="Clamp" version="opset1"><data min="-1000" max="1000"/>
      <input><port id="0">)" + dims +
                              R"(</port></input>
      <output><port id="1" precision="FP32">)" +
                              dims + R"(</port></output></layer>
    <layer id="2" name="result" type="Result" version="opset1"><input><port id="0">)" +
                              dims + R"(</port></input></layer></layers><edges>
    <edge from-layer="0" from-port="0" to-layer="1" to-port="0"/>
    <edge from-layer="1" from-port="1" to-layer="2" to-port="0"/></edges></net>)");
}

}  // namespace clinfer::testing_models
