// The graph: editing, sorting, cloning, shape inference through ShapeOf chains, host evaluation.
#include "engine/graph/graph.h"

#include <gtest/gtest.h>

#include "engine/graph/evaluate.h"

namespace clinfer {
namespace {

// An operation of the test's own: adds 1 to every element and needs the first value of its second
// input to be known.
std::vector<ValueInfo> infer_add_one(const ShapeContext& context) {
  if (context.inputs.size() > 1 && context.inputs[1].value.empty())
    throw Error(ErrorCode::unsupported, "the second input must be constant");
  Shape shape = context.inputs[0].shape;
  if (context.inputs.size() > 1) shape = context.inputs[1].value.to_ints();
  return {{context.inputs[0].type, shape}};
}

void evaluate_add_one(const OpDesc&, std::span<const Tensor> inputs, std::span<Tensor> outputs) {
  const std::vector<float> from = inputs[0].to_floats();
  for (size_t i = 0; i < from.size() && i < static_cast<size_t>(outputs[0].elements()); ++i) {
    if (outputs[0].type() == ElementType::f32)
      outputs[0].mutable_data<float>()[i] = from[i] + 1;
    else
      outputs[0].mutable_data<int64_t>()[i] = static_cast<int64_t>(from[i]) + 1;
  }
}

const OpDef& add_one() {
  static const OpDef def{
      .type = "AddOne", .opsets = {1}, .infer_shapes = infer_add_one, .evaluate = evaluate_add_one};
  return def;
}

const OpDef& shape_of() {
  static const OpDef def{
      .type = "ShapeOf",
      .opsets = {3},
      .infer_shapes = [](const ShapeContext& context) -> std::vector<ValueInfo> {
        return {{ElementType::i64, {static_cast<int64_t>(context.inputs[0].shape.size())}}};
      },
      .evaluate = [](const OpDesc&, std::span<const Tensor>, std::span<Tensor>) {}};
  return def;
}

Node* add(Graph& graph, const OpDef& def, const std::string& name, std::vector<Edge> inputs) {
  Node* node = graph.insert(nullptr, def.type, name);
  node->def = &def;
  node->inputs = std::move(inputs);
  node->outputs.resize(1);
  return node;
}

Node* add_parameter(Graph& graph, Shape shape) {
  Node* node = graph.insert(nullptr, "Parameter", "data");
  node->outputs.resize(1);
  node->outputs[0].shape = std::move(shape);
  graph.parameters.push_back(node);
  return node;
}

void add_result(Graph& graph, Edge edge) {
  Node* node = graph.insert(nullptr, "Result", "result");
  node->inputs = {edge};
  graph.results.push_back(node);
}

std::vector<std::string> names(const Graph& graph) {
  std::vector<std::string> all;
  for (const auto& node : graph.nodes) all.push_back(node->name);
  return all;
}

// data -> a -> b -> result
struct Chain : testing::Test {
  Chain() {
    data = add_parameter(graph, {2});
    a = add(graph, add_one(), "a", {{data, 0}});
    b = add(graph, add_one(), "b", {{a, 0}});
    add_result(graph, {b, 0});
    infer_shapes(graph);
  }
  Graph graph;
  Node *data, *a, *b;
};

TEST_F(Chain, InsertsWithAFreshIdBeforeANode) {
  a->id = 40;
  Node* added = graph.insert(b, "AddOne", "new");
  EXPECT_EQ(added->id, 41);
  EXPECT_EQ(names(graph), (std::vector<std::string>{"data", "a", "new", "b", "result"}));
}

TEST_F(Chain, FindsAndReplacesUses) {
  Node* both = add(graph, add_one(), "both", {{a, 0}, {a, 0}});
  EXPECT_EQ(graph.users(Edge{a, 0}), (std::vector<Node*>{b, both, both}));
  EXPECT_EQ(graph.users(a), (std::vector<Node*>{b, both, both}));
  EXPECT_TRUE(graph.users(Edge{a, 1}).empty());
  graph.replace_uses({a, 0}, {data, 0});
  EXPECT_TRUE(graph.users(a).empty());
  EXPECT_EQ(graph.users(data).size(), 4u);
}

TEST_F(Chain, RemovesWhatNoResultNeedsButKeepsParameters) {
  add_parameter(graph, {1})->name = "unused";
  add(graph, add_one(), "dead", {{a, 0}});
  graph.remove_dead();
  EXPECT_EQ(names(graph), (std::vector<std::string>{"data", "a", "b", "result", "unused"}));
}

TEST_F(Chain, SortsStably) {
  std::swap(graph.nodes[1], graph.nodes[3]);  // result, b, a
  graph.insert_constant(graph.nodes[0].get(), "c", Tensor::allocate(ElementType::f32, {1}));
  graph.sort();
  EXPECT_EQ(names(graph), (std::vector<std::string>{"c", "data", "a", "b", "result"}));
}

TEST_F(Chain, NamesANodeOnACycle) {
  a->inputs[0] = {b, 0};
  try {
    graph.sort();
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::bad_model);
    const std::string what = error.what();
    EXPECT_TRUE(what.find("\"a\"") != std::string::npos || what.find("\"b\"") != std::string::npos)
        << what;
  }
}

TEST_F(Chain, ClonesDeeply) {
  b->outputs[0].storage = {a, 0};
  const auto copy = graph.clone();
  ASSERT_EQ(copy->nodes.size(), graph.nodes.size());
  for (size_t i = 0; i < copy->nodes.size(); ++i) {
    EXPECT_NE(copy->nodes[i].get(), graph.nodes[i].get());
    for (const Edge& input : copy->nodes[i]->inputs) EXPECT_EQ(graph.users(input.node).size(), 0u);
  }
  EXPECT_EQ(copy->nodes[2]->outputs[0].storage, (Edge{copy->nodes[1].get(), 0}));
  copy->nodes[1]->name = "changed";
  EXPECT_EQ(a->name, "a");
  EXPECT_EQ(copy->parameters[0], copy->nodes[0].get());
  EXPECT_EQ(copy->results[0], copy->nodes[3].get());
}

TEST_F(Chain, Evaluates) {
  const Tensor input = Tensor::of(ElementType::i32, {2}, std::vector<int32_t>{5, 7});  // converted
  std::vector<std::string> seen;
  const auto outputs =
      evaluate_graph(graph, std::vector<Tensor>{input},
                     [&](const Node& node, std::span<const Tensor>) { seen.push_back(node.name); });
  EXPECT_EQ(outputs.at(0).to_floats(), (std::vector<float>{7, 9}));
  EXPECT_EQ(seen, (std::vector<std::string>{"a", "b"}));
  EXPECT_THROW(evaluate_graph(graph, {}), Error);
  EXPECT_THROW(evaluate_graph(graph, std::vector<Tensor>{Tensor::allocate(ElementType::f32, {3})}),
               Error);
}

TEST_F(Chain, EvaluatesShapesOtherThanInferred) {
  const Tensor input = Tensor::of(ElementType::f32, {3}, std::vector<float>{5, 7, 8});
  EXPECT_EQ(evaluate_node(*a, std::vector<Tensor>{input}, true).at(0).to_floats(),
            (std::vector<float>{6, 8, 9}));
}

TEST_F(Chain, ComputesNothingWithoutElements) {
  static int calls = 0;
  const OpDef counting{
      .type = "Counting",
      .opsets = {1},
      .infer_shapes = infer_add_one,
      .evaluate = [](const OpDesc&, std::span<const Tensor>, std::span<Tensor>) { ++calls; }};
  a->def = &counting;
  const auto evaluated = [&](const Shape& shape) {
    a->outputs[0].shape = shape;
    return evaluate_node(*a, std::vector<Tensor>{Tensor::allocate(ElementType::f32, shape)}).at(0);
  };
  EXPECT_EQ(evaluated({2, 0}).shape(), (Shape{2, 0}));
  EXPECT_EQ(calls, 0);
  evaluated({2, 1});
  EXPECT_EQ(calls, 1);
}

TEST_F(Chain, EvaluatesTails) {
  a->tail = {{.function = "multiply", .operand = 1}};
  a->own_inputs = 1;
  a->inputs.push_back(
      {graph.insert_constant(a, "two", Tensor::of(ElementType::f32, {1}, std::vector<float>{2})),
       0});
  infer_shapes(graph);
  const Tensor input = Tensor::of(ElementType::f32, {2}, std::vector<float>{5, 7});
  EXPECT_EQ(evaluate_graph(graph, std::vector<Tensor>{input}).at(0).to_floats(),
            (std::vector<float>{13, 17}));
}

TEST(Graph, InfersShapesThroughShapeOf) {
  Graph graph;
  Node* data = add_parameter(graph, {4, 6});
  Node* shape = add(graph, shape_of(), "shape", {{data, 0}});
  Node* target = add(graph, add_one(), "target", {{shape, 0}});
  Node* reshaped = add(graph, add_one(), "reshaped", {{data, 0}, {target, 0}});
  add_result(graph, {reshaped, 0});
  infer_shapes(graph);
  EXPECT_EQ(reshaped->shape(), (Shape{5, 7}));
  data->outputs[0].shape = {8, 1, 2};  // re-batched: inferred anew
  infer_shapes(graph);
  EXPECT_EQ(reshaped->shape(), (Shape{9, 2, 3}));
}

TEST(Graph, NamesTheLayerWhoseShapeDependsOnData) {
  Graph graph;
  Node* data = add_parameter(graph, {2});
  add_result(graph, {add(graph, add_one(), "reshaped", {{data, 0}, {data, 0}}), 0});
  try {
    infer_shapes(graph);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::unsupported);
    EXPECT_NE(std::string(error.what()).find("layer \"reshaped\" (AddOne, opset1, id 1): "),
              std::string::npos)
        << error.what();
  }
}

TEST(Graph, RefusesImpossibleAndHugeShapes) {
  for (const std::vector<int64_t>& shape :
       {std::vector<int64_t>{1 << 20, 1 << 20}, {int64_t{1} << 62, 0, int64_t{1} << 62}, {-2, 3}}) {
    Graph graph;
    Node* data = add_parameter(graph, {2});
    const Tensor target = Tensor::of(ElementType::i64, {static_cast<int64_t>(shape.size())}, shape);
    Node* constant = graph.insert_constant(nullptr, "target", target);
    add(graph, add_one(), "huge", {{data, 0}, {constant, 0}});
    EXPECT_THROW(infer_shapes(graph), Error) << to_string(shape);
  }
}

TEST(Graph, LongChainsNeedNoStack) {
  Graph graph;
  Node* data = add_parameter(graph, {2});
  Node* last = add(graph, shape_of(), "shape", {{data, 0}});
  for (int i = 0; i < 20000; ++i) {
    auto node = std::make_unique<Node>();
    node->id = i + 10;
    node->type = "AddOne";
    node->def = &add_one();
    node->inputs = {{last, 0}};
    node->outputs.resize(1);
    last = node.get();
    graph.nodes.push_back(std::move(node));
  }
  Node* reshaped = add(graph, add_one(), "reshaped", {{data, 0}, {last, 0}});
  infer_shapes(graph);
  EXPECT_EQ(reshaped->shape(), (Shape{20002}));
}

TEST_F(Chain, DescribesWithDefaultLayoutsAndSetOnes) {
  EXPECT_EQ(describe(*a).inputs[0], TensorDesc::row_major(ElementType::f32, {2}));
  TensorDesc strided = TensorDesc::row_major(ElementType::f32, {2});
  strided.strides = {3};
  strided.offset = 1;
  data->outputs[0].desc = strided;
  EXPECT_EQ(describe(*a).inputs[0], strided);
  EXPECT_EQ(describe(*a).own_inputs, 1u);
}

TEST_F(Chain, DrawsDot) {
  a->name = "quote \" and\nbreak";
  const std::string dot = to_dot(graph);
  EXPECT_NE(dot.find("quote \\\" and break"), std::string::npos) << dot;
  EXPECT_NE(dot.find("n1 -> n2"), std::string::npos);
  EXPECT_NE(dot.find("f32[2]"), std::string::npos);
}

TEST(Printable, KeepsMessagesOnOneShortLine) {
  EXPECT_EQ(printable("a\nb\x7f"), "a b?");
  EXPECT_LT(printable(std::string(5000, 'x')).size(), 300u);
}

}  // namespace
}  // namespace clinfer
