// The plan: what one inference launches, in order, and where every tensor lies. Data only, free of
// any OpenCL context.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "engine/graph/graph.h"
#include "engine/plan/cut.h"
#include "kernels/kernel.h"
#include "tuning/tuner.h"

namespace clinfer {

// The allocation that a tensor lives in. stream: activations, shared by the requests of a stream
// (its queue runs them one after the other). request: inputs, results, and what must outlive a step
// that runs on the host, or the parts of one that is cut. weights: constants that a kernel reads as
// they are.
enum class Memory { stream, request, weights };

// One allocation-sized piece: the memory of a root output and of all views onto it.
struct Region {
  Edge root;
  Memory memory = Memory::stream;
  size_t offset = 0;  // bytes from the start of that memory
  size_t bytes = 0;
  size_t first = 0, last = 0;  // steps between which it holds something
  bool read_by_device = false;
};

struct Loop;

struct Step {
  Node* node = nullptr;
  OpDesc desc;
  bool on_host = false;
  const KernelFamily* family = nullptr;
  TuningPoint point;
  KernelPlan kernels;
  std::vector<Cut> cuts;  // of the launches; empty: none is cut
  std::shared_ptr<const Loop> loop =
      {};  // the launches are of one iteration; null: there is no loop

  Cut cut(size_t launch) const { return cuts.empty() ? Cut{} : cuts[launch]; }
};

struct Plan {
  std::unique_ptr<Graph> graph;  // after all passes; the steps point into it
  std::vector<Step> steps;
  std::vector<Region> regions;
  std::map<std::pair<const Node*, int>, size_t> region_by_root;
  size_t stream_bytes = 0, request_bytes = 0;
  size_t weight_bytes = 0;     // of Memory::weights regions only
  size_t workspace_bytes = 0;  // largest of all steps, at the end of the memory it lies in
  Memory workspace = Memory::stream;

  const Region& region_of(const Edge& edge) const;  // of the edge's root
  size_t kernel_count() const;
};

// Picks one of the kernels of the families that take the operation; never called with none.
using KernelChooser =
    std::function<KernelChoice(const OpDesc& desc, std::span<const KernelFamily* const> families)>;

// Picks a family and a tuning point for every operation (without a chooser the best family's own)
// and lays out memory. Throws Error{unsupported} that lists all layers no family takes, with every
// family's reason.
Plan make_plan(std::unique_ptr<Graph> graph, const DeviceTraits& traits,
               const KernelChooser& choose = {});

// How a node of a plan is computed.
struct NodeRun {
  enum class Where { device, host, nowhere };  // nowhere: it needs no computation
  const Node* node = nullptr;
  Where where = Where::nowhere;
  std::string how;  // the kernel and its point, or the reason for the host or for no computation
};

// Each node that has an operation, in the order of the graph.
std::vector<NodeRun> node_runs(const Plan& plan);
// The graph as Graphviz, with the kernel of each node, or why it runs on the host or needs none.
std::string to_dot(const Plan& plan);

// Asks the chooser again and lays out memory anew.
void choose_kernels(Plan& plan, const DeviceTraits& traits, const KernelChooser& choose);

// Sets regions and sizes from the steps. With `whole`, the plan of a larger batch, the inputs lie
// where that has them.
void plan_memory(Plan& plan, const Plan* whole = nullptr);

}  // namespace clinfer
