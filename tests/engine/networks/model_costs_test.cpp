// The cost of one inference of each open model: device kernels launched, operations on the host,
// bytes that kernels read and write. A lost fusion or view shows here. Plans are free of any
// device, so the figures are the same everywhere.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

#include "engine/ir/ir_reader.h"
#include "engine/passes/passes.h"
#include "engine/plan/plan.h"
#include "tests/devices.h"

namespace clinfer {
namespace {

namespace fs = std::filesystem;

constexpr const char* kCostsTable = CLINFER_SOURCE_DIR "/tests/engine/networks/model_costs.txt";

struct Costs {
  size_t kernels = 0, on_host = 0;
  int64_t bytes = 0;  // activations in and out of kernels, weights not counted
  friend bool operator==(const Costs&, const Costs&) = default;
};

std::string line_of(const std::string& model, const Costs& costs) {
  return model + " " + std::to_string(costs.kernels) + " " + std::to_string(costs.on_host) + " " +
         std::to_string(costs.bytes);
}

Costs costs_of(const fs::path& xml) {
  IrModel model = read_ir(xml.string());
  const DeviceTraits traits = test::cpu_with_dot_products();
  run_passes(*model.graph, {traits, ElementType::f32});
  const Plan plan = make_plan(std::move(model.graph), traits);
  Costs costs;
  costs.kernels = plan.kernel_count();
  for (const Step& step : plan.steps) {
    costs.on_host += step.on_host;
    if (step.on_host) continue;
    const auto add = [&](const TensorDesc& desc) {
      costs.bytes += desc.elements() * static_cast<int64_t>(size_of(desc.type));
    };
    for (size_t i = 0; i < step.desc.inputs.size(); ++i)
      if (step.desc.constants[i].empty()) add(step.desc.inputs[i]);
    for (const TensorDesc& output : step.desc.outputs) add(output);
  }
  return costs;
}

std::map<std::string, Costs> table() {
  std::map<std::string, Costs> rows;
  std::ifstream file(kCostsTable);
  std::string line;
  while (std::getline(file, line)) {
    if (line.empty() || line[0] == '#') continue;
    std::istringstream words(line);
    std::string name;
    Costs costs;
    words >> name >> costs.kernels >> costs.on_host >> costs.bytes;
    EXPECT_FALSE(words.fail()) << kCostsTable << ": " << line;
    rows[name] = costs;
  }
  return rows;
}

TEST(ModelCosts, AreThoseOfTheTable) {
  const char* shared = std::getenv("CLINFER_SHARED");
  const fs::path folder = fs::path(shared ? shared : "") / "data/models";
  if (!fs::is_directory(folder)) GTEST_SKIP() << "there are no models in " << folder;
  const auto expected = table();
  std::string now;
  size_t seen = 0;
  for (const auto& [name, costs] : expected) {
    const fs::path xml = folder / name / (name + ".xml");
    if (!fs::exists(xml)) continue;
    ++seen;
    try {
      const Costs got = costs_of(xml);
      EXPECT_EQ(got, costs) << name << " launches " << got.kernels << " kernels, not "
                            << costs.kernels << "; moves " << got.bytes << " bytes, not "
                            << costs.bytes << "; runs " << got.on_host << " on the host, not "
                            << costs.on_host;
      now += line_of(name, got) + "\n";
    } catch (const Error& error) {
      ADD_FAILURE() << name << ": " << error.what();
    }
  }
  EXPECT_GT(seen, 0u) << "no model of the table is in " << folder;
  if (HasFailure())
    std::cout << "If this is meant, the table " << kCostsTable << " becomes\n" << now;
}

}  // namespace
}  // namespace clinfer
