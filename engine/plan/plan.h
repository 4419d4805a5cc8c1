// The plan: what one inference launches, in order, and where every tensor lies. It is data only and
// refers to no OpenCL context.
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

// The allocation in which a tensor lies. stream: activations, shared by the requests of a stream,
// whose queue runs them one after the other. request: inputs, results, and values that must outlive
// a step on the host or the parts of a step that is cut. weights: constants that kernels read
// unchanged.
enum class Memory { stream, request, weights };

// A contiguous piece of memory for a storage root and all views onto it.
struct Region {
  Edge root;
  Memory memory = Memory::stream;
  size_t offset = 0;  // in bytes, from the start of that memory
  size_t bytes = 0;
  size_t first = 0, last = 0;  // steps between which it is in use
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
  std::vector<Cut> cuts;  // by launch; empty: no launch is cut
  std::shared_ptr<const Loop> loop =
      {};  // null: no loop; otherwise the launches are those of one iteration

  Cut cut(size_t launch) const { return cuts.empty() ? Cut{} : cuts[launch]; }
};

struct Plan {
  std::unique_ptr<Graph> graph;  // the graph after all passes; steps point into it
  std::vector<Step> steps;
  std::vector<Region> regions;
  std::map<std::pair<const Node*, int>, size_t> region_by_root;
  size_t stream_bytes = 0, request_bytes = 0;
  size_t weight_bytes = 0;     // of Memory::weights alone
  size_t workspace_bytes = 0;  // the largest need of all steps; lies at the end of its memory
  Memory workspace = Memory::stream;

  const Region& region_of(const Edge& edge) const;  // of the edge's storage root
  size_t kernel_count() const;
};

// Picks a kernel among the families that take the operation; is never called without one.
using KernelChooser =
    std::function<KernelChoice(const OpDesc& desc, std::span<const KernelFamily* const> families)>;

// Picks a family and a tuning point for every operation (without a chooser the best family and its
// heuristic) and lays out memory. Throws Error{unsupported}, which lists all layers that no family
// takes, with every family's reason.
Plan make_plan(std::unique_ptr<Graph> graph, const DeviceTraits& traits,
               const KernelChooser& choose = {});

// The way in which a node of a plan is computed.
struct NodeRun {
  enum class Where { device, host, nowhere };  // nowhere: it needs no computation
  const Node* node = nullptr;
  Where where = Where::nowhere;
  std::string how;  // the kernel and its point, or the reason for the host or for no computation
};

// Returns each node that has an operation, in the order of the graph.
std::vector<NodeRun> node_runs(const Plan& plan);
// Returns the graph in Graphviz's format, with the kernel of each node, or why it runs on the host
// or needs no kernel.
std::string to_dot(const Plan& plan);

// Asks the chooser again, and lays out memory anew.
void choose_kernels(Plan& plan, const DeviceTraits& traits, const KernelChooser& choose);

// Sets regions and sizes from the steps. `whole`: the plan of a larger batch, at whose places the
// inputs lie.
void plan_memory(Plan& plan, const Plan* whole = nullptr);

}  // namespace clinfer
