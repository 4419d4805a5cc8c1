// How much of well-known networks has a shipped tuning record, on the devices that there are records
// of. A change of a key or of a kernel's version that leaves records without effect shows here. Plans
// are free of any device, so the figures are the same everywhere.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <map>
#include <sstream>
#include <tuple>

#include "engine/ir/ir_reader.h"
#include "engine/passes/passes.h"
#include "engine/plan/plan.h"
#include "engine/plan/work.h"
#include "engine/runtime/model.h"
#include "tests/devices.h"
#include "tuning/op_key.h"
#include "tuning/shipped.h"

namespace clinfer {
namespace {

constexpr const char* kRecordsTable =
    CLINFER_SOURCE_DIR "/tests/engine/networks/shipped_records.txt";

const std::map<std::string, DeviceTraits>& devices() {
  static const std::map<std::string, DeviceTraits> all = {
      {"h100", test::hopper("NVIDIA H100 80GB HBM3")},
      {"h200", test::hopper("NVIDIA H200")},
      {"pocl", test::cpu_with_dot_products()},
      {"pocl_avx2", test::cpu_with_avx2()},
  };
  return all;
}

// Whether the record names a kernel and point that the operation has, or the untuned kernel.
bool is_alive(const TuningRecord& record, const OpDesc& desc,
              const std::vector<const KernelFamily*>& families, const DeviceTraits& traits) {
  for (const KernelFamily* family : families)
    if (family->name == record.family)
      return record.family_version == family->version &&
             (record.point ? index_in_space({family, *record.point}, desc, traits) >= 0
                           : family == families.front());
  return false;
}

// The share of the multiply-adds whose kernels have a record that counts, in per cent.
double covered(const std::string& network, int64_t batch, const DeviceTraits& traits) {
  IrModel model =
      read_ir(std::string(std::getenv("CLINFER_TEST_DATA")) + "/networks/" + network + ".xml");
  set_batch(*model.graph, batch);
  run_passes(*model.graph, {traits, traits.fp16 ? ElementType::f16 : ElementType::f32});
  const Plan plan = make_plan(std::move(model.graph), traits);
  double all = 0, with_record = 0;
  for (const Step& step : plan.steps) {
    if (step.on_host) continue;
    const double work = multiply_adds(step.desc);
    all += work;
    const auto families = accepting_families(*step.node->def, step.desc, traits);
    const auto records = shipped_records(op_key(step.desc), traits, false);
    if (std::any_of(records.begin(), records.end(), [&](const ShippedRecord& shipped) {
          return is_alive(*shipped.record, step.desc, families, traits);
        }))
      with_record += work;
  }
  EXPECT_GT(all, 0);
  return 100 * with_record / all;
}

TEST(ShippedRecords, CoverTheNetworksOfTheTable) {
  if (!std::getenv("CLINFER_TEST_DATA")) GTEST_SKIP() << "CLINFER_TEST_DATA names no folder";
  std::ifstream file(kRecordsTable);
  std::string line, now;
  size_t seen = 0;
  while (std::getline(file, line)) {
    if (line.empty() || line[0] == '#') continue;
    std::istringstream words(line);
    std::string device, network;
    int64_t batch = 0;
    double stated = 0;
    words >> device >> network >> batch >> stated;
    ASSERT_FALSE(words.fail()) << kRecordsTable << ": " << line;
    const double got = covered(network, batch, devices().at(device));
    char text[16];
    std::snprintf(text, sizeof text, "%.1f", got);
    EXPECT_GE(got, stated - 0.06) << line << ", now " << text << " %";
    now += device + " " + network + " " + std::to_string(batch) + " " + text + "\n";
    ++seen;
  }
  EXPECT_GT(seen, 0u) << kRecordsTable << " is empty";
  if (HasFailure() || std::getenv("CLINFER_SHOW_TABLE"))
    std::cout << "If this is meant, the table " << kRecordsTable << " becomes\n" << now;
}

}  // namespace
}  // namespace clinfer
