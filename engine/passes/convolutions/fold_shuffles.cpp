// Saves copies in the channel shuffle between two units of a ShuffleNet, which costs a copy of all
// channels, and another one of the half that goes around the next unit:
//   y = shuffle(concat(a, b)),  first half -> around the unit,  second half -> convolution
// The second half of y is made of the second halves of a and b. With the halves of b swapped, by
// reordering its convolution's weights, these are neighbours in concat(a, b). The next convolution
// reads them there, with its weights in their order; only the copy of the other half remains. A
// shuffle or a Gather that only reorders channels costs nothing in front of convolutions that read
// all of them.
#include <algorithm>
#include <cstring>
#include <optional>

#include "engine/graph/insertion.h"
#include "engine/passes/passes.h"
#include "kernels/elementwise/elementwise.h"

namespace clinfer {

namespace {

using Order = std::vector<int64_t>;  // order[i]: the place from which channel i comes

Tensor permuted(const Tensor& value, size_t axis, const Order& order) {
  const Shape& shape = value.shape();
  Tensor result = Tensor::allocate(value.type(), shape);
  size_t outer = 1, inner = size_of(value.type());
  for (size_t d = 0; d < shape.size(); ++d)
    (d < axis ? outer : inner) *= d == axis ? 1 : static_cast<size_t>(shape[d]);
  const auto* from = static_cast<const std::byte*>(value.raw());
  auto* to = static_cast<std::byte*>(result.raw_mutable());
  for (size_t o = 0; o < outer; ++o)
    for (size_t i = 0; i < order.size(); ++i)
      std::memcpy(to + (o * order.size() + i) * inner,
                  from + (o * order.size() + static_cast<size_t>(order[i])) * inner, inner);
  return result;
}

// A concat of two equal halves, the operations that shuffle it, and the split after them.
struct Shuffle {
  Node* concat = nullptr;
  Node* split = nullptr;
  int64_t half = 0;
};

class Shuffles {
 public:
  explicit Shuffles(Graph& graph) : graph_(graph) {}

  void run() {
    for (Node* node : nodes_of(graph_)) {
      if (const auto shuffle = shuffle_at(node)) fold(*shuffle);
      fold_reordering(node);
    }
    graph_.remove_dead();
  }

 private:
  struct NewConstant {
    Node* node;
    size_t input;
    Tensor value;
  };

  // Returns the last of three operations, starting at `apart`, that turn [N, groups * members, H,
  // W] into [N, members * groups, H, W]; nullptr if they do not. 0 groups: any number of them.
  Node* shuffled(Node* apart, int64_t groups) const {
    if (!apart->is("Reshape") || apart->shape().size() != 5) return nullptr;
    const Shape& whole = apart->inputs[0].node->shape(apart->inputs[0].port);
    const Shape& split = apart->shape();
    if (whole.size() != 4 || (groups != 0 && split[1] != groups) ||
        split != Shape{whole[0], split[1], whole[1] / std::max<int64_t>(split[1], 1), whole[2],
                       whole[3]})
      return nullptr;
    Node* transpose = graph_.only_user({apart, 0});
    if (!transpose || !transpose->is("Transpose") || !constant_value(transpose->inputs[1]) ||
        constant_value(transpose->inputs[1])->to_ints() != Order{0, 2, 1, 3, 4})
      return nullptr;
    Node* end = graph_.only_user({transpose, 0});
    return end && end->is("Reshape") && end->shape() == whole ? end : nullptr;
  }

  std::optional<Shuffle> shuffle_at(Node* concat) const {
    if (!concat->is("Concat") || concat->inputs.size() != 2 || concat->shape().size() != 4 ||
        concat->attributes.get_int("axis") != 1)
      return {};
    const Shape& whole = concat->shape();
    const int64_t half = whole[1] / 2;
    for (const Edge& input : concat->inputs)
      if (input.node->shape(input.port)[1] != half) return {};
    Node* end = graph_.only_user({concat, 0});
    if (!end || half % 2 != 0) return {};
    end = shuffled(end, 2);
    if (!end) return {};
    Node* split = graph_.only_user({end, 0});
    if (!split || !(split->is("Split") || split->is("VariadicSplit")) ||
        split->outputs.size() != 2 || split->shape(0) != split->shape(1) ||
        split->shape(0)[1] != half)
      return {};
    return Shuffle{concat, split, half};
  }

  // Returns the data input of an operation that treats each channel separately, and adds to `made`
  // its constants in the new order. Returns nothing for other operations.
  std::optional<Edge> through(Node* node, const Order& order,
                              std::vector<NewConstant>& made) const {
    if (!node->tail.empty() || node->outputs.size() != 1) return {};
    if (node->is("MVN") && node->inputs.size() == 2 && constant_value(node->inputs[1])) {
      for (const int64_t axis : constant_value(node->inputs[1])->to_ints())
        if (axis == 1 || axis == -3) return {};
      return node->inputs[0];
    }
    if (!node->def || node->def->families.empty() ||
        node->def->families.front() != &kElementwiseFamily ||
        node->attributes.get_string("auto_broadcast", "numpy") == "pdpd")
      return {};
    Edge data;
    for (size_t i = 0; i < node->inputs.size(); ++i) {
      const Tensor* value = constant_value(node->inputs[i]);
      if (!value) {
        if (data.node || node->inputs[i].node->shape(node->inputs[i].port) != node->shape())
          return {};
        data = node->inputs[i];
        continue;
      }
      const Shape& shape = value->shape();
      const bool slope = node->is("PReLU") && shape.size() == 1;  // one slope a channel
      if (shape.size() > 4) return {};
      if (!slope && shape.size() < 3) {
        if (value->elements() != 1) return {};
        continue;
      }
      const size_t axis = slope ? 0 : shape.size() - 3;
      if (shape[axis] != 1) made.push_back({node, i, permuted(*value, axis, order)});
    }
    return data.node ? std::optional(data) : std::nullopt;
  }

  // Adds to `made` the constants that make `edge` come with its channels in another order. Returns
  // false if that is impossible.
  bool permute(Edge edge, const Order& order, std::vector<NewConstant>& made) const {
    for (;;) {
      Node* node = edge.node;
      if (graph_.use_count(edge) != 1) return false;
      if (node->is("Convolution")) {
        const Tensor* weights = constant_value(node->inputs[1]);
        if (!weights || !node->tail.empty()) return false;
        made.push_back({node, 1, permuted(*weights, 0, order)});
        return true;
      }
      const auto next = through(node, order, made);
      if (!next) return false;
      edge = *next;
    }
  }

  void replace(std::vector<NewConstant>& made) {
    for (NewConstant& constant : made)
      constant.node->inputs.set(constant.input,
                                Insertion(graph_, constant.node).constant(constant.value));
  }

  // Returns where each channel of the data is among those that a Gather gives, if it gives them
  // all.
  static std::optional<Order> order_after(const Node& gather) {
    const Tensor* indices = constant_value(gather.inputs[1]);
    const Tensor* axis = constant_value(gather.inputs[2]);
    const Shape& data = gather.inputs[0].node->shape(gather.inputs[0].port);
    if (!indices || !axis || data.size() != 4 || gather.shape() != data ||
        gather.attributes.get_int("batch_dims", 0) != 0 || indices->shape().size() != 1)
      return {};
    if (const int64_t at = axis->to_ints()[0]; at != 1 && at != -3) return {};
    Order order(static_cast<size_t>(data[1]), -1);
    const std::vector<int64_t> picked = indices->to_ints();
    for (size_t i = 0; i < picked.size(); ++i) {
      const int64_t channel = picked[i] < 0 ? picked[i] + data[1] : picked[i];
      if (channel < 0 || channel >= data[1] || order[static_cast<size_t>(channel)] >= 0) return {};
      order[static_cast<size_t>(channel)] = static_cast<int64_t>(i);
    }
    return order;
  }

  // Removes reorderings of channels in front of convolutions (RGB for BGR, or a shuffle before a
  // stage) by reordering the convolutions' weights.
  void fold_reordering(Node* node) {
    Node* last = node;
    std::optional<Order> order;
    if (node->is("Gather")) {
      order = order_after(*node);
    } else if ((last = shuffled(node, 0))) {
      const int64_t groups = node->shape()[1], members = node->shape()[2];
      order.emplace();
      for (int64_t c = 0; c < groups * members; ++c)
        order->push_back(c % members * groups + c / members);
    }
    std::vector<NewConstant> made;
    if (!order || !reorder_readers({last, 0}, *order, made)) return;
    replace(made);
    graph_.replace_uses({last, 0}, node->inputs[0]);
  }

  // Adds to `made` the constants that let all readers of `edge` read its channels in another order,
  // the i-th from order[i]. Returns false if that is impossible.
  bool reorder_readers(Edge edge, const Order& order, std::vector<NewConstant>& made) const {
    std::vector<Edge> reordered{edge};
    while (!reordered.empty()) {
      edge = reordered.back();
      reordered.pop_back();
      const std::vector<Node*> readers = graph_.users(edge);
      if (readers.empty()) return false;
      for (Node* reader : readers) {
        const bool grouped = reader->is("GroupConvolution");
        const Tensor* weights =
            grouped || reader->is("Convolution") ? constant_value(reader->inputs[1]) : nullptr;
        if (weights && reader->tail.empty() && !grouped) {
          made.push_back({reader, 1, permuted(*weights, 1, order)});
          continue;
        }
        if (weights && reader->tail.empty() && is_depthwise(*weights, order))
          made.push_back({reader, 1, permuted(*weights, 0, order)});
        else if (through(reader, order, made) != edge)
          return false;
        reordered.push_back({reader, 0});
      }
    }
    return true;
  }

  static bool is_depthwise(const Tensor& weights, const Order& order) {
    const Shape& shape = weights.shape();
    return shape.size() == 5 && shape[0] == static_cast<int64_t>(order.size()) && shape[1] == 1 &&
           shape[2] == 1;
  }

  void fold(const Shuffle& shuffle) {
    const int64_t half = shuffle.half, quarter = half / 2;
    const Edge second{shuffle.split, 1};
    const std::vector<Node*> readers = graph_.users(second);
    std::vector<NewConstant> made;
    // The old channel second[2 t + i] is now at i * quarter + t.
    Order pairs, swapped;
    for (int64_t k = 0; k < half; ++k) {
      pairs.push_back(k % quarter * 2 + k / quarter);
      swapped.push_back((k + quarter) % half);
    }
    for (Node* reader : readers) {
      const Tensor* weights =
          reader->is("Convolution") ? constant_value(reader->inputs[1]) : nullptr;
      if (!weights || !reader->tail.empty()) return;
      made.push_back({reader, 1, permuted(*weights, 1, pairs)});
    }
    if (readers.empty() || !permute(shuffle.concat->inputs[1], swapped, made)) return;
    replace(made);

    // The concat holds the quarters a1, a2, b2, b1.
    const Shape whole = shuffle.concat->shape();
    Insertion add(graph_, shuffle.split);
    const auto reshape = [&](const Edge& x, const Shape& shape) {
      return add.op("Reshape", 1, {x, add.ints(shape)});
    };
    const auto slice = [&](const Edge& x, int64_t start, int64_t stop, int64_t step) {
      return add.op("Slice", 8,
                    {x, add.ints({start}), add.ints({stop}), add.ints({step}), add.ints({1})});
    };
    const Edge quarters = reshape({shuffle.concat, 0}, {whole[0], 4, quarter, whole[2], whole[3]});
    const Edge inner = slice(quarters, 1, 3, 1), outer = slice(quarters, 0, 4, 3);
    const Edge turned = add.op("Transpose", 1, {outer, add.ints({0, 2, 1, 3, 4})});
    const Shape part{whole[0], half, whole[2], whole[3]};
    graph_.replace_uses({shuffle.split, 0}, reshape(turned, part));
    graph_.replace_uses(second, reshape(inner, part));
    graph_.disconnect(shuffle.split);
  }

  Graph& graph_;
};

}  // namespace

void fold_shuffles(Graph& graph, const PassContext&) { Shuffles(graph).run(); }

}  // namespace clinfer
