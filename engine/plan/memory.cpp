// Where tensors lie: lifetimes of all storage roots, then offsets by best fit, largest first.
#include <algorithm>
#include <map>

#include "engine/plan/plan.h"

namespace clinfer {

namespace {

constexpr size_t kAlignment = 256;  // bytes: sub-buffers, vector loads, cache lines of any device

size_t aligned(size_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

// Bytes of a root: its layout is dense or has gaps inside only.
size_t bytes_of(const Edge& root) {
  const NodeOutput& output = root.node->outputs[root.port];
  return static_cast<size_t>(output.desc.span() + output.desc.offset) * size_of(output.type);
}

bool overlap(const Region& a, const Region& b) { return a.first <= b.last && b.first <= a.last; }

// Offsets so that regions alive at the same time do not overlap: each, from the largest on, goes
// into the smallest gap that holds it among the placed ones it meets. Returns the total.
size_t pack(std::vector<Region*> regions) {
  std::sort(regions.begin(), regions.end(),
            [](const Region* a, const Region* b) { return a->bytes > b->bytes; });
  std::vector<Region*> placed;
  size_t total = 0;
  for (Region* region : regions) {
    std::vector<std::pair<size_t, size_t>> taken;
    for (const Region* other : placed)
      if (overlap(*region, *other)) taken.emplace_back(other->offset, other->offset + other->bytes);
    std::sort(taken.begin(), taken.end());
    size_t at = 0, best = SIZE_MAX, best_gap = SIZE_MAX;
    for (const auto& [begin, end] : taken) {
      if (begin >= at + region->bytes && begin - at < best_gap) {
        best = at;
        best_gap = begin - at;
      }
      at = std::max(at, end);
    }
    region->offset = best == SIZE_MAX ? at : best;
    total = std::max(total, region->offset + region->bytes);
    placed.push_back(region);
  }
  return total;
}

}  // namespace

void plan_memory(Plan& plan, const Plan* whole) {
  std::map<std::pair<const Node*, int>, size_t> index;
  plan.regions.clear();
  plan.request_bytes = plan.weight_bytes = plan.workspace_bytes = 0;
  const auto region = [&](const Edge& edge) -> Region& {
    const Edge root = storage_root(edge);
    const auto [found, fresh] = index.try_emplace({root.node, root.port}, plan.regions.size());
    if (fresh) {
      Region made;
      made.root = root;
      made.bytes = aligned(std::max<size_t>(bytes_of(root), 1));
      made.first = SIZE_MAX;
      plan.regions.push_back(made);
    }
    return plan.regions[found->second];
  };
  const auto use = [&](const Edge& edge, size_t step) {
    Region& r = region(edge);
    r.first = std::min(r.first, step);
    r.last = std::max(r.last, step);
  };

  const size_t end = plan.steps.size();
  std::vector<size_t> host_steps;
  for (size_t s = 0; s < end; ++s) {
    const Step& step = plan.steps[s];
    // Constants that kernels take as plain inputs need a place among the weights; packed ones do
    // not.
    for (const KernelSpec& launch : step.kernels.launches)
      for (const Argument& argument : launch.arguments)
        if (argument.kind == Argument::Kind::input &&
            step.node->inputs[argument.index].node->is("Constant"))
          region(step.node->inputs[argument.index]).memory = Memory::weights;
    for (const Edge& input : step.node->inputs)
      if (!input.node->is("Constant")) use(input, s);
    for (size_t port = 0; port < step.node->outputs.size(); ++port)
      if (count(step.node->outputs[port].shape)) use({step.node, static_cast<int>(port)}, s);
    if (step.on_host) host_steps.push_back(s);
    plan.workspace_bytes = std::max(plan.workspace_bytes, aligned(step.kernels.workspace));
  }
  for (Node* parameter : plan.graph->parameters) {
    Region& r = region({parameter, 0});
    r.memory = Memory::request;
    r.first = 0;
  }
  for (Node* result : plan.graph->results) {
    if (result->inputs[0].node->is("Constant")) continue;
    Region& r = region(result->inputs[0]);
    r.memory = Memory::request;
    r.last = end;
  }
  // The stream serves other requests while one of them computes on the host: what is written before
  // and read after that must not lie in the stream's memory. A host step's own output is written
  // when it is over, its inputs are read before.
  for (Region& r : plan.regions)
    for (size_t host : host_steps)
      if (r.memory == Memory::stream && r.first <= host && r.last > host)
        r.memory = Memory::request;

  for (size_t i = 0; i < plan.graph->parameters.size(); ++i) {
    Region& r = region({plan.graph->parameters[i], 0});
    const Region& taken = whole ? whole->region_of({whole->graph->parameters[i], 0}) : r;
    r.offset = whole ? taken.offset : plan.request_bytes;
    plan.request_bytes = std::max(plan.request_bytes, r.offset + taken.bytes);
  }
  std::vector<Region*> stream;
  for (Region& r : plan.regions) {
    if (r.root.node->is("Parameter")) continue;
    if (r.memory == Memory::stream) {
      stream.push_back(&r);
      continue;
    }
    size_t& total = r.memory == Memory::request ? plan.request_bytes : plan.weight_bytes;
    r.offset = total;
    total += r.bytes;
  }
  plan.stream_bytes = pack(stream) + plan.workspace_bytes;
}

}  // namespace clinfer
