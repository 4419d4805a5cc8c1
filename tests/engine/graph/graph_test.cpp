// The graph: editing, sorting, cloning, shape inference through ShapeOf chains, host evaluation.
#include "engine/graph/graph.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "engine/graph/evaluate.h"
#include "engine/graph/insertion.h"
#include "tests/engine/graph/graph_builder.h"
#include "tests/kernels/op_test.h"

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

Node* add_parameter(Graph& graph, const Shape& shape) {
  return Insertion(graph, nullptr, "data").parameter(ElementType::f32, shape).node;
}

void add_result(Graph& graph, Edge edge) { Insertion(graph, nullptr, "result").result(edge); }

std::vector<std::string> names(const Graph& graph) {
  std::vector<std::string> all;
  for (const auto& node : graph.nodes()) all.push_back(node->name);
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
  Node* added = graph.insert(b, "AddOne", "new");
  EXPECT_EQ(added->id, 4);
  auto numbered = std::make_unique<Node>();
  numbered->id = 40;
  numbered->name = "numbered";
  graph.append(std::move(numbered));
  EXPECT_EQ(graph.insert(nullptr, "AddOne", "last")->id, 41);
  EXPECT_EQ(names(graph),
            (std::vector<std::string>{"data", "a", "new", "b", "result", "numbered", "last"}));
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
  graph.move_after(a, graph.results[0]);
  graph.move_after(b, data);
  Insertion(graph, data, "c").constant(Tensor::allocate(ElementType::f32, {1}));
  EXPECT_EQ(names(graph), (std::vector<std::string>{"c", "data", "b", "result", "a"}));
  graph.sort();
  EXPECT_EQ(names(graph), (std::vector<std::string>{"c", "data", "a", "b", "result"}));
}

// Against the answers that a search through all nodes gives.
TEST(Graph, KnowsItsOrderAndUsersAfterManyEdits) {
  std::mt19937 random(1);
  Graph graph;
  std::vector<Node*> nodes{add_parameter(graph, {2})};
  const auto any = [&] { return nodes[random() % nodes.size()]; };
  for (int edit = 0; edit < 3000; ++edit) {
    switch (random() % 4) {
      case 0:  // mostly in one place, where numbers of positions run out
        nodes.push_back(graph.insert(random() % 8 ? nodes[nodes.size() / 2] : any(), "AddOne", ""));
        nodes.back()->inputs = {{any(), static_cast<int>(random() % 2)}, {any(), 0}};
        break;
      case 1:
        if (Node* node = any(), *other = any(); node != other) graph.move_after(node, other);
        break;
      case 2:
        if (Node* node = any(); !node->inputs.empty()) node->inputs.set(0, {any(), 0});
        break;
      case 3:
        if (random() % 20 == 0) graph.replace_uses({any(), 0}, {any(), 1});
    }
  }
  const std::vector<Node*> order = nodes_of(graph);
  ASSERT_EQ(order.size(), nodes.size());
  for (size_t i = 0; i + 1 < order.size(); ++i) {
    ASSERT_TRUE(graph.is_before(order[i], order[i + 1])) << i;
    ASSERT_EQ(graph.next(order[i]), order[i + 1]);
  }
  for (Node* node : order)
    for (int port : {0, 1}) {
      std::vector<Node*> users;
      for (Node* reader : order)
        for (const Edge& input : reader->inputs)
          if (input == Edge{node, port}) users.push_back(reader);
      ASSERT_EQ(graph.users(Edge{node, port}), users);
      ASSERT_EQ(graph.use_count({node, port}), users.size());
      ASSERT_EQ(graph.only_user({node, port}), users.size() == 1 ? users[0] : nullptr);
    }
}

// As when many copies are each inserted right after the same node.
TEST(Graph, NodesBeforeTheLastInsertedOneKeepTheirOrder) {
  Graph graph;
  Node* first = graph.insert(nullptr, "AddOne", "");
  Node* before = graph.insert(nullptr, "AddOne", "");
  for (int i = 0; i < 5000; ++i) before = graph.insert(before, "AddOne", "");
  const std::vector<Node*> order = nodes_of(graph);
  EXPECT_EQ(order[0], first);
  for (size_t i = 0; i + 1 < order.size(); ++i)
    ASSERT_TRUE(graph.is_before(order[i], order[i + 1])) << i;
}

TEST_F(Chain, NamesANodeOnACycle) {
  a->inputs.set(0, {b, 0});
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
  ASSERT_EQ(copy->nodes().size(), graph.nodes().size());
  const std::vector<Node*> copies = nodes_of(*copy), originals = nodes_of(graph);
  for (size_t i = 0; i < copies.size(); ++i) {
    EXPECT_NE(copies[i], originals[i]);
    EXPECT_EQ(copy->users(copies[i]).size(), graph.users(originals[i]).size());
    for (const Edge& input : copies[i]->inputs)
      EXPECT_EQ(std::count(originals.begin(), originals.end(), input.node), 0);
  }
  EXPECT_EQ(copies[2]->outputs[0].storage, (Edge{copies[1], 0}));
  copies[1]->name = "changed";
  EXPECT_EQ(a->name, "a");
  EXPECT_EQ(copy->parameters[0], copies[0]);
  EXPECT_EQ(copy->results[0], copies[3]);
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
  a->inputs.push_back(Insertion(graph, a, "two").floats({1}, {2}));
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

TEST(Graph, RefusesValuesThatTakeTooMuchMemory) {
  const auto shape = [](int64_t n) {
    test::GraphBuilder b;
    const auto ones = [&](const Shape& of, ElementType type = ElementType::f32) {
      return b.constant(Tensor::of(type, of, std::vector<int>(static_cast<size_t>(count(of)), 1)));
    };
    const Edge row = ones({n});
    const Edge sum = b.op("Einsum", 7, {row, row, ones({1, 1})}, {{"equation", "a,b,ab->"}});
    const Edge wanted = b.op("Convert", 1, {sum}, {{"destination_type", "i64"}});
    const Edge any = ones({1}, ElementType::i64);
    const Edge target = b.op("Reshape", 1, {wanted, any}), one = ones({1});
    auto graph = b.finish();
    Node* made = graph->insert(nullptr, "Broadcast", "made");
    made->opset = 3;
    made->def = find_op("Broadcast", 3);
    made->inputs = {one, target};
    made->outputs.resize(1);
    infer_shapes(*graph);
    return made->shape();
  };
  EXPECT_EQ(shape(3), (Shape{9}));
  EXPECT_THROW(shape(30000), Error);
}

TEST(Graph, RefusesImpossibleAndHugeShapes) {
  for (const std::vector<int64_t>& shape :
       {std::vector<int64_t>{1 << 20, 1 << 20}, {int64_t{1} << 62, 0, int64_t{1} << 62}, {-2, 3}}) {
    Graph graph;
    Node* data = add_parameter(graph, {2});
    const Tensor target = Tensor::of(ElementType::i64, {static_cast<int64_t>(shape.size())}, shape);
    const Edge constant = Insertion(graph, nullptr, "target").constant(target);
    add(graph, add_one(), "huge", {{data, 0}, constant});
    EXPECT_THROW(infer_shapes(graph), Error) << to_string(shape);
  }
}

TEST(Graph, LongChainsNeedNoStack) {
  Graph graph;
  Node* data = add_parameter(graph, {2});
  Node* last = add(graph, shape_of(), "shape", {{data, 0}});
  for (int i = 0; i < 20000; ++i) last = add(graph, add_one(), "", {{last, 0}});
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
