// Prints the kernels of a network on an Intel GPU that nobody has here, and the cycles that the cost
// model of convolutions by sub-groups gives them: `layer_cycles MODEL.xml DEVICE [BATCH]`. A line of
// tab-separated values for each operation on the device; pipelines/bench/intel.py makes times of
// them.
#include <iostream>
#include <map>

#include "engine/ir/ir_reader.h"
#include "engine/passes/passes.h"
#include "engine/plan/plan.h"
#include "engine/plan/work.h"
#include "engine/runtime/model.h"
#include "kernels/convolution/intel/convolution_xmx16.h"
#include "kernels/convolution/intel/convolution_xmx8.h"
#include "tests/devices.h"

namespace clinfer {
namespace {

double bytes_of(const TensorDesc& desc) {
  return static_cast<double>(desc.elements()) * static_cast<double>(size_of(desc.type));
}

// 0 for operations that multiply_adds() is not for.
double products_of(const OpDesc& desc) {
  const bool multiplies = desc.type == "Convolution" || desc.type == "GroupConvolution" ||
                          desc.type == "ConvolutionBackpropData" ||
                          desc.type == "GroupConvolutionBackpropData" || desc.type == "MatMul";
  return multiplies ? multiply_adds(desc) : 0;
}

void print(const Step& step, const DeviceTraits& traits) {
  const OpDesc& desc = step.desc;
  // Weights are read once, in the type that kernels compute with.
  double activations = 0, weights = 0;
  const bool halves = !desc.inputs.empty() && desc.inputs[0].type == ElementType::f16;
  for (size_t i = 0; i < desc.inputs.size(); ++i) {
    const double bytes = bytes_of(desc.inputs[i]);
    if (desc.constants[i].empty())
      activations += bytes;
    else
      weights += halves && desc.inputs[i].type == ElementType::f32 ? bytes / 2 : bytes;
  }
  for (const TensorDesc& output : desc.outputs) activations += bytes_of(output);
  const std::string family = step.family ? step.family->name : "";
  SubgroupCycles cycles;
  if (family == "conv_subgroup")
    cycles = subgroup_cycles(desc, convolution_problem(desc), traits, step.point);
  if (family == "conv_xmx8")
    cycles = xmx8_cycles(desc, convolution_problem(desc), traits, step.point);
  if (family == "conv_xmx16")
    cycles = xmx16_cycles(desc, convolution_problem(desc), traits, step.point);
  std::cout << desc.name << '\t' << desc.type << '\t' << family << '\t'
            << step.kernels.launches.size() << '\t' << products_of(desc) << '\t' << activations
            << '\t' << weights << '\t' << cycles.products << '\t' << cycles.issue << '\t'
            << cycles.sends << '\t' << cycles.cache << '\t' << cycles.own << '\t' << cycles.wait
            << '\n';
}

int run(const std::string& path, const std::string& device, int64_t batch) {
  const std::map<std::string, DeviceTraits> devices = {
      {"uhd630", test::intel_gpu("skl", 24)},
      {"xe96", test::intel_gpu("tgllp", 96)},
      {"a770", test::intel_gpu("dg2", 512)},
      {"b580", test::intel_gpu("bmg", 160)},
      {"h100", test::hopper("NVIDIA H100 80GB HBM3")}};
  const auto found = devices.find(device);
  if (found == devices.end()) {
    std::cerr << "layer_cycles: no device " << device << "\n";
    return 2;
  }
  const DeviceTraits& traits = found->second;
  IrModel model = read_ir(path);
  set_batch(*model.graph, batch);
  run_passes(*model.graph, {traits, ElementType::f16});
  const Plan plan = make_plan(std::move(model.graph), traits);
  for (const Step& step : plan.steps)
    if (!step.on_host && !step.kernels.launches.empty()) print(step, traits);
  return 0;
}

}  // namespace
}  // namespace clinfer

int main(int argc, char** argv) try {
  if (argc < 3) {
    std::cerr << "usage: layer_cycles MODEL.xml uhd630|xe96|a770|b580|h100 [BATCH]\n";
    return 2;
  }
  return clinfer::run(argv[1], argv[2], argc > 3 ? std::atoi(argv[3]) : 1);
} catch (const std::exception& error) {
  std::cerr << error.what() << "\n";
  return 1;
}
