// Replaces the parts of a tensor of tokens by channels that slices, transposes, reshapes and
// concats put into another order, channels together, by one Gather of its rows. A shifted window of
// a transformer (Swin) is two slices and a concat for each axis, and a transpose: five copies
// otherwise.
#include <algorithm>
#include <numeric>
#include <optional>
#include <unordered_set>

#include "engine/graph/insertion.h"
#include "engine/passes/passes.h"
#include "kernels/shape_util.h"

namespace clinfer {

namespace {

constexpr int64_t kFewestChannels = 8;  // shorter rows are not worth an index

// Moved rows: the tensor that they are of, and the row of it that each of them is.
struct Moved {
  Edge source;
  std::vector<int64_t> rows;
};

// Returns the views that a node gives of its first input in row-major order, if it moves rows of
// `channels` elements as a whole.
std::optional<std::vector<TensorDesc>> row_views(const Node& node, int64_t channels) {
  if (!node.def || !node.def->view || !node.tail.empty() || node.inputs.empty()) return {};
  for (size_t i = 1; i < node.inputs.size(); ++i)
    if (!constant_value(node.inputs[i])) return {};
  const Edge& in = node.inputs[0];
  if (shape_of(in).empty() || shape_of(in).back() != channels) return {};
  OpDesc desc = describe(node);
  desc.inputs[0] = TensorDesc::row_major(in.node->outputs[in.port].type, shape_of(in));
  auto views = node.def->view(desc);
  if (!views) return {};
  for (const TensorDesc& view : *views) {
    if (view.shape.empty() || view.shape.back() != channels || view.strides.back() != 1 ||
        view.offset % channels != 0)
      return {};
    for (size_t d = 0; d + 1 < view.shape.size(); ++d)
      if (view.strides[d] % channels != 0) return {};
  }
  return views;
}

bool joins_rows(const Node& node) {
  if (!node.is("Concat") || !node.tail.empty()) return false;
  const auto rank = static_cast<int64_t>(node.shape().size());
  const int64_t axis = node.attributes.get_int("axis");
  return rank >= 2 && axis != -1 && axis != rank - 1 && count(node.shape()) > 0 &&
         node.shape().back() >= kFewestChannels;
}

int64_t rows_of(const Shape& shape) { return count(shape) / shape.back(); }

// Follows rows back to one tensor that is not moved itself.
class Trace {
 public:
  explicit Trace(int64_t channels) : channels_(channels) {}

  // Returns nothing if there are several such tensors, or many moves.
  std::optional<Moved> follow(const Edge& edge) {
    if (++visits_ > kMostVisits) return {};
    const Node& node = *edge.node;
    if (joins_rows(node)) return joined(node);
    if (const auto views = row_views(node, channels_))
      return viewed(node.inputs[0], (*views)[static_cast<size_t>(edge.port)]);
    const Shape& shape = shape_of(edge);
    if (shape.empty() || shape.back() != channels_ || constant_value(edge)) return {};
    Moved source{edge, std::vector<int64_t>(static_cast<size_t>(rows_of(shape)))};
    std::iota(source.rows.begin(), source.rows.end(), int64_t{0});
    return source;
  }

  const std::vector<const Node*>& concats() const { return concats_; }

 private:
  static constexpr int kMostVisits = 100;

  std::optional<Moved> joined(const Node& node) {
    concats_.push_back(&node);
    const Shape& shape = node.shape();
    int64_t axis = node.attributes.get_int("axis");
    if (axis < 0) axis += static_cast<int64_t>(shape.size());
    const auto at = static_cast<size_t>(axis);
    int64_t outer = 1, inner = 1;
    for (size_t d = 0; d + 1 < shape.size(); ++d)
      if (d != at) (d < at ? outer : inner) *= shape[d];
    std::vector<Moved> parts;
    for (const Edge& input : node.inputs) {
      auto part = follow(input);
      if (!part || (!parts.empty() && !(part->source == parts.front().source))) return {};
      parts.push_back(std::move(*part));
    }
    Moved whole{parts.front().source, {}};
    for (int64_t o = 0; o < outer; ++o)
      for (size_t k = 0; k < parts.size(); ++k) {
        const int64_t size = shape_of(node.inputs[k])[at] * inner;
        const auto begin = parts[k].rows.begin() + o * size;
        whole.rows.insert(whole.rows.end(), begin, begin + size);
      }
    return whole;
  }

  std::optional<Moved> viewed(const Edge& input, const TensorDesc& view) {
    auto moved = follow(input);
    if (!moved || view.elements() == 0) return {};
    const Shape outer(view.shape.begin(), view.shape.end() - 1);
    std::vector<int64_t> rows;
    Shape index(outer.size(), 0);
    do {
      int64_t from = view.offset;
      for (size_t d = 0; d < outer.size(); ++d) from += index[d] * view.strides[d];
      rows.push_back(moved->rows[static_cast<size_t>(from / channels_)]);
    } while (next_index(index, outer));
    moved->rows = std::move(rows);
    return moved;
  }

  const int64_t channels_;
  int visits_ = 0;
  std::vector<const Node*> concats_;
};

// Returns the last of the nodes that move the concat's rows, each of them read by the next only.
Node* last_mover(const Graph& graph, Node* concat) {
  Node* last = concat;
  while (last->outputs.size() == 1) {
    Node* next = graph.only_user({last, 0});
    if (!next || joins_rows(*next) || next->outputs.size() != 1 ||
        !row_views(*next, concat->shape().back()))
      break;
    last = next;
  }
  return last;
}

}  // namespace

void gather_rows(Graph& graph, const PassContext&) {
  std::unordered_set<const Node*> replaced;
  std::vector<Node*> nodes = nodes_of(graph);
  std::reverse(nodes.begin(), nodes.end());  // the last concat of several stands for all
  for (Node* node : nodes) {
    if (!joins_rows(*node) || replaced.contains(node)) continue;
    Node* last = last_mover(graph, node);
    Trace trace(node->shape().back());
    const auto moved = trace.follow({last, 0});
    if (!moved) continue;
    const Shape& from = shape_of(moved->source);
    // Pictures lie with their channels last, whatever their shape says.
    if (from.size() != 3 && last->shape().size() != 3) continue;
    Insertion add(graph, last);
    const Insertion::AttributeTexts plain{{"special_zero", "false"}}, whole{{"batch_dims", "0"}};
    const Edge flat =
        add.op("Reshape", 1, {moved->source, add.ints({rows_of(from), from.back()})}, plain);
    const Edge rows = add.op("Gather", 8, {flat, add.ints(moved->rows), add.ints({0})}, whole);
    const Edge result = add.op("Reshape", 1, {rows, add.ints(last->shape())}, plain);
    result.node->outputs[0].names = last->outputs[0].names;
    graph.replace_uses({last, 0}, result);
    replaced.insert(trace.concats().begin(), trace.concats().end());
  }
  graph.remove_dead();
}

}  // namespace clinfer
