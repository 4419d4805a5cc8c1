// Decides whether and how launches are cut.
#include "engine/plan/cut.h"

#include <algorithm>
#include <string>

#include "engine/plan/work.h"

namespace clinfer {

namespace {

// Drivers may make other code for launches of so many work-items along a dimension (PoCL). All parts
// have fewer, and one code.
constexpr size_t kMostItems = 65535;

// Rates per second and compute unit: multiply-adds per vector lane of a CPU, or of a GPU's unit,
// and elements that are read or written. They are slower than devices are: parts that are too short
// cost little, but operands of a launch that is cut lie in the memory of each request. With AVX-512
// a lane does 4e9 multiply-adds.
constexpr double kLaneOfCpu = 1.5e9, kUnitOfGpu = 4e9, kElementsOfCpu = 0.5e9, kElementsOfGpu = 1e9;

}  // namespace

double assumed_seconds(const OpDesc& desc, const DeviceTraits& traits) {
  double elements = 0;
  for (const auto* list : {&desc.inputs, &desc.outputs})
    for (const TensorDesc& tensor : *list) elements += static_cast<double>(tensor.elements());
  const double units = std::max(traits.compute_units, 1u);
  const double lanes = std::max(traits.vector_width, 1u);
  const double products = units * (traits.is_cpu ? lanes * kLaneOfCpu : kUnitOfGpu);
  const double moves = units * (traits.is_cpu ? kElementsOfCpu : kElementsOfGpu);
  return std::max(multiply_adds(desc) / products, elements / moves);
}

Cut cut_of(const KernelSpec& spec, double seconds, double longest) {
  if (seconds <= longest || spec.marked_ptx || spec.own) return {};
  Cut cut;
  for (size_t d = 0; d < 3; ++d)
    if (const size_t groups = spec.global[d] / spec.local[d]; groups > cut.groups) {
      cut.dimension = d;
      cut.groups = groups;
    }
  if (cut.groups < 2) return {};
  cut.most = std::max<size_t>((kMostItems - 1) / spec.local[cut.dimension], 1);
  // There are at least two parts: between them a caller can cancel.
  const double share = std::min(kSecondsOfPart / seconds, 0.5) * static_cast<double>(cut.groups);
  cut.first = std::clamp<size_t>(static_cast<size_t>(share), 1, cut.most);
  return cut;
}

// A name is the function's inside of its own macro: macros do not expand in themselves.
KernelSpec can_be_cut(KernelSpec spec) {
  const auto by_dimension = [](const auto& value) {
    return "((d) == 0 ? " + std::to_string(value(0)) + " : (d) == 1 ? " + std::to_string(value(1)) +
           " : " + std::to_string(value(2)) + ")";
  };
  spec.defines.emplace_back("get_group_id(d)",
                            "(get_group_id(d) + get_global_offset(d) / get_local_size(d))");
  spec.defines.emplace_back("get_num_groups(d)",
                            by_dimension([&](size_t d) { return spec.global[d] / spec.local[d]; }));
  spec.defines.emplace_back("get_global_size(d)",
                            by_dimension([&](size_t d) { return spec.global[d]; }));
  return spec;
}

Part part_of(const KernelSpec& spec, const Cut& cut, size_t first, size_t count) {
  Part part{{}, spec.global};
  const size_t items = spec.local[cut.dimension];
  part.offset[cut.dimension] = first * items;
  part.global[cut.dimension] = count * items;
  return part;
}

}  // namespace clinfer
