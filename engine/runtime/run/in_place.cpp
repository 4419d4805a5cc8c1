// Binds kernels to buffers of the application.
#include "engine/runtime/run/in_place.h"

#include <algorithm>
#include <cstdint>

#include "engine/runtime/network/tensor_copy.h"

namespace clinfer {

namespace {

// Bytes to which a buffer must be aligned, since kernels load vectors from its first byte on.
// Drivers align their own buffers at least so.
constexpr size_t kAlignment = 64;

Edge edge_of(const Node& node, const Argument& argument) {
  if (argument.kind == Argument::Kind::input) return node.inputs[argument.index];
  return {const_cast<Node*>(&node), static_cast<int>(argument.index)};
}

// Returns the memory object that holds a buffer's memory: the one that it is a part of, or itself.
cl_mem whole_of(const cl::Buffer& buffer) {
  const cl::Memory whole = buffer.getInfo<CL_MEM_ASSOCIATED_MEMOBJECT>();
  return whole() != nullptr ? whole() : buffer();
}

// Returns the addresses at which the application has the memory, without the last; 0 and 0 for
// buffers of OpenCL's own.
std::pair<uintptr_t, uintptr_t> addresses_of(const BoundBuffer& memory) {
  if (memory.pointer != nullptr) {
    const auto begin = reinterpret_cast<uintptr_t>(memory.pointer->data());
    return {begin, begin + memory.pointer->bytes()};
  }
  if ((memory.buffer.getInfo<CL_MEM_FLAGS>() & CL_MEM_USE_HOST_PTR) == 0) return {0, 0};
  const auto begin = reinterpret_cast<uintptr_t>(memory.buffer.getInfo<CL_MEM_HOST_PTR>());
  return {begin, begin + memory.buffer.getInfo<CL_MEM_SIZE>()};
}

bool is_tensor(const Argument& argument) {
  return argument.kind == Argument::Kind::input || argument.kind == Argument::Kind::output;
}

}  // namespace

bool overlap(const BoundBuffer& a, const BoundBuffer& b) {
  if (a.pointer == nullptr && b.pointer == nullptr && whole_of(a.buffer) == whole_of(b.buffer))
    return true;
  const auto [a_begin, a_end] = addresses_of(a);
  const auto [b_begin, b_end] = addresses_of(b);
  return a_begin < b_end && b_begin < a_end;
}

const InPlace::Uses& InPlace::uses_of(const SizedPlan& sized, const Edge& root) {
  const auto [found, fresh] = uses_.try_emplace({&sized, {root.node, root.port}});
  Uses& uses = found->second;
  if (!fresh) return uses;
  const Plan& plan = sized.plan;
  // The application may change its buffer by commands that follow those of start().
  for (const Step& step : plan.steps)
    if (step.on_host || step.loop || !step.cuts.empty()) {
      uses.refusal = "the inference runs in several parts, between which others run";
      return uses;
    }
  size_t results = 0;
  for (const Node* result : plan.graph->results) results += storage_root(result->inputs[0]) == root;
  if (root.node->is("Parameter") ? results > 0 : results != 1) {
    uses.refusal = "several inputs or outputs are the same tensor";
    return uses;
  }
  const Region& region = plan.region_of(root);
  size_t joined_until = 0;
  for (size_t s = 0; s < plan.steps.size(); ++s) {
    if (const PersistentSteps* steps = sized.persistent_at(s)) joined_until = steps->end;
    const Step& step = plan.steps[s];
    for (size_t l = 0; l < step.kernels.launches.size(); ++l) {
      const std::vector<Argument>& arguments = step.kernels.launches[l].arguments;
      for (size_t a = 0; a < arguments.size(); ++a) {
        if (!is_tensor(arguments[a])) continue;
        const Edge edge = edge_of(*step.node, arguments[a]);
        if (edge.node->is("Constant") || !(storage_root(edge) == root)) continue;
        if (s < joined_until) {
          uses.refusal = "its kernel is one of several in a launch, which share a memory";
          return uses;
        }
        if (arguments[a].address_bytes != 0) {
          uses.refusal = "a kernel of the user takes it as a part of a buffer";
          return uses;
        }
        uses.all.push_back(
            {s, l, a,
             sized.place_of(s, arguments[a]).offset - static_cast<int64_t>(region.offset)});
      }
    }
  }
  return uses;
}

std::string InPlace::why_not(const SizedPlan& sized, const Edge& edge, const TensorDesc& given,
                             const BoundBuffer& memory, bool reads) {
  const TensorDesc& stored = edge.node->outputs[edge.port].desc;
  if (edge.node->is("Constant")) return "it is a constant";
  if (std::string why = why_copied(stored, given); !why.empty()) return why;
  if (!(storage_root(edge) == edge) || stored.offset != 0)
    return "its kernels use it as a part of another tensor";
  const Uses& uses = uses_of(sized, edge);
  if (!uses.refusal.empty()) return uses.refusal;
  const cl_mem_flags flags = memory.pointer ? 0 : memory.buffer.getInfo<CL_MEM_FLAGS>();
  if (flags & (reads ? CL_MEM_WRITE_ONLY : CL_MEM_READ_ONLY))
    return std::string("kernels may not ") + (reads ? "read" : "write") + " the buffer (its flags)";
  if ((addresses_of(memory).first + static_cast<uintptr_t>(memory.offset)) % kAlignment != 0)
    return "it does not begin at a multiple of " + std::to_string(kAlignment) + " bytes";
  return "";
}

void InPlace::bind(QueueRun& run, const SizedPlan& sized, RequestMemory& memory,
                   const Wanted& wanted) {
  Wanted& elsewhere = memory.elsewhere[&sized];
  if (elsewhere.empty() && wanted.empty()) return;
  auto& kernels = memory.kernels.at(&sized).steps;
  const auto set = [&](const Tensor& tensor, const BoundBuffer& to) {
    for (const Use& use : uses_of(sized, {const_cast<Node*>(tensor.first), tensor.second}).all)
      bind_argument(kernels[use.step][use.launch],
                    sized.plan.steps[use.step].kernels.launches[use.launch].arguments, use.argument,
                    {to.buffer, to.offset + use.offset, {}, nullptr, to.pointer}, true);
  };
  for (const auto& [tensor, there] : elsewhere)
    if (!wanted.contains(tensor))
      set(tensor,
          run.bound(sized.place_of({const_cast<Node*>(tensor.first), tensor.second}), memory));
  for (const auto& [tensor, there] : wanted) {
    const auto now = elsewhere.find(tensor);
    if (now == elsewhere.end() || now->second.buffer() != there.buffer() ||
        now->second.pointer != there.pointer || now->second.offset != there.offset)
      set(tensor, there);
  }
  elsewhere = wanted;
}

}  // namespace clinfer
