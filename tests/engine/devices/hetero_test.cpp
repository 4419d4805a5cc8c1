// HETERO: layers to devices, the network in parts, and their inference.
#include <cstring>
#include <filesystem>
#include <regex>
#include <set>
#include <thread>

#include "engine/devices/partition.h"
#include "tests/engine/devices/two_devices.h"
#include "tests/engine/graph/graph_text.h"
#include "tests/engine/passes/pass_counter.h"
#include "tests/says.h"

namespace clinfer {
namespace {

using test::graph_of;
using test::infer;
using test::says;
using test::text_of;

// The devices of the layers that compute, in order: "0 1 0".
std::string text_of(const Graph& graph, const Affinities& affinities) {
  std::string text;
  for (const auto& node : graph.nodes())
    if (const auto found = affinities.find(node.get()); found != affinities.end())
      text += (text.empty() ? "" : " ") + std::to_string(found->second);
  return text;
}

// Devices as stated by position, for layers that compute.
Affinities devices(const Graph& graph, const std::string& digits) {
  Affinities affinities;
  size_t at = 0;
  for (const auto& node : graph.nodes())
    if (node->def) affinities[node.get()] = static_cast<size_t>(digits.at(at++) - '0');
  return affinities;
}

std::string sources_of(const Subgraph& part) {
  std::string text;
  for (const auto& source : part.inputs)
    text += (text.empty() ? "" : " ") +
            (source.of_network ? "in" : std::to_string(source.part) + ".") +
            std::to_string(source.index);
  return text;
}

constexpr const char* kDiamond = R"(
  x = parameter f32[1,3,8,8]
  a = ReLU-1(x)
  b = Sigmoid-1(a)
  c = Tanh-1(a)
  d = Add-1(b, c)
  e = Exp-1(d)
  result d
  result e
  result x)";

TEST(Split, CutsWhereTheDeviceChanges) {
  const auto graph = graph_of(kDiamond);
  const Partition partition = split(*graph, devices(*graph, "01010"));
  ASSERT_EQ(partition.parts.size(), 3u);
  EXPECT_EQ(text_of(*partition.parts[0].graph),
            "a = ReLU(in0)\nb = Tanh(a)\nresult a\nresult b\nresult in0\n");
  EXPECT_EQ(sources_of(partition.parts[0]), "in0");
  EXPECT_EQ(text_of(*partition.parts[1].graph), "a = Sigmoid(in0)\nb = Add(a, in1)\nresult b\n");
  EXPECT_EQ(sources_of(partition.parts[1]), "0.0 0.1");
  EXPECT_EQ(partition.parts[1].device, 1u);
  EXPECT_EQ(text_of(*partition.parts[2].graph), "a = Exp(in0)\nresult a\n");
  EXPECT_EQ(sources_of(partition.parts[2]), "1.0");
  ASSERT_EQ(partition.outputs.size(), 3u);
  EXPECT_EQ(partition.outputs[0].part, 1u);
  EXPECT_EQ(partition.outputs[1].part, 2u);
  EXPECT_EQ(partition.outputs[2].part, 0u);  // an input that is a result
  EXPECT_EQ(partition.outputs[2].index, 2u);
}

TEST(Split, OneDeviceIsOnePart) {
  const auto graph = graph_of(kDiamond);
  const Partition partition = split(*graph, devices(*graph, "11111"));
  ASSERT_EQ(partition.parts.size(), 1u);
  EXPECT_EQ(partition.parts[0].device, 1u);
  EXPECT_EQ(text_of(*partition.parts[0].graph), text_of(*graph));
}

TEST(Split, WhatIsReadTwiceIsHandedOnOnce) {
  const auto graph = graph_of(R"(
    x = parameter f32[1,3,8,8]
    w = f32[] 2
    a = Multiply-1(x, w)
    b = Add-1(a, w)
    c = Subtract-1(a, b)
    result c)");
  const Partition partition = split(*graph, devices(*graph, "011"));
  ASSERT_EQ(partition.parts.size(), 2u);
  EXPECT_EQ(sources_of(partition.parts[1]), "0.0");
  EXPECT_EQ(text_of(*partition.parts[1].graph),
            "a = Add(in0, 2)\nb = Subtract(in0, a)\nresult b\n");
}

TEST(Split, InseparableLayersAreOnePart) {
  const auto graph = graph_of(kDiamond);
  std::unordered_set<const Node*> last_three;
  for (const auto& node : graph->nodes())
    if (node->is("Tanh") || node->is("Add") || node->is("Exp")) last_three.insert(node.get());
  const Partition partition = split(*graph, devices(*graph, "01000"), last_three);
  ASSERT_EQ(partition.parts.size(), 3u);  // ReLU; Sigmoid; the three
  EXPECT_EQ(text_of(*partition.parts[2].graph),
            "a = Tanh(in0)\nb = Add(in1, a)\nc = Exp(b)\nresult b\nresult c\n");
}

TEST(AutomaticAffinities, WhatHasNoKernelsRunsOnTheNextDevice) {
  const auto graph = graph_of(R"(
    x = parameter f32[1,16,400,400]
    a = ReLU-1(x)
    b = Sigmoid-1(a)
    s = i64[4] 1 16 160000 1
    r = Reshape-1(b, s)
    c = Tanh-1(r)
    d = Exp-1(c)
    e = Sigmoid-1(d)
    result e)");
  const auto takes = [](const std::string& refused) {
    return [refused](const Node& node, size_t device) {
      return device != 0 || refused.find(node.type) == std::string::npos;
    };
  };
  const auto found = [&](const HasKernels& has_kernels) {
    return text_of(*graph, automatic_affinities(*graph, 2, has_kernels));
  };
  EXPECT_EQ(found(takes("")), "0 0 0 0 0 0");
  // A Reshape follows what it moves; Tanh lies between layers of the other device.
  EXPECT_EQ(found(takes("Sigmoid")), "0 1 1 0 0 1");
  EXPECT_EQ(found(takes("Sigmoid Exp")), "0 1 1 1 1 1");
  // Layers that none has kernels for stay.
  EXPECT_EQ(found([](const Node& node, size_t) { return !node.is("Sigmoid"); }), "0 0 0 0 0 0");
  EXPECT_EQ(found([](const Node& node, size_t device) { return device == 2 || !node.is("Exp"); }),
            "0 0 0 0 0 0");
  EXPECT_EQ(text_of(*graph, automatic_affinities(*graph, 3,
                                                 [](const Node& node, size_t device) {
                                                   return device == 2 || !node.is("Exp");
                                                 })),
            "0 0 0 0 2 0");
}

TEST(AutomaticAffinities, LittleWorkStaysOnTheHostOfTheFirstDevice) {
  const auto graph = graph_of(R"(
    x = parameter f32[1,16,40,40]
    a = ReLU-1(x)
    b = Sigmoid-1(a)
    result b)");
  const auto takes = [](const Node& node, size_t device) {
    return device != 0 || !node.is("Sigmoid");
  };
  EXPECT_EQ(text_of(*graph, automatic_affinities(*graph, 2, takes)), "0 0");
}

TEST(InseparableLayers, AreWhatFollowsFoundRows) {
  const auto graph = graph_of(R"(
    x = parameter f32[1,8]
    a = ReLU-1(x)
    n = NonZero-3(a) output_type=i64
    t = Exp-1(a)
    c = Convert-1(n) destination_type=f32
    result c
    result t)");
  const auto together = inseparable_layers(*graph);
  std::string types;
  for (const auto& node : graph->nodes())
    if (together.contains(node.get())) types += node->type + " ";
  EXPECT_EQ(types, "NonZero Convert ");
  Affinities affinities = devices(*graph, "0100");
  EXPECT_TRUE(says(put_together(*graph, together, affinities, {"GPU.0", "CPU.0"}), "Convert"));
  EXPECT_EQ(text_of(*graph, affinities), "0 1 0 1");
}

class Hetero : public test::TwoDevices {
 protected:
  // The bundled detector with an affinity for each layer: of those with `types`, CPU.1.
  std::string with_affinities(const std::string& types, const std::string& other = "CPU",
                              const std::string& device = "CPU.1") {
    std::string xml = read_file(ball_model());
    std::filesystem::copy_file(std::filesystem::path(ball_model()).replace_extension(".bin"),
                               folder_ / "parts.bin", std::filesystem::copy_options::skip_existing);
    std::string out;
    const std::regex layer("<layer [^>]*type=\"([A-Za-z]+)\"[^>]*>");
    auto at = xml.cbegin();
    for (std::sregex_iterator found(xml.begin(), xml.end(), layer), end; found != end; ++found) {
      out.append(at, (*found)[0].second);
      at = (*found)[0].second;
      const std::string type = (*found)[1];
      const std::string& name = std::regex_match(type, std::regex(types)) ? device : other;
      if (type != "Const" && type != "Convert" && !name.empty())
        out += "<rt_info><attribute name=\"affinity\" version=\"0\" value=\"" + name +
               "\"/></rt_info>";
    }
    out.append(at, xml.cend());
    return folder_.write("parts.xml", out);
  }
  static std::string ball_model() { return test::ball_model(); }

  std::string refusal(const std::string& path) const {
    try {
      CompiledModel::compile(Model::read(path), on("HETERO:CPU.0,CPU.1"));
    } catch (const Error& error) {
      return error.what();
    }
    return "accepted";
  }

  TemporaryFolder folder_;
};

TEST_F(Hetero, ANetworkThatOneDeviceTakesIsCompiledForIt) {
  const auto compiled = compile("HETERO:CPU.1,CPU.0");
  EXPECT_EQ(compiled->device().id, "CPU.1");
  EXPECT_TRUE(same(infer(*compiled->create_request(), picture(1)), wanted(1)));
}

TEST_F(Hetero, StatedAffinitiesMakeParts) {
  Config config = on("HETERO:CPU,CPU.1");
  config.hetero_dump_graph_dot = true;
  config.graph_dumps_dir = folder_ / "drawings";
  config.perf_count = true;
  const auto compiled =
      CompiledModel::compile(Model::read(with_affinities("GroupConvolution|Concat")), config);
  EXPECT_TRUE(compiled->warnings().empty());
  const auto request = compiled->create_request();
  for (unsigned seed = 1; seed < 4; ++seed) {
    const std::vector<float> got = infer(*request, picture(seed)), want = wanted(seed);
    ASSERT_EQ(got.size(), want.size());
    // Where layers were fused before, rounding differs.
    for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], want[i], 1e-4f) << i;
  }
  EXPECT_GT(inferences(*compiled, "CPU.0"), 6u);
  EXPECT_GT(inferences(*compiled, "CPU.1"), 6u);
  // Counters are by part.
  std::set<std::string> parts;
  for (const StepProfile& step : compiled->profile())
    parts.insert(step.layer.substr(0, step.layer.find(':')));
  EXPECT_TRUE(parts.contains("subgraph0"));
  EXPECT_TRUE(parts.contains("subgraph1"));
  // The parts are drawn; automatic affinities are not, as there are none.
  const std::string drawing = read_file(folder_ / "drawings/hetero_subgraphs_parts.dot");
  EXPECT_TRUE(says(drawing, "subgraph=1\\ndevice=CPU.1"));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "drawings/hetero_affinity_parts.dot"));
}

TEST_F(Hetero, PartsComeFromTheCache) {
  Config config = on("HETERO:CPU.0,CPU.1");
  config.cache_dir = folder_ / "cache";
  test::PassCounter counter;
  std::vector<float> first;
  for (const bool warm : {false, true}) {
    const auto compiled =
        CompiledModel::compile(Model::read(with_affinities("GroupConvolution")), config);
    // The model is divided after its constants are folded; all other passes are for a part.
    EXPECT_EQ(counter.take_runs("assign_layouts") == 0, warm);
    const std::vector<float> got = infer(*compiled->create_request(), picture(3));
    if (!warm) first = got;
    EXPECT_TRUE(same(got, first));
  }
}

TEST_F(Hetero, BatchesFramesAndSeveralRequests) {
  Config config = on("HETERO:CPU.0,CPU.1");
  config.batch = 2;
  const auto compiled =
      CompiledModel::compile(Model::read(with_affinities("GroupConvolution")), config);
  const std::vector<float> first = wanted(7);
  std::vector<std::jthread> threads;
  for (int i = 0; i < 3; ++i)
    threads.emplace_back([&, request = std::shared_ptr(compiled->create_request())] {
      const Shape shape = compiled->inputs()[0].shape;
      Tensor both = Tensor::allocate(ElementType::f32, shape);
      const Tensor one = picture(7);
      auto* to = static_cast<std::byte*>(both.raw_mutable());
      std::memcpy(to, one.raw(), one.bytes());
      std::memcpy(to + one.bytes(), one.raw(), one.bytes());
      for (int k = 0; k < 4; ++k) {
        const std::vector<float> got = infer(*request, both);
        ASSERT_EQ(got.size(), 2 * first.size());
        for (size_t j = 1; j < 7; ++j) EXPECT_NEAR(got[j], first[j], 1e-4f);
      }
    });
}

TEST_F(Hetero, RequestsRefuseMisuseAndServeAgain) {
  const auto compiled = CompiledModel::compile(Model::read(with_affinities("GroupConvolution")),
                                               on("HETERO:CPU.0,CPU.1"));
  EXPECT_EQ(compiled->streams(), 1u);
  EXPECT_EQ(compiled->optimal_requests(), 4u) << "two of each device";
  EXPECT_GT(compiled->kernel_count(), 2u);
  EXPECT_FALSE(compiled->wants_frame_memory());
  EXPECT_TRUE(compiled->wants_thread_per_request()) << "it hands tensors on";
  const auto whole = compile("CPU.0");
  for (const auto ports : {&CompiledModel::inputs, &CompiledModel::outputs}) {
    const std::vector<Port>&got = (*compiled.*ports)(), &want = (*whole.*ports)();
    ASSERT_EQ(got.size(), want.size());
    for (size_t i = 0; i < got.size(); ++i) {
      EXPECT_EQ(got[i].name, want[i].name);
      EXPECT_EQ(got[i].shape, want[i].shape);
    }
  }
  const auto request = compiled->create_request();
  EXPECT_THROW(request->output(0), Error);
  EXPECT_THROW(request->set_input(1, picture(1)), Error);
  EXPECT_THROW(request->set_input(0, test::random_tensor({1, 3, 2, 2})), Error);
  EXPECT_THROW(request->input_memory(1), Error);
  EXPECT_THROW(request->set_surface(0, nullptr, {}, {}, 0), Error);
  EXPECT_THROW(request->set_memory(0, {}, {}, {}, 0), Error);
  EXPECT_TRUE(request->wait()) << "nothing is in flight";

  const Tensor input = picture(1);
  const std::span<std::byte> memory = request->input_memory(0);
  ASSERT_EQ(memory.size(), input.bytes());
  std::memcpy(memory.data(), input.raw(), input.bytes());
  const auto expect_wanted = [&] {
    const std::vector<float> got = request->output(0).to_floats(), want = wanted(1);
    ASSERT_EQ(got.size(), want.size());
    for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], want[i], 1e-4f) << i;
  };
  request->start();
  EXPECT_THROW(request->start(), Error);
  EXPECT_THROW(request->set_input(0, input), Error);
  EXPECT_THROW(request->input_memory(0), Error);
  EXPECT_THROW(request->output(0), Error);
  while (!request->wait(std::chrono::milliseconds(1))) {
  }
  expect_wanted();
  request->start();
  request->cancel();
  try {
    request->wait();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::cancelled);
  }
  request->start();
  EXPECT_TRUE(request->wait());
  expect_wanted();
}

TEST_F(Hetero, AutomaticAffinitiesAreDrawn) {
  Config config = on("HETERO:CPU.0,CPU.1");
  config.hetero_dump_graph_dot = true;
  config.graph_dumps_dir = folder_ / "drawings";
  CompiledModel::compile(ball(), config);
  EXPECT_TRUE(says(read_file(folder_ / "drawings/hetero_affinity_ball.dot"), "device=CPU.0"));
  EXPECT_TRUE(says(read_file(folder_ / "drawings/hetero_subgraphs_ball.dot"), "subgraph=0"));
}

TEST_F(Hetero, AffinitiesThatCannotBeAreRefused) {
  EXPECT_TRUE(says(refusal(with_affinities("Concat", "")), "has no affinity in its rt_info"));
  EXPECT_TRUE(says(refusal(with_affinities("Concat", "CPU", "NPU")),
                   "has the affinity \"NPU\", which is none of the devices of HETERO"));
}

TEST_F(Hetero, OneDeviceIgnoresAffinities) {
  const auto compiled =
      CompiledModel::compile(Model::read(with_affinities("Concat", "")), on("CPU.0"));
  EXPECT_TRUE(same(infer(*compiled->create_request(), picture(5)), wanted(5)));
}

TEST_F(Hetero, ALostDeviceIsAnErrorAndTheRequestServesAgain) {
  const auto compiled = CompiledModel::compile(Model::read(with_affinities("GroupConvolution")),
                                               on("HETERO:CPU.0,CPU.1"));
  const auto request = compiled->create_request();
  const std::vector<float> want = infer(*request, picture(8));
  lose_device(name(1).c_str(), 2);
  EXPECT_THROW(infer(*request, picture(8)), Error);
  lose_device(nullptr, 0);
  EXPECT_EQ(infer(*request, picture(8)), want);
  request->start();
  request->cancel();
  try {
    request->wait();  // it may be through already
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::cancelled) << error.what();
  }
  EXPECT_EQ(infer(*request, picture(8)), want);
}

}  // namespace
}  // namespace clinfer
