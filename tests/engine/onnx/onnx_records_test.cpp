// A layer has one tuning record, whether its network comes from an ONNX file or from the IR that
// OpenVINO's converter makes of that.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "engine/passes/passes.h"
#include "engine/plan/plan.h"
#include "engine/runtime/model.h"
#include "tests/engine/onnx/onnx_builder.h"
#include "tests/engine/passes/pass_counter.h"
#include "tests/temporary_folder.h"
#include "tuning/op_key.h"

namespace clinfer {
namespace {

namespace fs = std::filesystem;

std::string network() {
  OnnxBuilder b;
  b.input("x", {1, 3, 8, 8});
  b.initialiser(OnnxBuilder::floats("w", {4, 3, 3, 3}, std::vector<float>(108, 0.1f)));
  b.initialiser(OnnxBuilder::floats("bias", {4}, {1, 2, 3, 4}));
  b.initialiser(OnnxBuilder::floats("fc", {4, 2}, {1, 2, 3, 4, 5, 6, 7, 8}));
  set(b.node("Conv", {"x", "w", "bias"}, {"c"}), "pads", std::vector<int64_t>{1, 1, 1, 1});
  b.node("Relu", {"c"}, {"r"});
  set(b.node("MaxPool", {"r"}, {"p"}), "kernel_shape", std::vector<int64_t>{8, 8});
  b.node("Flatten", {"p"}, {"f"});
  b.node("MatMul", {"f", "fc"}, {"m"});
  b.node("Softmax", {"m"}, {"y"});
  b.output("y");
  return b.bytes();
}

// An IR of the model, with the attributes that OpenVINO 2026.4 states for each layer.
class Ir {
 public:
  using Shapes = std::vector<Shape>;

  // Inputs get the ports from 0 on, outputs those that follow.
  void layer(int id, const std::string& type, const std::string& data, const Shapes& inputs,
             const Shapes& outputs, const char* precision = "FP32", int opset = 1) {
    layers_ += "<layer id='" + std::to_string(id) + "' name='" + type + std::to_string(id) +
               "' type='" + type + "' version='opset" + std::to_string(opset) + "'><data " + data +
               "/>";
    int port = 0;
    for (const auto& [shapes, word] : {std::pair{inputs, "input"}, std::pair{outputs, "output"}}) {
      if (shapes.empty()) continue;
      layers_ += std::string("<") + word + ">";
      for (const Shape& shape : shapes) {
        layers_ += "<port id='" + std::to_string(port++) + "' precision='" + precision + "'>";
        for (int64_t dim : shape) layers_ += "<dim>" + std::to_string(dim) + "</dim>";
        layers_ += "</port>";
      }
      layers_ += std::string("</") + word + ">";
    }
    layers_ += "</layer>";
  }
  void edge(int from, int port, int to, int input) {
    edges_ += "<edge from-layer='" + std::to_string(from) + "' from-port='" + std::to_string(port) +
              "' to-layer='" + std::to_string(to) + "' to-port='" + std::to_string(input) + "'/>";
  }
  std::string xml() const {
    return "<?xml version='1.0'?><net name='n' version='11'><layers>" + layers_ +
           "</layers><edges>" + edges_ + "</edges></net>";
  }

 private:
  std::string layers_, edges_;
};

std::string same_network() {
  Ir ir;
  const Shape picture{1, 3, 8, 8}, map{1, 4, 8, 8}, pooled{1, 4, 1, 1};
  ir.layer(0, "Parameter", "shape='1,3,8,8' element_type='f32'", {}, {picture});
  ir.layer(1, "Const", "element_type='f32' shape='4,3,3,3' offset='0' size='432'", {},
           {{4, 3, 3, 3}});
  ir.layer(2, "Convolution",
           "strides='1, 1' dilations='1, 1' pads_begin='1, 1' pads_end='1, 1' auto_pad='explicit'",
           {picture, {4, 3, 3, 3}}, {map});
  ir.layer(3, "Const", "element_type='f32' shape='1,4,1,1' offset='432' size='16'", {}, {pooled});
  ir.layer(4, "Add", "auto_broadcast='numpy'", {map, pooled}, {map});
  ir.layer(5, "ReLU", "", {map}, {map});
  ir.layer(6, "MaxPool",
           "strides='1, 1' dilations='1, 1' pads_begin='0, 0' pads_end='0, 0' kernel='8, 8' "
           "rounding_type='floor' auto_pad='explicit' index_element_type='i64' axis='0'",
           {map}, {pooled, pooled}, "FP32", 8);
  ir.layer(7, "Const", "element_type='i64' shape='2' offset='448' size='16'", {}, {{2}}, "I64");
  ir.layer(8, "Reshape", "special_zero='true'", {pooled, {2}}, {{1, 4}});
  ir.layer(9, "Const", "element_type='f32' shape='2,4' offset='464' size='32'", {}, {{2, 4}});
  ir.layer(10, "MatMul", "transpose_a='false' transpose_b='true'", {{1, 4}, {2, 4}}, {{1, 2}});
  ir.layer(11, "SoftMax", "axis='-1'", {{1, 2}}, {{1, 2}}, "FP32", 8);
  ir.layer(12, "Result", "", {{1, 2}}, {});
  ir.edge(0, 0, 2, 0);
  ir.edge(1, 0, 2, 1);
  ir.edge(2, 2, 4, 0);
  ir.edge(3, 0, 4, 1);
  ir.edge(4, 2, 5, 0);
  ir.edge(5, 1, 6, 0);
  ir.edge(6, 1, 8, 0);
  ir.edge(7, 0, 8, 1);
  ir.edge(8, 2, 10, 0);
  ir.edge(9, 0, 10, 1);
  ir.edge(10, 2, 11, 0);
  ir.edge(11, 1, 12, 0);
  return ir.xml();
}

void write_weights(const fs::path& path) {
  std::ofstream file(path, std::ios::binary);
  const auto write = [&](const auto& values) {
    file.write(reinterpret_cast<const char*>(values.data()),
               static_cast<std::streamsize>(values.size() * sizeof(values[0])));
  };
  write(std::vector<float>(108, 0.1f));
  write(std::vector<float>{1, 2, 3, 4});
  write(std::vector<int64_t>{1, 4});
  write(std::vector<float>{1, 3, 5, 7, 2, 4, 6, 8});
}

std::vector<std::string> keys_of(const std::string& path) {
  const auto model = Model::read(path);
  auto graph = dynamic_cast<const ReadModel&>(*model).graph().clone();
  DeviceTraits traits;
  traits.is_cpu = true;
  run_passes(*graph, {traits, ElementType::f32});
  std::vector<std::string> keys;
  for (const Step& step : make_plan(std::move(graph), traits).steps)
    keys.push_back(op_key(step.desc));
  return keys;
}

TEST(OnnxRecords, AreThoseOfTheSameNetworkAsIr) {
  const fs::path folder = fs::path(::testing::TempDir()) / ("keys_" + std::to_string(getpid()));
  fs::create_directories(folder);
  std::ofstream(folder / "m.onnx", std::ios::binary) << network();
  std::ofstream(folder / "m.xml") << same_network();
  write_weights(folder / "m.bin");
  const auto of_onnx = keys_of((folder / "m.onnx").string());
  EXPECT_GE(of_onnx.size(), 4u);
  EXPECT_EQ(of_onnx, keys_of((folder / "m.xml").string()));
  fs::remove_all(folder);
}

TEST(OnnxRecords, AWarmLoadRunsNoPass) {
  const TemporaryFolder folder;
  Config config;
  config.cache_dir = folder / "cache";
  const std::string path = folder.write("m.onnx", network());
  test::PassCounter counter;
  std::vector<float> first;
  for (const bool warm : {false, true}) {
    const auto compiled = CompiledModel::compile(Model::read(path), config);
    EXPECT_EQ(counter.take_runs() == 0, warm);
    const auto request = compiled->create_request();
    request->set_input(
        0, Tensor::of<float>(ElementType::f32, {1, 3, 8, 8}, std::vector<float>(192, 0.25f)));
    request->start();
    request->wait();
    if (!warm) first = request->output(0).to_floats();
    EXPECT_EQ(request->output(0).to_floats(), first);
  }
}

}  // namespace
}  // namespace clinfer
