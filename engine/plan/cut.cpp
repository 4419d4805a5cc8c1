// Decides whether and how launches are cut.
#include "engine/plan/cut.h"

#include <algorithm>
#include <string>

#include "engine/plan/work.h"

namespace clinfer {

namespace {

// The most work-items of a part along a dimension. Drivers may compile another variant for more
// (PoCL); this way all parts share one.
constexpr size_t kMostPartItems = 65535;

// Rates per second of one vector lane of a CPU or one compute unit of a GPU, in multiply-adds, and
// in elements that are read or written. They are lower than those of real devices (a lane does 4e9
// multiply-adds with AVX-512): parts that are too short cost little. They are not much lower, since
// the operands of a launch that is cut lie in the memory of each request.
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
  cut.most = std::max<size_t>((kMostPartItems - 1) / spec.local[cut.dimension], 1);
  // Makes at least two parts, so that a caller can cancel between them.
  const double share = std::min(kSecondsOfPart / seconds, 0.5) * static_cast<double>(cut.groups);
  cut.first = std::clamp<size_t>(static_cast<size_t>(share), 1, cut.most);
  return cut;
}

// Uses the function's name in its own macro, where it means the function: macros do not expand
// recursively.
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
