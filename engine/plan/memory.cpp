// Decides where tensors lie: finds lifetimes of all storage roots, then offsets by best fit, the
// largest first.
#include <algorithm>
#include <bit>
#include <map>
#include <optional>

#include "engine/plan/plan.h"

namespace clinfer {

namespace {

// Bytes; fits sub-buffers (NVIDIA), vector loads and cache lines.
constexpr size_t kAlignment = 512;

size_t aligned(size_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

// Returns the bytes of a root, whose layout is dense or has gaps inside only.
size_t bytes_of(const Edge& root) {
  const NodeOutput& output = root.node->outputs[root.port];
  return static_cast<size_t>(output.desc.span() + output.desc.offset) * size_of(output.type);
}

// The regions placed so far, by the steps between which they are in use. A query takes time by the
// logarithm of the number of steps and by the number of regions found.
class Placed {
 public:
  explicit Placed(size_t steps)
      : size_(std::bit_ceil(steps)), alive_(2 * size_), ends_(2 * size_), beginning_(2 * size_) {}

  void add(const Region* region) {
    const size_t end = region->offset + region->bytes;
    by_first_.emplace(region->first, region);
    for (size_t at = region->first + size_; at > 0; at /= 2)
      beginning_[at] = std::max(beginning_[at], end);
    visit(region->first, region->last, [&](size_t at) {
      alive_[at].push_back(region);
      ends_[at] = std::max(ends_[at], end);
    });
  }

  // Returns begin and end of each region that is in use between these steps, or nothing if there
  // are more than `most`.
  std::optional<std::vector<std::pair<size_t, size_t>>> meeting(size_t first, size_t last,
                                                                size_t most) const {
    std::vector<std::pair<size_t, size_t>> taken;
    for (size_t at = first + size_; at > 0; at /= 2) {
      if (taken.size() + alive_[at].size() > most) return {};
      for (const Region* region : alive_[at])
        taken.emplace_back(region->offset, region->offset + region->bytes);
    }
    for (auto at = by_first_.upper_bound(first); at != by_first_.end() && at->first <= last; ++at) {
      if (taken.size() == most) return {};
      taken.emplace_back(at->second->offset, at->second->offset + at->second->bytes);
    }
    return taken;
  }

  // Returns the highest end of these regions.
  size_t end_of(size_t first, size_t last) const {
    size_t end = 0;
    for (size_t at = first + size_; at > 0; at /= 2) end = std::max(end, ends_[at]);
    if (first < last)
      visit(first + 1, last, [&](size_t at) { end = std::max(end, beginning_[at]); });
    return end;
  }

 private:
  // Visits the fewest nodes of the tree that together are exactly these steps.
  template <typename Visit>
  void visit(size_t first, size_t last, const Visit& node) const {
    for (size_t low = first + size_, high = last + size_ + 1; low < high; low /= 2, high /= 2) {
      if (low % 2) node(low++);
      if (high % 2) node(--high);
    }
  }

  // Segment trees: node 1 stands for all steps, nodes 2n and 2n + 1 for the halves of node n.
  const size_t size_;
  std::vector<std::vector<const Region*>>
      alive_;                      // in use during all steps of the node, but not of its parent
  std::vector<size_t> ends_;       // by node: the highest end among `alive_`
  std::vector<size_t> beginning_;  // by node: the highest end of regions that begin in it
  std::multimap<size_t, const Region*> by_first_;
};

// The most regions among which a gap is searched; networks have about ten in use at a time.
constexpr size_t kMostComparedRegions = 500;

// Chooses offsets so that regions in use at the same time do not overlap. From the largest on, each
// goes into the smallest gap that holds it among the placed regions that it meets, or above all of
// them if these are many. Returns the total size.
size_t pack(std::vector<Region*> regions, size_t steps) {
  std::sort(regions.begin(), regions.end(),
            [](const Region* a, const Region* b) { return a->bytes > b->bytes; });
  Placed placed(steps);
  size_t total = 0;
  for (Region* region : regions) {
    if (auto taken = placed.meeting(region->first, region->last, kMostComparedRegions)) {
      std::sort(taken->begin(), taken->end());
      size_t at = 0, best = SIZE_MAX, best_gap = SIZE_MAX;
      for (const auto& [begin, end] : *taken) {
        if (begin >= at + region->bytes && begin - at < best_gap) {
          best = at;
          best_gap = begin - at;
        }
        at = std::max(at, end);
      }
      region->offset = best == SIZE_MAX ? at : best;
    } else {
      region->offset = placed.end_of(region->first, region->last);
    }
    total = std::max(total, region->offset + region->bytes);
    placed.add(region);
  }
  return total;
}

}  // namespace

void plan_memory(Plan& plan, const Plan* whole) {
  plan.regions.clear();
  plan.region_by_root.clear();
  plan.request_bytes = plan.weight_bytes = plan.workspace_bytes = 0;
  const auto region = [&](const Edge& edge) -> Region& {
    const Edge root = storage_root(edge);
    const auto [found, fresh] =
        plan.region_by_root.try_emplace({root.node, root.port}, plan.regions.size());
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
  std::vector<size_t> host_steps, cut_steps;
  for (size_t s = 0; s < end; ++s) {
    const Step& step = plan.steps[s];
    // Gives constants that kernels take as plain inputs a place among the weights. Packed ones need
    // none.
    for (const KernelSpec& launch : step.kernels.launches)
      for (const Argument& argument : launch.arguments)
        if (argument.kind == Argument::Kind::input &&
            step.node->inputs[argument.index].node->is("Constant"))
          region(step.node->inputs[argument.index]).memory = Memory::weights;
    for (const Edge& input : step.node->inputs) {
      if (input.node->is("Constant")) continue;
      use(input, s);
      if (!step.on_host) region(input).read_by_device = true;
    }
    for (size_t port = 0; port < step.node->outputs.size(); ++port)
      if (count(step.node->outputs[port].shape)) use({step.node, static_cast<int>(port)}, s);
    if (step.on_host) host_steps.push_back(s);
    if (!step.cuts.empty() || step.loop) cut_steps.push_back(s);
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
  for (Region& r : plan.regions) r.first = std::min(r.first, r.last);  // regions that no step uses
  // Keeps out of the stream's memory what is written before a host step and read after it, because
  // the stream serves other requests meanwhile. (The step's inputs are read before, and its outputs
  // written after that time.) Between the parts of a step that is cut, other requests are served as
  // well, while its inputs and outputs are in use.
  const auto meets = [](const std::vector<size_t>& steps, size_t first, size_t last) {
    const auto next = std::lower_bound(steps.begin(), steps.end(), first);
    return next != steps.end() && *next <= last;
  };
  for (Region& r : plan.regions)
    if (r.memory == Memory::stream && ((r.last > 0 && meets(host_steps, r.first, r.last - 1)) ||
                                       meets(cut_steps, r.first, r.last)))
      r.memory = Memory::request;
  plan.workspace = cut_steps.empty() ? Memory::stream : Memory::request;

  for (size_t i = 0; i < plan.graph->parameters.size(); ++i) {
    Region& r = region({plan.graph->parameters[i], 0});
    const Region& taken = whole ? whole->region_of({whole->graph->parameters[i], 0}) : r;
    r.offset = whole ? taken.offset : plan.request_bytes;
    plan.request_bytes = std::max(plan.request_bytes, r.offset + taken.bytes);
  }
  std::vector<Region*> stream, request;
  for (Region& r : plan.regions) {
    if (r.root.node->is("Parameter")) continue;
    if (r.memory == Memory::weights) {
      r.offset = plan.weight_bytes;
      plan.weight_bytes += r.bytes;
    } else {
      (r.memory == Memory::stream ? stream : request).push_back(&r);
    }
  }
  const size_t inputs = plan.request_bytes;
  plan.stream_bytes = pack(stream, end + 1);
  plan.request_bytes += pack(request, end + 1);
  for (Region* r : request) r->offset += inputs;
  (plan.workspace == Memory::stream ? plan.stream_bytes : plan.request_bytes) +=
      plan.workspace_bytes;
}

}  // namespace clinfer
