// Assigns each tensor its memory order, as a tensor of its own, a view or a part of a concat, and
// inserts a Reorder wherever an operation cannot read its input. Three walks:
//   forward   dense layouts by each operation's rule; views follow their inputs
//   backward  inputs of a concat become slices of its output, outermost concat first
//   forward   views and rules again on the final strides
// Afterwards a Concat has no work of its own, and NodeOutput::storage names the output in whose
// memory a tensor lies.
#include <algorithm>
#include <cstdlib>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <unordered_map>

#include "engine/graph/insertion.h"
#include "engine/passes/passes.h"

namespace clinfer {

namespace {

TensorDesc& desc_of(const Edge& edge) { return edge.node->outputs[edge.port].desc; }

bool is_image_rank(const Shape& shape) { return shape.size() == 4 || shape.size() == 5; }

TensorDesc dense(LayoutRule rule, ElementType type, const Shape& shape) {
  return has_channels_last(rule, shape) ? TensorDesc::channels_last(type, shape)
                                        : TensorDesc::row_major(type, shape);
}

// Returns the dimensions larger than 1, from the outermost in memory to the innermost.
std::vector<size_t> memory_order(const TensorDesc& desc) {
  std::vector<size_t> order;
  for (size_t i = 0; i < desc.shape.size(); ++i)
    if (desc.shape[i] != 1) order.push_back(i);
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return std::abs(desc.strides[a]) > std::abs(desc.strides[b]);
  });
  return order;
}

// Returns a dense layout of `shape` whose dimensions lie in memory in the same order as those of
// `model`.
TensorDesc dense_like(const TensorDesc& model, ElementType type, const Shape& shape) {
  TensorDesc plain = TensorDesc::row_major(type, shape);
  if (model.is_row_major()) return plain;
  if (is_image_rank(shape) && model.shape.size() == shape.size()) {
    // Takes channels-last, the usual case, wherever it fits, even if dimensions of size 1 would
    // allow other orders.
    const TensorDesc last = TensorDesc::channels_last(type, shape);
    if (model.shape[1] == 1 ? model.is_channels_last() : model.strides[1] == 1) return last;
  }
  std::vector<size_t> order = memory_order(model);
  for (size_t i = shape.size(); i-- > 0;)
    if (model.shape[i] == 1) order.insert(order.begin(), i);
  int64_t stride = 1;
  for (size_t i = order.size(); i-- > 0;) {
    plain.strides[order[i]] = stride;
    stride *= shape[order[i]];
  }
  return plain;
}

// Returns whether channels are innermost, followed by the other dimensions from the last to the
// first. Gaps are allowed. Image kernels expect this.
bool is_image_layout(const TensorDesc& desc) {
  if (desc.shape[1] != 1 && desc.strides[1] != 1) return false;
  int64_t below = desc.shape[1];
  for (size_t i = desc.shape.size(); i-- > 1;) {
    // Takes dimensions from the last to the first, and then the batch.
    const size_t d = i == 1 ? 0 : i;
    if (desc.shape[d] == 1) continue;
    if (desc.strides[d] < below) return false;
    below = desc.strides[d] * desc.shape[d];
  }
  return true;
}

// Returns whether the operation is a view that leaves out elements and keeps the others in their
// order.
bool cuts(const Node& node) {
  return node.is("Split") || node.is("VariadicSplit") || node.is("StridedSlice") ||
         node.is("Slice");
}

// The layouts that readers want: the nearest reader with a preference decides, an image operation
// for channels-last, others (transposes of NHWC models, sequences) for row-major. Operations that
// take any layout pass on the preference of their own readers.
class Wishes {
 public:
  explicit Wishes(const Graph& graph) {
    for (auto node = graph.nodes().rbegin(); node != graph.nodes().rend(); ++node)
      for (const bool image : {false, true}) find(graph, **node, image);
  }

  bool channels_last(const Node& producer) const {
    if (!has_channels_last(LayoutRule::image, producer.shape())) return false;
    const auto& found = nearest_[is_image_rank(producer.shape())];
    const auto at = found.find(&producer);
    return at != found.end() && at->second.channels_last;
  }

 private:
  struct Wish {
    bool channels_last;
    size_t distance;  // in operations
  };

  // Looks for the nearest wish. `image`: the tensor in question is an image, so that a concat takes
  // its input for one, too.
  void find(const Graph& graph, const Node& producer, bool image) {
    std::optional<Wish> nearest;
    for (const Node* user : graph.users(&producer)) {
      const auto wish = wish_of(*user, image);
      if (wish && (!nearest || wish->distance < nearest->distance)) nearest = wish;
    }
    if (nearest) nearest_[image][&producer] = *nearest;
  }

  std::optional<Wish> wish_of(const Node& user, bool image) const {
    if (!user.def) return {};
    const bool asks_on = cuts(user) && is_image_rank(user.shape());
    if (!asks_on) {
      if (user.def->view) return Wish{false, 0};
      if (user.def->layout == LayoutRule::image || (user.is("Concat") && image))
        return Wish{true, 0};
      if (user.def->layout != LayoutRule::follow) return {};
    }
    const auto further = nearest_[image].find(&user);
    if (further == nearest_[image].end()) return {};
    return Wish{further->second.channels_last, further->second.distance + 1};
  }

  std::unordered_map<const Node*, Wish> nearest_[2];  // by `image`
};

class Layouts {
 public:
  Layouts(Graph& graph, const PassContext& context)
      : graph_(graph), context_(context), wishes_(graph) {}

  void run() {
    first_walk();
    place_concats();
    wishes_ = Wishes(graph_);
    last_walk();
  }

 private:
  // Inserts a copy of `edge` in the layout `desc` right before `before`.
  Edge reorder(const Edge& edge, TensorDesc desc, Node* before) {
    const Edge copy = Insertion(graph_, before, edge.node->name).op("Reorder", 1, {edge});
    NodeOutput& output = copy.node->outputs[0];
    output.type = desc.type;
    output.shape = desc.shape;
    output.desc = std::move(desc);
    reorders_[{edge.node, edge.port}].push_back(copy.node);
    return copy;
  }

  void reorder_input(Node* node, size_t index, TensorDesc desc) {
    const Edge from = node->inputs[index];
    desc.type = from.node->outputs[from.port].type;
    // Uses a copy again that was made for an earlier user.
    std::vector<Node*>& copies = reorders_[{from.node, from.port}];
    std::erase_if(copies, [](const Node* copy) { return copy->outputs[0].storage.node; });
    Node* first = nullptr;
    for (Node* copy : copies)
      if (copy->outputs[0].desc == desc && graph_.is_before(copy, node) &&
          (!first || graph_.is_before(copy, first)))
        first = copy;
    node->inputs.set(index, first ? Edge{first, 0} : reorder(from, desc, node));
  }

  // Returns the layout that a reshape's input must have for its view to be `wanted`, or nothing if
  // no layout does.
  static std::optional<TensorDesc> input_layout(const Node& reshape, const TensorDesc& wanted) {
    OpDesc back = describe(reshape);
    const Shape from = back.inputs[0].shape;
    back.inputs[0] = wanted;
    back.outputs[0].shape = from;
    const auto views = find_op("Reshape", 1)->view(back);
    return views ? std::optional(views->front()) : std::nullopt;
  }

  // Returns the layout that a transpose's input must have for its view to be `wanted`.
  static TensorDesc before_transpose(const Node& transpose, const TensorDesc& wanted) {
    OpDesc numbered = describe(transpose);
    std::iota(numbered.inputs[0].strides.begin(), numbered.inputs[0].strides.end(), 0);
    const Shape from = transpose.def->view(numbered)->front().strides;
    TensorDesc before = wanted;
    for (size_t d = 0; d < from.size(); ++d) {
      before.shape[from[d]] = wanted.shape[d];
      before.strides[from[d]] = wanted.strides[d];
    }
    return before;
  }

  // Returns dimensions from which both shapes can be composed, or nothing if their factors cross.
  static std::optional<Shape> split_of_both(const Shape& a, const Shape& b) {
    std::set<int64_t> products{1};
    for (const Shape* shape : {&a, &b}) {
      int64_t product = 1;
      for (size_t d = shape->size(); d-- > 0;) products.insert(product *= (*shape)[d]);
    }
    Shape split;
    int64_t before = 1;
    for (const int64_t product : products) {
      if (product % before != 0) return {};
      if (product != before) split.insert(split.begin(), product / before);
      before = product;
    }
    return split;
  }

  // Handles a reshape between two images whose orders in memory have no common view: splits the
  // shape into the dimensions of both, and copies the input once into the order that the reader
  // wants.
  void copy_once(Node* node) {
    const Edge in = node->inputs[0];
    const auto split = split_of_both(in.node->shape(in.port), node->shape());
    if (!split || split->empty()) return;
    Insertion add(graph_, node, in.node->name);
    const Edge parts = add.op("Reshape", 1, {in, add.ints(*split)}, {{"special_zero", "false"}});
    NodeOutput& output = parts.node->outputs[0];
    output.type = in.node->outputs[in.port].type;
    const auto view = parts.node->def->view(describe(*parts.node));
    if (!view) return graph_.remove_dead();
    output.desc = view->front();
    output.desc.type = output.type;
    output.storage = in;
    node->inputs.set(0, parts);
  }

  // Makes the outputs of a view operation windows onto its input. If the input's layout allows
  // none, copies the input into a layout that does. A constant is always copied: it has memory for
  // the kernels alone that read it as it is.
  void make_view(Node* node) {
    if (const Edge in = node->inputs[0]; in.node->is("Constant"))
      reorder_input(node, 0, TensorDesc::row_major(in.node->outputs[0].type, in.node->shape()));
    auto views = node->def->view(describe(*node));
    if (!views) {
      std::optional<TensorDesc> copy;
      if (reshapes(*node) && wishes_.channels_last(*node) &&
          !input_layout(*node, TensorDesc::channels_last(node->outputs[0].type, node->shape())))
        copy_once(node);
      if (reshapes(*node) && wishes_.channels_last(*node))
        copy = input_layout(*node, TensorDesc::channels_last(node->outputs[0].type, node->shape()));
      const Edge in = node->inputs[0];
      reorder_input(
          node, 0,
          copy ? *copy
               : TensorDesc::row_major(in.node->outputs[in.port].type, in.node->shape(in.port)));
      views = node->def->view(describe(*node));
      if (!views)
        throw Error(ErrorCode::unsupported, label(*node) + ": cannot be expressed as a view");
    }
    for (size_t i = 0; i < views->size(); ++i) {
      NodeOutput& output = node->outputs[i];
      output.desc = (*views)[i];
      if (output.desc.shape != output.shape)
        throw Error(ErrorCode::unsupported,
                    label(*node) +
                        ": its shape follows from values that are too large to be computed when "
                        "the model is loaded");
      output.desc.type = output.type;
      output.storage = node->inputs[0];
    }
  }

  void first_walk() {
    for (const auto& owned : graph_.nodes()) {
      Node* node = owned.get();
      for (NodeOutput& output : node->outputs) {
        output.storage = {};
        output.desc = TensorDesc::row_major(output.type, output.shape);
      }
      if (node->is("Constant") || node->is("Result")) continue;
      if (node->is("Parameter")) {
        if (wishes_.channels_last(*node) && !context_.is_body)
          desc_of({node, 0}) = TensorDesc::channels_last(node->outputs[0].type, node->shape());
        continue;
      }
      if (node->def->view) {
        make_view(node);
        continue;
      }
      if (goes_out_in_rows(*node)) {
        set_rows(*node);
        continue;
      }
      for (NodeOutput& output : node->outputs) output.desc = natural(*node, output);
    }
  }

  // Returns whether a concat is a result, and all of its inputs but one can be written at once into
  // rows of the type that leaves the device. Copying the other one into these is less than copying
  // the whole result in the end.
  bool goes_out_in_rows(const Node& node) {
    if (!node.is("Concat") || node.inputs.size() < 2) return false;
    for (const Node* user : graph_.users(&node))
      if (!user->is("Result")) return false;
    size_t copied = 0;
    for (const Edge& input : node.inputs)
      copied += !placeable(input) || !desc_of(input).is_row_major() ||
                (is_widened(node.outputs[0]) && !widens(input));
    return copied <= 1;
  }

  // Returns whether the operation that computes the input, for this concat alone, can store it as
  // f32.
  bool widens(const Edge& input) {
    NodeOutput& part = input.node->outputs[input.port];
    if (!input.node->def->converts || input.node->outputs.size() != 1 ||
        graph_.use_count(input) != 1 || part.type != ElementType::f16)
      return false;
    TensorDesc wide = part.desc;
    wide.type = ElementType::f32;
    return writable(input, wide);
  }

  void set_rows(Node& concat) {
    NodeOutput& output = concat.outputs[0];
    if (is_widened(output)) {
      output.type = ElementType::f32;
      for (const Edge& input : concat.inputs) {
        if (!placeable(input) || !widens(input)) continue;
        NodeOutput& part = input.node->outputs[input.port];
        part.type = part.desc.type = ElementType::f32;
      }
    }
    output.desc = TensorDesc::row_major(output.type, output.shape);
  }

  // Returns whether a result of this type and size is converted to f32 on the device.
  bool is_widened(const NodeOutput& output) const {
    constexpr int64_t kSmall = 4096;  // elements that the host may convert itself
    return output.type == ElementType::f16 && count(output.shape) > kSmall &&
           !context_.half_outputs;
  }

  // Returns the dense layout of an output by the operation's rule.
  TensorDesc natural(const Node& node, const NodeOutput& output) const {
    const LayoutRule rule = node.is("Concat") ? LayoutRule::follow : node.def->layout;
    if (rule != LayoutRule::follow) return dense(rule, output.type, output.shape);
    const NodeOutput* model = nullptr;
    for (const Edge& input : node.inputs) {
      const NodeOutput& candidate = input.node->outputs[input.port];
      if (input.node->is("Constant") || candidate.shape.size() != output.shape.size()) continue;
      if (!model || count(candidate.shape) > count(model->shape)) model = &candidate;
    }
    return model ? dense_like(model->desc, output.type, output.shape)
                 : dense(rule, output.type, output.shape);
  }

  // Returns whether the memory of `edge` may be moved into another tensor's memory: `edge` must be
  // the plain output of a device operation.
  bool placeable(const Edge& edge) const {
    const Node& node = *edge.node;
    if (node.outputs[edge.port].storage.node || !node.def || node.def->view ||
        !node.def->host_reason.empty())
      return false;
    return node.is("Concat") || !node.def->families.empty();
  }

  // Returns whether the producer's kernels (or, for a concat, its parts) can write the layout.
  bool writable(const Edge& edge, const TensorDesc& desc) const {
    if (edge.node->is("Concat")) return true;
    const TensorDesc kept = desc_of(edge);
    desc_of(edge) = desc;
    const bool accepted =
        !accepting_families(*edge.node->def, describe(*edge.node), context_.traits).empty();
    desc_of(edge) = kept;
    return accepted;
  }

  void place_concats() {
    std::vector<Node*> nodes = nodes_of(graph_);
    for (; !nodes.empty(); nodes.pop_back()) {
      Node* concat = nodes.back();
      if (!concat->is("Concat")) continue;
      const TensorDesc whole = desc_of({concat, 0});
      const int64_t rank = static_cast<int64_t>(whole.shape.size());
      int64_t axis = concat->attributes.get_int("axis");
      if (axis < 0) axis += rank;
      int64_t at = 0;
      for (size_t k = 0; k < concat->inputs.size(); ++k) {
        const Edge input = concat->inputs[k];
        TensorDesc slot = whole;
        slot.shape = input.node->shape(input.port);
        slot.offset += at * whole.strides[axis];
        at += slot.shape[axis];
        if (count(slot.shape) == 0) continue;
        if (!put_into(concat, input, slot)) {
          const Edge copy = reorder(input, slot, concat);
          copy.node->outputs[0].storage = {concat, 0};
          concat->inputs.set(k, copy);
        }
      }
    }
  }

  bool put_into(Node* concat, const Edge& input, const TensorDesc& slot) {
    const Edge root = storage_root(input);
    if (!placeable(root) || root.node == concat || root.node->outputs[root.port].type != slot.type)
      return false;
    TensorDesc moved;
    if (root == input) {
      if (memory_order(desc_of(input)) != memory_order(slot)) return false;
      moved = slot;
    } else if (const auto before = layout_before_views(input, slot)) {
      if (memory_order(desc_of(root)) != memory_order(*before)) return false;
      moved = *before;
    } else {
      // The input is a reshaped or transposed view of a whole root, so the root's block moves there
      // if the slot is one block.
      const TensorDesc view = desc_of(input);
      if (!view.is_row_major() || !slot.is_row_major() || view.offset != 0 ||
          view.elements() != desc_of(root).elements() || !desc_of(root).is_dense())
        return false;
      moved = desc_of(root);
      moved.offset = slot.offset;
    }
    if (!writable(root, moved)) return false;
    desc_of(root) = moved;
    root.node->outputs[root.port].storage = {concat, 0};
    return true;
  }

  // Returns the layout that the root must have for its view through reshapes and transposes to be
  // `slot`, or nothing if no layout does.
  static std::optional<TensorDesc> layout_before_views(Edge edge, TensorDesc slot) {
    for (; edge.node->outputs[edge.port].storage.node; edge = edge.node->inputs[0]) {
      if (edge.node->is("Transpose")) {
        slot = before_transpose(*edge.node, slot);
        continue;
      }
      const auto from = reshapes(*edge.node) ? input_layout(*edge.node, slot) : std::nullopt;
      if (!from) return {};
      slot = *from;
    }
    return slot;
  }

  void last_walk() {
    for (const auto& owned : graph_.nodes()) {
      Node* node = owned.get();
      if (node->is("Constant") || node->is("Parameter") || node->is("Concat")) continue;
      if (node->is("Result"))
        finish_result(node);
      else if (node->def->view)
        make_view(node);
      else if (node->def->host_reason.empty())
        satisfy(node);
    }
  }

  // Makes a result row-major; converts large f16 results to f32 on the device, if wanted.
  void finish_result(Node* node) {
    const Edge in = node->inputs[0];
    if (in.node->is("Constant")) return;
    const NodeOutput& from = in.node->outputs[in.port];
    const bool widen = is_widened(from);
    if (from.desc.is_row_major() && !widen && !storage_root(in).node->is("Parameter")) return;
    node->inputs.set(
        0,
        reorder(in, TensorDesc::row_major(widen ? ElementType::f32 : from.type, from.shape), node));
  }

  static TensorDesc rows_of(const Edge& edge) {
    const TensorDesc& desc = desc_of(edge);
    return TensorDesc::row_major(desc.type, desc.shape);
  }

  // Returns whether matrix instructions take a product with weights only if its input is copied
  // into rows. On an H200, 2,400 rows of 256 read by columns take 108 us without these
  // instructions, the copy and the product 16.
  bool is_better_by_rows(const Node& node) const {
    if (context_.traits.matrix != MatrixUnit::ptx || !node.is("MatMul") ||
        !node.inputs[1].node->is("Constant") || node.inputs[0].node->is("Constant"))
      return false;
    OpDesc desc = describe(node);
    if (desc.inputs[0].is_row_major()) return false;
    const auto as_it_lies = accepting_families(*node.def, desc, context_.traits);
    desc.inputs[0] = rows_of(node.inputs[0]);
    const auto by_rows = accepting_families(*node.def, desc, context_.traits);
    // The last family reads anything, without matrix instructions.
    return !by_rows.empty() && by_rows.front() != node.def->families.back() &&
           (as_it_lies.empty() || as_it_lies.front() == node.def->families.back());
  }

  void satisfy(Node* node) {
    const LayoutRule rule = node->def->layout;
    for (size_t k = 0; k < node->inputs.size(); ++k) {
      const Edge input = node->inputs[k];
      if (input.node->is("Constant")) continue;
      const TensorDesc& desc = desc_of(input);
      const bool image = rule == LayoutRule::image && has_channels_last(rule, desc.shape);
      const bool wrong = image ? !is_image_layout(desc)
                         : rule == LayoutRule::row_major || rule == LayoutRule::image
                             ? !desc.is_row_major()
                             : false;
      if (wrong)
        reorder_input(node, k,
                      image ? TensorDesc::channels_last(desc.type, desc.shape)
                            : TensorDesc::row_major(desc.type, desc.shape));
    }
    if (is_better_by_rows(*node)) reorder_input(node, 0, rows_of(node->inputs[0]));
    if (!accepting_families(*node->def, describe(*node), context_.traits).empty()) return;
    // Gives all inputs the operation's dense layout, since no kernel takes these strides. If that
    // does not help, the plan reports why.
    for (size_t k = 0; k < node->inputs.size(); ++k) {
      const Edge input = node->inputs[k];
      if (input.node->is("Constant")) continue;
      const TensorDesc& desc = desc_of(input);
      const TensorDesc plain = dense(rule, desc.type, desc.shape);
      if (desc.strides != plain.strides || desc.offset != 0) reorder_input(node, k, plain);
    }
  }

  Graph& graph_;
  const PassContext& context_;
  Wishes wishes_;
  // Keyed by the output that is copied.
  std::map<std::pair<const Node*, int>, std::vector<Node*>> reorders_;
};

}  // namespace

void assign_layouts(Graph& graph, const PassContext& context) { Layouts(graph, context).run(); }

}  // namespace clinfer
