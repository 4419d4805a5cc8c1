// The pass that turns loops of recurrent cells into sequences: the values of the graph stay.
#include <cstring>

#include "tests/engine/passes/pass_test.h"

namespace clinfer {
namespace {

using test::count_of;
using test::GraphBuilder;
using test::random_tensor;

constexpr int64_t kSteps = 5, kImages = 2, kInputs = 3, kHidden = 4;

struct Case {
  std::string cell = "LSTMCell";
  int64_t axis = 1, stride = 1, output_stride = 1;
  bool scaled = false;      // the cell's output is scaled in the body
  bool cell_state = false;  // what is joined is the second state
};

Shape with(Shape shape, int64_t axis, int64_t size) {
  shape.insert(shape.begin() + axis, size);
  return shape;
}

std::shared_ptr<GraphBody> cell_body(const Case& c) {
  const int64_t gates = c.cell == "LSTMCell" ? 4 : c.cell == "GRUCell" ? 3 : 1;
  GraphBuilder b;
  const Edge x = b.parameter(with({kImages, kInputs}, c.axis, 1));
  std::vector<Edge> inputs{b.op("Squeeze", 1, {x, b.ints({c.axis})})};
  const size_t states = gates == 4 ? 2 : 1;
  for (size_t s = 0; s < states; ++s) inputs.push_back(b.parameter({kImages, kHidden}));
  inputs.push_back(b.constant(random_tensor({gates * kHidden, kInputs}, -1, 1, 1)));
  inputs.push_back(b.constant(random_tensor({gates * kHidden, kHidden}, -1, 1, 2)));
  inputs.push_back(b.constant(random_tensor({gates * kHidden}, -1, 1, 3)));
  const Edge cell = b.op(c.cell,
                         c.cell == "LSTMCell"  ? 4
                         : c.cell == "GRUCell" ? 3
                                               : 1,
                         inputs, {{"hidden_size", std::to_string(kHidden)}}, states);
  Edge joined{cell.node, c.cell_state ? 1 : 0};
  if (c.scaled) joined = b.op("Multiply", 1, {joined, b.number(2)});
  b.result(b.op("Unsqueeze", 1, {joined, b.ints({c.axis})}));
  for (size_t s = 0; s < states; ++s) b.result({cell.node, static_cast<int>(s)});
  auto body = std::make_shared<GraphBody>(b.finish());
  for (size_t s = 0; s < states; ++s) body->back_edges.push_back({1 + s, 1 + s});
  return body;
}

// Outputs: all steps' first state, then the last states.
std::unique_ptr<Graph> loop_graph(const Case& c) {
  GraphBuilder b;
  auto body = cell_body(c);
  const size_t states = body->back_edges.size();
  const auto along = [&](int64_t stride) {
    return Body::Port{0, 0, true, c.axis, stride < 0 ? -1 : 0, stride < 0 ? 0 : -1, stride, 1};
  };
  std::vector<Edge> inputs{b.parameter(with({kImages, kInputs}, c.axis, kSteps))};
  body->inputs = {along(c.stride)};
  body->outputs = {along(c.output_stride)};
  for (size_t s = 1; s <= states; ++s) {
    inputs.push_back(b.parameter({kImages, kHidden}));
    body->inputs.push_back({s, s});
    body->outputs.push_back({s, s});
  }
  Insertion add(b.graph(), nullptr, "loop");
  const Edge loop = add.op("TensorIterator", 1, inputs, {}, 1 + states, {body});
  for (size_t s = 0; s <= states; ++s) b.result({loop.node, static_cast<int>(s)});
  return b.finish();
}

TEST(FindSequences, OfEachCellAndOrder) {
  for (const char* cell : {"LSTMCell", "GRUCell", "RNNCell"})
    for (const int64_t axis : {0, 1})
      for (const int64_t stride : {1, -1}) {
        SCOPED_TRACE(std::string(cell) + ", axis " + std::to_string(axis) + ", stride " +
                     std::to_string(stride));
        auto graph = loop_graph({cell, axis, stride, stride});
        test::expect_same_values(*graph, "find_sequences", -1, 1);
        EXPECT_EQ(count_of(*graph, "TensorIterator"), 0u);
        const Node* sequence =
            test::find(*graph, std::string(cell, std::strlen(cell) - 4) + "Sequence");
        ASSERT_TRUE(sequence);
        EXPECT_EQ(sequence->attributes.get_string("direction"), stride > 0 ? "forward" : "reverse");
        // Steps along the second dimension are what a sequence reads.
        EXPECT_EQ(count_of(*graph, "Transpose"), axis == 0 ? 2u : 0u);
      }
}

TEST(FindSequences, LeavesOtherLoops) {
  Case scaled, turned, second;
  scaled.scaled = true;
  turned.output_stride = -1;
  second.cell_state = true;
  for (const Case& c : {scaled, turned, second}) {
    auto graph = loop_graph(c);
    test::expect_same_values(*graph, "find_sequences", -1, 1);
    EXPECT_EQ(count_of(*graph, "TensorIterator"), 1u);
  }
}

}  // namespace
}  // namespace clinfer
