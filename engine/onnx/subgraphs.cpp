// Translates If, Loop and Scan, whose nodes hold graphs. A branch that is known is written in
// place; passes later unroll loops with a known number of iterations.
#include <span>

#include "engine/onnx/graph_reader.h"
#include "kernels/recurrent/loop.h"

namespace clinfer {

namespace {

const onnx::GraphProto& body_of(const OnnxNode& node, const char* name) {
  const onnx::AttributeProto& a = node.attribute(name);
  if (!a.has_g()) bad_node(std::string("attribute ") + name + " is no graph");
  return a.g();
}

Tensor scalar(ElementType type, int64_t value) {
  return Tensor::of(type, {}, std::vector<int64_t>{value});
}

void expect(int have, size_t need, const char* what) {
  if (static_cast<size_t>(have) != need)
    bad_node("its body has " + std::to_string(have) + " " + what + ", not " + std::to_string(need));
}

// Returns what the body knows about a loop's state: only its shape, since each iteration has
// another value.
Inference::Knowledge state_of(GraphWriter& writer, const Edge& outside) {
  Inference::Knowledge known = writer.inference().knowledge(outside);
  known.value = {};
  if (known.fewer) known.fewer->value = {};
  return known;
}

// Marks as unknown the sizes of states that differ between the start and the end of an iteration.
// Returns false if it marked new ones; then the body must be read again. The limit of made
// constants counts each reading.
bool note_changes(GraphWriter& body, std::span<const Edge> states, std::span<const Edge> next,
                  std::vector<Inference::Knowledge>& known) {
  bool changed = false;
  for (size_t i = 0; i < states.size(); ++i) {
    const Shape &before = states[i].node->shape(states[i].port),
                &after = next[i].node->shape(next[i].port);
    if (before.size() != after.size()) continue;  // adding the loop refuses this
    for (size_t d = 0; d < before.size(); ++d) {
      if (body.inference().varies(states[i], d) ||
          (before[d] == after[d] && !body.inference().varies(next[i], d)))
        continue;
      if (!known[i].fewer)
        known[i].fewer = ValueInfo{states[i].node->outputs[states[i].port].type, before, {}};
      known[i].fewer->shape[d] = before[d] > 1 ? 1 : 0;
      changed = true;
    }
  }
  if (changed) IterationLimit::take(body.graph().nodes().size());
  return changed;
}

// Adds what the body reads from outside as inputs of the operation.
void tie_captured(const GraphReader& reader, GraphBody& body, std::vector<Edge>& inputs) {
  for (const GraphReader::Captured& captured : reader.captured()) {
    body.inputs.push_back({inputs.size(), captured.parameter});
    inputs.push_back(captured.from);
  }
}

}  // namespace

void GraphReader::read_control(OnnxNode& node) {
  if (node.type() == "If")
    read_if(node);
  else if (node.type() == "Loop")
    read_loop(node);
  else
    read_scan(node);
}

void GraphReader::read_if(OnnxNode& node) {
  const Edge condition = node.in(0);
  if (const auto known = node.known_ints(condition)) {
    if (known->size() != 1) bad_node("the condition must be one value");
    const onnx::GraphProto& branch = body_of(node, (*known)[0] ? "then_branch" : "else_branch");
    GraphReader reader(writer_, tensors_, functions_, this);
    reader.read(branch);
    expect(branch.output_size(), node.output_count(), "outputs");
    for (int i = 0; i < branch.output_size(); ++i)
      node.out(static_cast<size_t>(i), reader.edge(branch.output(i).name()));
    return;
  }
  std::vector<Edge> inputs{condition};
  std::vector<std::shared_ptr<const Body>> bodies;
  std::vector<std::vector<Shape>> shapes;
  for (const char* name : {"then_branch", "else_branch"}) {
    const onnx::GraphProto& branch = body_of(node, name);
    expect(branch.output_size(), node.output_count(), "outputs");
    GraphWriter writer;
    GraphReader reader(writer, tensors_, functions_, this);
    reader.read(branch);
    shapes.emplace_back();
    for (const auto& output : branch.output()) {
      const Edge value = reader.edge(output.name());
      shapes.back().push_back(node.shape(value));
      writer.result(output.name(), value);
    }
    auto body = std::make_shared<GraphBody>(writer.finish());
    tie_captured(reader, *body, inputs);
    for (size_t i = 0; i < node.output_count(); ++i) body->outputs.push_back({i, i});
    bodies.push_back(std::move(body));
  }
  // Both branches must have the same rank, because later nodes are written for one rank.
  for (size_t i = 0; i < node.output_count(); ++i)
    if (shapes[0][i].size() != shapes[1][i].size())
      unsupported_node("the branches give " + to_string(shapes[0][i]) + " and " +
                       to_string(shapes[1][i]) + ", and the condition is computed at run time");
  const Edge first = node.op("If", 8, inputs, {}, node.output_count(), std::move(bodies));
  for (size_t i = 0; i < node.output_count(); ++i) node.out(i, port(first, static_cast<int>(i)));
}

constexpr int64_t kMostWrittenOut = 256;  // in iterations

// Writes the iterations of a loop in place if their number is known: shapes and indices in the body
// may then differ between iterations. Returns false if something is not known.
bool GraphReader::write_out_loop(OnnxNode& node) {
  const onnx::GraphProto& graph = body_of(node, "body");
  const size_t states = node.input_count() < 2 ? 0 : node.input_count() - 2;
  const auto is_true = [&](const Edge& e) {
    const auto known = node.known_ints(e);
    return known && known->size() == 1 ? std::optional(known->front() != 0) : std::nullopt;
  };
  const auto trips = node.has(0) ? node.known_ints(node.in(0)) : std::nullopt;
  if (!trips || trips->size() != 1 || trips->front() < 1 || trips->front() > kMostWrittenOut)
    return false;
  if (node.has(1) && !is_true(node.in(1)).value_or(false)) return false;
  std::vector<Edge> values;
  for (size_t i = 0; i < states; ++i) values.push_back(node.in(2 + i));
  std::vector<std::vector<Edge>> parts(static_cast<size_t>(graph.output_size()) - states - 1);
  for (int64_t trip = 0; trip < trips->front(); ++trip) {
    GraphReader reader(writer_, tensors_, functions_, this);
    const auto name = [&](size_t i) { return graph.input(static_cast<int>(i)).name(); };
    reader.define(name(0), node.constant(scalar(ElementType::i64, trip)));
    reader.define(name(1), node.constant(scalar(ElementType::boolean, 1)));
    for (size_t i = 0; i < states; ++i) reader.define(name(2 + i), values[i]);
    reader.read(graph);
    const auto output = [&](size_t i) {
      return reader.edge(graph.output(static_cast<int>(i)).name());
    };
    for (size_t i = 0; i < states; ++i) values[i] = output(1 + i);
    for (size_t i = 0; i < parts.size(); ++i)
      parts[i].push_back(node.unsqueeze(output(1 + states + i), {0}));
    const auto goes_on = is_true(output(0));
    if (!goes_on) return false;
    if (!*goes_on) break;
  }
  for (size_t i = 0; i < states; ++i) node.out(i, values[i]);
  for (size_t i = 0; i < parts.size(); ++i) node.out(states + i, node.concat(parts[i], 0));
  return true;
}

void GraphReader::read_loop(OnnxNode& node) {
  try {
    read_loop_as_operation(node);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::unsupported || !write_out_loop(node)) throw;
  }
}

// Returns the number of iterations. The engine takes a negative number as no limit, ONNX has no
// number for that and runs none if it is negative.
static Edge trips_of(OnnxNode& node) {
  if (!node.has(0)) return node.constant(scalar(ElementType::i64, -1));
  const auto known = node.known_ints(node.in(0));
  if (known && known->size() == 1)
    return known->front() < 0 ? node.constant(scalar(ElementType::i64, 0)) : node.in(0);
  return node.op("Maximum", 1, {node.in(0), node.number_like(node.in(0), 0)});
}

// The body maps iteration, condition and states to condition, states and values to concatenate.
void GraphReader::read_loop_as_operation(OnnxNode& node) {
  std::vector<Inference::Knowledge> known;
  for (size_t i = 2; i < node.input_count(); ++i) known.push_back(state_of(writer_, node.in(i)));
  while (!read_loop_with(node, known)) {
  }
}

bool GraphReader::read_loop_with(OnnxNode& node, std::vector<Inference::Knowledge>& known) {
  const onnx::GraphProto& graph = body_of(node, "body");
  const size_t states = node.input_count() < 2 ? 0 : node.input_count() - 2;
  expect(graph.input_size(), states + 2, "inputs");
  if (static_cast<size_t>(graph.output_size()) < states + 1)
    bad_node("its body has fewer outputs than states");
  const size_t parts = static_cast<size_t>(graph.output_size()) - states - 1;
  if (node.output_count() > states + parts) bad_node("has more outputs than its body");
  const Edge trips = trips_of(node);
  const Edge go_on = node.has(1) ? node.in(1) : node.constant(scalar(ElementType::boolean, 1));
  std::vector<Edge> inputs{trips, go_on};

  GraphWriter writer;
  GraphReader reader(writer, tensors_, functions_, this);
  const auto name = [&](size_t i) { return graph.input(static_cast<int>(i)).name(); };
  reader.define(name(0), writer.parameter(name(0), ElementType::i64, {}));
  reader.define(name(1), writer.parameter(name(1), ElementType::boolean, {}));
  std::vector<Edge> before, after;
  for (size_t i = 0; i < states; ++i) {
    const Edge state = node.in(2 + i);
    inputs.push_back(state);
    before.push_back(writer.parameter(name(2 + i), node.type(state), node.shape(state), known[i]));
    reader.define(name(2 + i), before.back());
  }
  reader.read(graph);
  for (size_t i = 0; i < states; ++i)
    after.push_back(reader.edge(graph.output(static_cast<int>(1 + i)).name()));
  if (note_changes(writer, before, after, known)) return false;
  for (int i = 0; i < graph.output_size(); ++i) {
    const std::string& output = graph.output(i).name();
    Edge value = reader.edge(output);
    if (static_cast<size_t>(i) > states) {
      const Edge axes =
          writer.constant(output, Tensor::of(ElementType::i64, {1}, std::vector<int64_t>{0}));
      value = writer.add(output, "Unsqueeze", 1, {value, axes});
    }
    writer.result(output, value);
  }
  auto body = std::make_shared<GraphBody>(writer.finish());
  body->counter = 0;
  body->condition = 0;
  body->inputs.push_back({1, 1});
  body->back_edges.push_back({0, 1});
  for (size_t i = 0; i < states; ++i) {
    body->inputs.push_back({2 + i, 2 + i});
    body->back_edges.push_back({1 + i, 2 + i});
  }
  for (size_t i = 0; i < states + parts; ++i) {
    Body::Port out{i, 1 + i};
    out.sliced = i >= states;
    body->outputs.push_back(out);
  }
  tie_captured(reader, *body, inputs);
  const Edge first = node.op("Loop", 5, inputs, {}, states + parts, {std::move(body)});
  for (size_t i = 0; i < node.output_count(); ++i) node.out(i, port(first, static_cast<int>(i)));
  return true;
}

constexpr int64_t kMostScanned = 64;  // limit of images in the first version

// Before opset 9 all values have a batch dimension in front, and an additional first input lists
// lengths.
void GraphReader::read_scan(OnnxNode& node) {
  std::vector<Edge> inputs;
  if (node.opset() >= 9) {
    for (size_t i = 0; i < node.input_count(); ++i) inputs.push_back(node.in(i));
    const std::vector<Edge> outputs = scan(node, inputs);
    for (size_t i = 0; i < node.output_count(); ++i) node.out(i, outputs[i]);
    return;
  }
  if (node.has(0)) unsupported_node("lengths of the sequences (input 0) are not supported");
  if (node.input_count() < 2) bad_node("has no inputs to scan");
  const int64_t batch = node.dim(node.in(1), 0);
  if (batch < 1 || batch > kMostScanned)
    unsupported_node("a batch of " + std::to_string(batch) + " is not supported");
  std::vector<std::vector<Edge>> images(node.output_count());
  for (int64_t b = 0; b < batch; ++b) {
    inputs.clear();
    for (size_t i = 1; i < node.input_count(); ++i)
      inputs.push_back(node.squeeze(node.slice(node.in(i), 0, b, b + 1), {0}));
    const std::vector<Edge> outputs = scan(node, inputs);
    for (size_t i = 0; i < images.size(); ++i) images[i].push_back(node.unsqueeze(outputs[i], {0}));
  }
  for (size_t i = 0; i < images.size(); ++i) node.out(i, node.concat(images[i], 0));
}

// The body maps states and slices of the inputs to states and values to concatenate.
std::vector<Edge> GraphReader::scan(OnnxNode& node, const std::vector<Edge>& scanned_inputs) {
  const onnx::GraphProto& graph = body_of(node, "body");
  const int64_t scanned = node.int_of("num_scan_inputs");
  if (scanned < 1 || static_cast<size_t>(scanned) > scanned_inputs.size())
    bad_node("num_scan_inputs is " + std::to_string(scanned));
  const auto parts_in = static_cast<size_t>(scanned), states = scanned_inputs.size() - parts_in;
  expect(graph.input_size(), scanned_inputs.size(), "inputs");
  if (static_cast<size_t>(graph.output_size()) < states)
    bad_node("its body has fewer outputs than states");
  const size_t parts_out = static_cast<size_t>(graph.output_size()) - states;
  const auto list = [&](const char* attribute, size_t size) {
    std::vector<int64_t> values = node.ints_of(attribute, std::vector<int64_t>(size, 0));
    if (values.size() != size)
      bad_node(std::string("attribute ") + attribute + " must list " + std::to_string(size));
    return values;
  };
  if (node.output_count() > states + parts_out) bad_node("has more outputs than its body");
  const std::vector<int64_t> in_axes = list("scan_input_axes", parts_in),
                             in_back =
                                 list(node.opset() < 9 ? "directions" : "scan_input_directions",
                                      parts_in),
                             out_axes = list("scan_output_axes", parts_out),
                             out_back = list("scan_output_directions", parts_out);
  const auto sliced = [](Body::Port port, int64_t axis, bool back) {
    port.sliced = true;
    port.axis = axis;
    if (back) {
      port.start = -1;
      port.end = 0;
      port.stride = -1;
    }
    return port;
  };
  std::vector<Inference::Knowledge> known;
  for (const Edge& outer : scanned_inputs) known.push_back(state_of(writer_, outer));
  GraphWriter writer;
  GraphReader reader(writer, tensors_, functions_, this);
  std::vector<Edge> inputs, before, after;
  std::vector<Body::Port> in_ports, out_ports;
  for (size_t i = 0; i < scanned_inputs.size(); ++i) {
    const std::string& name = graph.input(static_cast<int>(i)).name();
    const Edge outer = scanned_inputs[i];
    inputs.push_back(outer);
    Shape shape = node.shape(outer);
    if (i < states) {
      before.push_back(writer.parameter(name, node.type(outer), shape, known[i]));
      reader.define(name, before.back());
      in_ports.push_back({i, i});
      continue;
    }
    const int64_t axis = node.axis(in_axes[i - states], node.rank(outer));
    shape[static_cast<size_t>(axis)] = 1;
    if (known[i].fewer) known[i].fewer->shape[static_cast<size_t>(axis)] = 1;
    const Edge part = writer.parameter(name, node.type(outer), shape, known[i]);
    const Edge axes =
        writer.constant(name, Tensor::of(ElementType::i64, {1}, std::vector<int64_t>{axis}));
    reader.define(name, writer.add(name, "Squeeze", 1, {part, axes}));
    in_ports.push_back(sliced({i, i}, axis, in_back[i - states] != 0));
  }
  reader.read(graph);
  for (size_t i = 0; i < states; ++i)
    after.push_back(reader.edge(graph.output(static_cast<int>(i)).name()));
  if (note_changes(writer, before, after, known))
    unsupported_node("the size of a state changes from one iteration to the next");
  for (size_t i = 0; i < states + parts_out; ++i) {
    const std::string& name = graph.output(static_cast<int>(i)).name();
    Edge value = reader.edge(name);
    Body::Port out{i, i};
    if (i >= states) {
      const int64_t axis = node.axis(out_axes[i - states], node.rank(value) + 1);
      const Edge axes =
          writer.constant(name, Tensor::of(ElementType::i64, {1}, std::vector<int64_t>{axis}));
      value = writer.add(name, "Unsqueeze", 1, {value, axes});
      out = sliced(out, axis, out_back[i - states] != 0);
    }
    out_ports.push_back(out);
    writer.result(name, value);
  }
  auto body = std::make_shared<GraphBody>(writer.finish());
  body->inputs = std::move(in_ports);
  body->outputs = std::move(out_ports);
  for (size_t i = 0; i < states; ++i) body->back_edges.push_back({i, i});
  tie_captured(reader, *body, inputs);
  const Edge first =
      node.op("TensorIterator", 1, inputs, {}, states + parts_out, {std::move(body)});
  std::vector<Edge> outputs;
  for (size_t i = 0; i < states + parts_out; ++i)
    outputs.push_back(port(first, static_cast<int>(i)));
  return outputs;
}

}  // namespace clinfer
