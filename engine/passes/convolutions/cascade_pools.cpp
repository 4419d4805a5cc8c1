// Chains MaxPools of one tensor whose windows contain each other, as spatial pyramids have them
// (5x5, 9x9 and 13x13 in YOLOX). The maximum over a large window is the maximum over the results of
// a smaller one, so each pool reads the next smaller pool's output, through a window as large as
// the difference.
#include <algorithm>
#include <map>

#include "engine/graph/insertion.h"
#include "engine/passes/passes.h"
#include "kernels/sampling/pooling.h"

namespace clinfer {

namespace {

// A pool with a window at every position of the tensor.
struct Pool {
  Node* node;
  PoolShape shape;
  // Returns how many elements of a window lie after its position along dimension d.
  int64_t after(size_t d) const { return shape.kernel[d] - 1 - shape.pad[d]; }
  bool contains(const Pool& other) const {
    if (shape.taps() <= other.shape.taps()) return false;
    for (size_t d = 0; d < 3; ++d)
      if (shape.pad[d] < other.shape.pad[d] || after(d) < other.after(d)) return false;
    return true;
  }
};

bool reads_indices(const Graph& graph, Node* node) {
  for (size_t port = 1; port < node->outputs.size(); ++port)
    if (graph.use_count({node, static_cast<int>(port)}) > 0) return true;
  return false;
}

bool is_everywhere(const PoolShape& s) {
  for (size_t d = 0; d < 3; ++d)
    if (s.stride[d] != 1 || s.dilation[d] != 1 || s.out[d] != s.in[d] || s.pad[d] >= s.kernel[d])
      return false;
  return s.taps() > 1;
}

// The number of next smaller pools among which one that a pool may read is searched. Networks have
// three pools of one tensor.
constexpr size_t kMostComparedPools = 64;

// Returns for each pool, from the smallest on, the index of the largest one that its window
// contains; its own index if there is none.
std::vector<size_t> contained_pools(const std::vector<Pool>& pools) {
  std::vector<size_t> contained(pools.size());
  for (size_t i = 0; i < pools.size(); ++i) {
    contained[i] = i;
    for (size_t j = i; j-- > 0 && i - j <= kMostComparedPools && contained[i] == i;)
      if (pools[i].contains(pools[j])) contained[i] = j;
  }
  return contained;
}

// Replaces all `pools` of one tensor, at the position of the first one, if any contains another.
void cascade(Graph& graph, std::vector<Pool> pools) {
  const Node* first = pools.front().node;  // the pools are in the graph's order
  std::stable_sort(pools.begin(), pools.end(),
                   [](const Pool& a, const Pool& b) { return a.shape.taps() < b.shape.taps(); });
  const std::vector<size_t> contained = contained_pools(pools);
  bool any = false;
  for (size_t i = 0; i < pools.size(); ++i) any |= contained[i] != i;
  if (!any) return;
  for (size_t i = 0; i < pools.size(); ++i) {
    const Pool& pool = pools[i];
    Node* const node = Insertion(graph, first, pool.node->name).copy(*pool.node);
    if (contained[i] != i) {
      const Pool& inner = pools[contained[i]];
      std::vector<int64_t> kernel, begin, end;
      for (size_t d = 5 - node->shape().size(); d < 3; ++d) {
        begin.push_back(pool.shape.pad[d] - inner.shape.pad[d]);
        end.push_back(pool.after(d) - inner.after(d));
        kernel.push_back(begin.back() + end.back() + 1);
      }
      node->inputs.set(0, {inner.node, 0});
      node->attributes.set("kernel", list_text(kernel));
      node->attributes.set("pads_begin", list_text(begin));
      node->attributes.set("pads_end", list_text(end));
      node->attributes.set("auto_pad", "explicit");
    }
    graph.replace_uses({pool.node, 0}, {node, 0});
    pools[i].node = node;
  }
}

}  // namespace

void cascade_pools(Graph& graph, const PassContext&) {
  std::vector<Edge> tensors;  // in the graph's order
  std::map<std::pair<const Node*, int>, std::vector<Pool>> pools;
  for (Node* node : nodes_of(graph)) {
    if (!node->is("MaxPool") || !node->tail.empty() || reads_indices(graph, node)) continue;
    const Edge& input = node->inputs[0];
    const PoolShape shape =
        resolve_pooling(node->type, node->attributes, input.node->shape(input.port));
    if (!is_everywhere(shape)) continue;
    std::vector<Pool>& beside = pools[{input.node, input.port}];
    if (beside.empty()) tensors.push_back(input);
    beside.push_back({node, shape});
  }
  for (const Edge& tensor : tensors) cascade(graph, std::move(pools[{tensor.node, tensor.port}]));
  graph.remove_dead();
}

}  // namespace clinfer
