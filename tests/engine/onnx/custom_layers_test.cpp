// Nodes of an ONNX model that a user's kernel computes.
#include <gtest/gtest.h>

#include "engine/engine.h"
#include "tests/engine/onnx/onnx_builder.h"
#include "tests/engine/test_files.h"

namespace clinfer {
namespace {

constexpr const char* kDescription = R"(<CustomLayer name="Bend" type="SimpleGPU" version="1">
<Kernel entry="bend"><Source filename="bend.cl"/>
<Define name="FACTOR" type="float" param="factor"/><Define name="STEPS" type="int[]" param="steps"/></Kernel>
<Buffers><Tensor arg-index="0" type="input" port-index="0"/>
<Tensor arg-index="1" type="output" port-index="0"/></Buffers></CustomLayer>)";
constexpr const char* kKernel =
    "__kernel void bend(const __global float* in, __global float* out) {\n"
    "  const size_t i = get_global_id(0);\n  out[i] = in[i] * FACTOR + STEPS[1];\n}";

OnnxBuilder bent(const Shape& shape) {
  OnnxBuilder b;
  b.import("my.domain", 3);
  b.input("x", shape);
  onnx::NodeProto& node = b.node("Bend", {"x"}, {"bent"}, "my.domain");
  onnx::AttributeProto& factor = *node.add_attribute();
  factor.set_name("factor");
  factor.set_type(onnx::AttributeProto::FLOAT);
  factor.set_f(0.5f);
  onnx::AttributeProto& steps = *node.add_attribute();
  steps.set_name("steps");
  steps.set_type(onnx::AttributeProto::INTS);
  steps.add_ints(7);
  steps.add_ints(-3);
  b.node("Relu", {"bent"}, {"y"});
  b.output("y");
  return b;
}

TEST(OnnxCustomLayers, NodesOfAForeignDomainRun) {
  const TemporaryFolder folder;
  const std::string file = folder.write("bend.xml", kDescription);
  folder.write("bend.cl", kKernel);
  for (const int64_t batch : {int64_t{1}, int64_t{-1}}) {
    const std::string path = folder.write("bent" + std::to_string(batch) + ".onnx",
                                          bent({batch, 4}).model().SerializeAsString());
    Config config;
    config.cache_dir = folder / "cache";
    config.precision = Precision::f32;
    config.batch = batch < 0 ? 2 : 0;
    const auto compiled = CompiledModel::compile(Model::read(path, {}, file), config);
    const auto request = compiled->create_request();
    const int64_t images = batch < 0 ? 2 : 1;
    std::vector<float> values;
    for (int64_t i = 0; i < 4 * images; ++i) values.push_back(static_cast<float>(4 * i));
    request->set_input(0, Tensor::of(ElementType::f32, {images, 4}, values));
    request->start();
    request->wait();
    const std::vector<float> got = request->output(0).to_floats();
    ASSERT_EQ(got.size(), values.size());
    for (size_t i = 0; i < got.size(); ++i) EXPECT_EQ(got[i], std::max(values[i] / 2 - 3, 0.0f));
    try {
      Model::read(path);
      ADD_FAILURE() << "without its description";
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find("Bend (my.domain"), std::string::npos)
          << error.what();
      EXPECT_NE(std::string(error.what()).find("CONFIG_FILE"), std::string::npos);
    }
  }
}

}  // namespace
}  // namespace clinfer
