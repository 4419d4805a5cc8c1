// Which device computes which layer, by what each has kernels for; and devices that an application
// chooses. Some tests need two devices (POCL_DEVICES="basic pthread").
#include "engine/query.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "tests/engine/ball_model.h"
#include "tests/error_of.h"
#include "tests/small_ir.h"
#include "tests/temporary_folder.h"

namespace clinfer {
namespace {

using test::SmallIr;

Config on(const std::string& device) {
  Config config;
  config.device = device;
  config.precision = Precision::f32;
  return config;
}

using test::error_of;

const Shape kQueryShape{1, 2, 4, 4};

// Four layers in a row: x -> max(x, 0) -> `middle` -> + 1 -> * 2.
SmallIr row(const std::string& middle, int opset) {
  SmallIr ir;
  const int one = ir.constant({1, 1, 1, 1}, {1}), two = ir.constant({1, 1, 1, 1}, {2});
  const int first = ir.add("ReLU", 1, "", {ir.input(kQueryShape)}, kQueryShape, "first");
  const int second = ir.add(middle, opset, "", {first}, kQueryShape, "second");
  const int third = ir.add("Add", 1, "", {second, one}, kQueryShape, "third");
  ir.result(ir.add("Multiply", 1, "", {third, two}, kQueryShape, "fourth"));
  return ir;
}

float computed(CompiledModel& model, float value) {
  const auto request = model.create_request();
  request->set_input(0, Tensor::of(ElementType::f32, kQueryShape, std::vector<float>(32, value)));
  request->start();
  request->wait();
  return request->output(0).data<float>()[31];
}

TEST(Query, ListsLayersWithTheirDevice) {
  const auto layers = query_model(row("Tanh", 1).read(), on("CPU"));
  ASSERT_EQ(layers.size(), 4u);
  const char* const names[] = {"first", "second", "third", "fourth"};
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(layers[i].layer, names[i]);
    EXPECT_EQ(layers[i].device, "CPU.0");
    EXPECT_EQ(layers[i].reason, "");
    EXPECT_FALSE(layers[i].on_host);
  }
  EXPECT_EQ(layers[1].type, "Tanh");
  EXPECT_EQ(devices_of(layers).at("fourth"), "CPU.0");
}

TEST(Query, SaysWhatTheHostComputes) {
  SmallIr ir;
  const int axis = ir.constant({1}, {1});
  const int number = ir.add("Convert", 1, "destination_type=\"i64\"", {axis}, {1});
  const int sums = ir.add("CumSum", 3, "", {ir.input({1, 4}), number}, {1, 4}, "sums");
  ir.result(ir.add("ReLU", 1, "", {sums}, {1, 4}, "relu"));
  const auto layers = query_model(ir.read(), on("CPU"));
  ASSERT_EQ(layers.size(), 2u);
  EXPECT_TRUE(layers[0].on_host);
  EXPECT_NE(layers[0].reason, "");
  EXPECT_FALSE(layers[1].on_host);
}

TEST(Query, RefusesWhatThereIsNot) {
  const auto model = row("Tanh", 1).read();
  EXPECT_NE(error_of([&] { query_model(model, on("GPU.77")); }).find("GPU.77"), std::string::npos);
  EXPECT_NE(error_of([&] {
              with_devices(model, {{"fifth", "CPU"}});
            }).find("no layer \"fifth\""),
            std::string::npos);
  EXPECT_NE(error_of([&] {
              CompiledModel::compile(with_devices(model, {{"first", "CPU"}}), on("HETERO:CPU"));
            }).find("has no affinity"),
            std::string::npos);
  Config config = on("CPU");
  config.set("CPU.CONFIG_FILE", "none.xml");
  EXPECT_NE(error_of([&] { CompiledModel::compile(model, config); }).find("device=HETERO"),
            std::string::npos);
}

class QueryTwo : public testing::Test {
 protected:
  void SetUp() override {
    if (list_devices().devices.size() < 2)
      GTEST_SKIP() << "POCL_DEVICES=\"basic pthread\" gives two devices; here is one";
  }
};

TEST_F(QueryTwo, HeteroObeysTheDevicesThatItIsGiven) {
  const auto model = row("Tanh", 1).read();
  DeviceByLayer devices = devices_of(query_model(model, on("CPU.0,CPU.1")));
  EXPECT_EQ(devices.at("second"), "CPU.0");
  devices["second"] = devices["third"] = "CPU.1";
  const auto placed = with_devices(model, devices);
  EXPECT_EQ(devices_of(query_model(placed, on("HETERO:CPU.0,CPU.1"))), devices);
  const auto compiled = CompiledModel::compile(placed, on("HETERO:CPU.0,CPU.1"));
  EXPECT_EQ(compiled->devices().size(), 3u) << "a part for each run of layers on one device";
  EXPECT_NEAR(computed(*compiled, 0.5f), 2 * (std::tanh(.5f) + 1), 1e-5);
  for (const DeviceUse& use : compiled->devices()) EXPECT_EQ(use.inferences->load(), 1u);
}

// A kernel of the user's that only the second device has: the layer goes there, small as it is.
TEST_F(QueryTwo, KernelsOfTheUserMayBeForOneDevice) {
  const TemporaryFolder folder;
  folder.write("k.cl", R"(__kernel void half_of(const __global INPUT0_TYPE* in,
                                                 __global OUTPUT0_TYPE* out) {
    out[get_global_id(0)] = in[get_global_id(0)] / 2;
  })");
  const std::string file = folder.write("halves.xml", R"(
<CustomLayer name="Halves" type="SimpleGPU" version="1">
  <Kernel entry="half_of"><Source filename="k.cl"/></Kernel>
  <Buffers>
    <Tensor arg-index="0" type="input" port-index="0" format="BFYX"/>
    <Tensor arg-index="1" type="output" port-index="0" format="BFYX"/>
  </Buffers>
  <WorkSizes global="B*F*Y*X"/>
</CustomLayer>)");
  const SmallIr ir = row("Halves", 0);
  EXPECT_NE(error_of([&] { ir.read(); }).find("Halves"), std::string::npos);
  Config config = on("HETERO:CPU.0,CPU.1");
  config.set("CPU.1.KEY_CONFIG_FILE", file);
  EXPECT_EQ(config.config_files(), file);
  const auto model = ir.read({}, config.config_files());
  const auto layers = query_model(model, config);
  ASSERT_EQ(layers.size(), 4u);
  EXPECT_EQ(layers[0].device, "CPU.0");
  EXPECT_EQ(layers[1].device, "CPU.1");
  EXPECT_EQ(layers[1].reason, "");
  const auto compiled = CompiledModel::compile(model, config);
  EXPECT_GT(compiled->devices().size(), 1u);
  EXPECT_EQ(computed(*compiled, 3), 5);
  // For both devices, the first one has it.
  Config both = on("HETERO:CPU.0,CPU.1");
  both.set("CONFIG_FILE", file);
  EXPECT_EQ(query_model(ir.read({}, both.config_files()), both)[1].device, "CPU.0");
}

}  // namespace
}  // namespace clinfer
