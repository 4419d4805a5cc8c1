// The op conformance set through the whole engine: on the host (reader, shapes, evaluate) and
// compiled for a device. One test an op; ops that the registry lacks are skipped with the reason.
// Without the set everything skips.
#include <gtest/gtest.h>

#include <cstdlib>
#include <iostream>
#include <map>

#include "engine/engine.h"
#include "engine/graph/evaluate.h"
#include "engine/ir/ir_reader.h"
#include "tests/engine/networks/conformance_case.h"

namespace clinfer {
namespace {

std::filesystem::path set_folder() {
  const char* shared = std::getenv("CLINFER_SHARED");
  return std::filesystem::path(shared ? shared : "../shared") / "conformance" / "set";
}

std::vector<Tensor> run_on_host(const ConformanceCase& c) {
  return evaluate_graph(*read_ir((c.folder / "model.xml").string()).graph, c.inputs);
}

std::vector<Tensor> run_on_device(ConformanceCase& c) {
  Config config;
  if (const char* device = std::getenv("CLINFER_DEVICE")) config.device = device;
  if (const char* precision = std::getenv("CLINFER_PRECISION"))
    config.set("INFERENCE_PRECISION", precision);
  const auto compiled =
      CompiledModel::compile(Model::read((c.folder / "model.xml").string()), config);
  if (compiled->precision() == Precision::f16) c.loosen_for_half();
  const auto request = compiled->create_request();
  for (size_t i = 0; i < c.inputs.size(); ++i) request->set_input(i, c.inputs[i]);
  request->start();
  request->wait();
  std::vector<Tensor> outputs;
  for (size_t i = 0; i < compiled->outputs().size(); ++i) outputs.push_back(request->output(i));
  return outputs;
}

// Whether the model holds a layer that no operation here implements; told from other refusals by
// the registry itself.
bool is_missing_op(const Error& error) {
  return error.code() == ErrorCode::unsupported &&
         std::string(error.what()).find(" not supported: ") != std::string::npos;
}

// References that contradict the operation's specification, and why. Matching one of them is a
// failure.
const std::map<std::string, std::string>& wrong_references() {
  static const std::map<std::string, std::string> wrong = {
      {"HardSigmoid-1/r5",
       "OpenVINO's CPU plug-in computes a beta of 0 as 0.5 (and 0.0001 as it should)"},
      {"Loop-5/trip-count",
       "the file states [1,12,4], 4 iterations of [1,3,4]; the reference ends after 4 rows"},
      {"Loop-5/one-trip",
       "the file states [1,3,4], one iteration; the reference ends after one row"},
  };
  return wrong;
}

template <typename Run>
void run_all(const std::string& op, Run&& run) {
  size_t passed = 0, failed = 0, skipped = 0;
  std::string reason;
  const auto cases = find_cases(set_folder());
  for (const auto& folder : cases.at(op)) {
    ConformanceCase c = ConformanceCase::read(folder);
    std::string problem;
    try {
      problem = c.compare(run(c));
    } catch (const Error& error) {
      if (is_missing_op(error)) {
        reason = error.what();
        ++skipped;
        continue;
      }
      problem = error.what();
    } catch (const std::exception& error) {
      problem = error.what();
    }
    if (const auto wrong = wrong_references().find(op + "/" + c.name);
        wrong != wrong_references().end()) {
      EXPECT_NE(problem, "") << op << "/" << c.name
                             << " equals a reference that is listed as wrong: " << wrong->second;
      ++skipped;
      continue;
    }
    if (problem.empty()) {
      ++passed;
    } else {
      ++failed;
      ADD_FAILURE() << op << "/" << c.name << ": " << problem;
    }
  }
  std::cout << "    " << op << ": " << passed << " passed, " << failed << " failed, " << skipped
            << " skipped\n";
  if (skipped && !passed && !failed) GTEST_SKIP() << reason;
}

struct OpName {
  std::string op;
  friend void PrintTo(const OpName& name, std::ostream* out) { *out << name.op; }
};

std::vector<OpName> ops() {
  std::vector<OpName> names;
  for (const auto& [op, cases] : find_cases(set_folder())) names.push_back({op});
  return names;
}

std::string test_name(const testing::TestParamInfo<OpName>& info) {
  std::string name = info.param.op;
  for (char& c : name)
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  return name;
}

class HostConformance : public testing::TestWithParam<OpName> {};
class DeviceConformance : public testing::TestWithParam<OpName> {};

TEST_P(HostConformance, MatchesReferences) { run_all(GetParam().op, run_on_host); }
TEST_P(DeviceConformance, MatchesReferences) { run_all(GetParam().op, run_on_device); }

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(HostConformance);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(DeviceConformance);
INSTANTIATE_TEST_SUITE_P(Ops, HostConformance, testing::ValuesIn(ops()), test_name);
INSTANTIATE_TEST_SUITE_P(Ops, DeviceConformance, testing::ValuesIn(ops()), test_name);

TEST(ConformanceSet, IsThere) {
  if (ops().empty())
    GTEST_SKIP() << "no conformance set in " << set_folder() << "; set CLINFER_SHARED";
}

}  // namespace
}  // namespace clinfer
