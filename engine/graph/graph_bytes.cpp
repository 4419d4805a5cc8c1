// Writes graphs as bytes, and reads them.
#include "engine/graph/graph_bytes.h"

#include <algorithm>

namespace clinfer {

namespace {

constexpr size_t kConstantAlignment = 64;  // of constants in the pool
constexpr int kMostBodyDepth = 32;         // depth of bodies within bodies
constexpr int64_t kMostStoredElements = int64_t{1} << 56;
constexpr uint64_t kNowhere = UINT64_MAX;

enum class Where : uint8_t { none, known, pool };

void collect(const Graph& graph, std::vector<Tensor>& constants) {
  for (const auto& node : graph.nodes()) {
    if (!node->constant.empty()) constants.push_back(node->constant);
    for (const auto& body : node->bodies)
      if (const auto* inner = dynamic_cast<const GraphBody*>(body.get()))
        collect(inner->graph(), constants);
  }
}

const char* first_byte(const Tensor& value) { return static_cast<const char*>(value.raw()); }

// ---- parts that are alike in both directions --------------------------------------------------

template <typename Stream, typename Type>
void transfer_type(Stream& stream, Type& type) {
  stream.choice(type, ElementType::f8e4m3);
}

template <typename Stream, typename Numbers>
void transfer_numbers(Stream& stream, Numbers& numbers) {
  stream.list(numbers, [&](auto& number) { stream.number(number); });
}

template <typename Stream, typename Desc>
void transfer_desc(Stream& stream, Desc& desc) {
  transfer_type(stream, desc.type);
  transfer_numbers(stream, desc.shape);
  transfer_numbers(stream, desc.strides);
  stream.number(desc.offset);
}

template <typename Stream, typename PortOfBody>
void transfer_port(Stream& stream, PortOfBody& port) {
  stream.number(port.outer);
  stream.number(port.inner);
  stream.number(port.sliced);
  for (auto* number : {&port.axis, &port.start, &port.end, &port.stride, &port.part})
    stream.number(*number);
}

template <typename Stream, typename BodyType>
void transfer_connections(Stream& stream, BodyType& body) {
  for (auto* ports : {&body.inputs, &body.outputs})
    stream.list(*ports, [&](auto& port) { transfer_port(stream, port); });
  stream.list(body.back_edges, [&](auto& edge) {
    stream.number(edge.result);
    stream.number(edge.parameter);
  });
  transfer_optional(stream, body.counter);
  transfer_optional(stream, body.condition);
}

// Writes or reads a node without its edges, attributes, constants and bodies.
template <typename Stream, typename NodeType>
void transfer_node(Stream& stream, NodeType& node) {
  stream.number(node.id);
  stream.text(node.name);
  stream.text(node.type);
  stream.number(node.opset);
  stream.list(node.outputs, [&](auto& output) {
    transfer_type(stream, output.type);
    transfer_numbers(stream, output.shape);
    stream.list(output.names, [&](auto& name) { stream.text(name); });
    transfer_desc(stream, output.desc);
  });
  stream.list(node.tail, [&](auto& step) {
    stream.text(step.function);
    stream.number(step.alpha);
    stream.number(step.beta);
    stream.number(step.operand);
    stream.number(step.swapped);
    stream.number(step.padded);
  });
  stream.number(node.own_inputs);
  stream.list(node.computes, [&](auto& layer) { stream.number(layer); });
}

template <typename Stream, typename Layers>
void transfer_layers(Stream& stream, Layers& layers) {
  stream.list(layers, [&](auto& layer) {
    stream.text(layer.name);
    stream.text(layer.type);
  });
}

// ---- writing ----------------------------------------------------------------------------------

class GraphWriter {
 public:
  GraphWriter(ByteWriter& out, const KnownConstants& known, ConstantPool& pool)
      : out_(out), known_(known), pool_(pool) {}

  void write(const Graph& graph) {
    std::unordered_map<const Node*, uint64_t> numbers;
    const auto write_edge = [&](const Edge& edge) {
      out_.number(edge.node ? numbers.at(edge.node) : kNowhere);
      out_.number(edge.port);
    };
    out_.text(graph.name);
    transfer_layers(out_, graph.layers);
    out_.number(uint64_t{graph.nodes().size()});
    for (const auto& node : graph.nodes()) {
      write_node(*node);
      out_.list(node->inputs, write_edge);
      numbers.emplace(node.get(), numbers.size());
    }
    for (const auto& node : graph.nodes())
      for (const NodeOutput& output : node->outputs) write_edge(output.storage);
    for (const auto* ends : {&graph.parameters, &graph.results})
      out_.list(*ends, [&](const Node* node) { out_.number(numbers.at(node)); });
  }

 private:
  void write_node(const Node& node) {
    if (node.custom)
      throw Error(ErrorCode::unsupported, label(node) + " is a custom layer, which is not stored");
    transfer_node(out_, node);
    out_.number(node.def != nullptr);
    out_.list(node.attributes.all(), [&](const auto& attribute) {
      out_.text(attribute.first);
      out_.text(attribute.second);
    });
    write_constant(node.constant);
    out_.list(node.bodies, [&](const auto& body) {
      const auto& inner = dynamic_cast<const GraphBody&>(*body);
      write(inner.graph());
      transfer_connections(out_, inner);
    });
  }

  void write_constant(const Tensor& value) {
    const auto place = known_.find(value);
    out_.choice(value.empty() ? Where::none : place ? Where::known : Where::pool, Where::pool);
    if (value.empty()) return;
    const ElementType type = value.type();
    transfer_type(out_, type);
    transfer_numbers(out_, value.shape());
    if (place) out_.number(place->index);
    out_.number(place ? place->offset : pool_.add(value));
  }

  ByteWriter& out_;
  const KnownConstants& known_;
  ConstantPool& pool_;
};

// ---- reading ----------------------------------------------------------------------------------

class GraphReader {
 public:
  GraphReader(ByteReader& in, const KnownConstants& known, const PoolView& pool)
      : in_(in), known_(known), pool_(pool) {}

  std::unique_ptr<Graph> read() {
    ByteReader::check(++depth_ <= kMostBodyDepth, "the depth");
    auto graph = std::make_unique<Graph>();
    in_.text(graph->name);
    transfer_layers(in_, graph->layers);
    std::vector<Node*> nodes;
    for (size_t left = in_.size(); left > 0; --left) {
      std::unique_ptr<Node> node = read_node(graph->layers.size());
      std::vector<Edge> inputs;  // of nodes before this one, since the order is topological
      in_.list(inputs, [&](Edge& edge) { edge = read_edge(nodes); });
      for (const Edge& edge : inputs)
        ByteReader::check(edge.node != nullptr, "an input from nowhere");
      ByteReader::check(node->own_inputs <= inputs.size(), "the inputs of an operation");
      for (const PostOp& step : node->tail)
        ByteReader::check(step.operand < static_cast<int64_t>(inputs.size()), "an operand");
      node->inputs = std::move(inputs);
      nodes.push_back(graph->append(std::move(node)));
    }
    read_storage(nodes);
    for (auto* ends : {&graph->parameters, &graph->results}) {
      const bool parameters = ends == &graph->parameters;
      in_.list(*ends, [&](Node*& node) {
        node = read_reference(nodes);
        ByteReader::check(node && node->is(parameters ? "Parameter" : "Result") &&
                              (parameters ? node->outputs.size() : node->inputs.size()) == 1,
                          "an end of the graph");
      });
    }
    --depth_;
    return graph;
  }

 private:
  Node* read_reference(const std::vector<Node*>& nodes) {
    uint64_t number = 0;
    in_.number(number);
    if (number == kNowhere) return nullptr;
    ByteReader::check(number < nodes.size(), "the number of a node");
    return nodes[static_cast<size_t>(number)];
  }

  Edge read_edge(const std::vector<Node*>& nodes) {
    Edge edge;
    edge.node = read_reference(nodes);
    in_.number(edge.port);
    ByteReader::check(!edge.node || (edge.port >= 0 &&
                                     static_cast<size_t>(edge.port) < edge.node->outputs.size()),
                      "the number of an output");
    return edge;
  }

  // Reads in whose memory each output lies, which may be any node's.
  void read_storage(const std::vector<Node*>& nodes) {
    size_t outputs = 0;
    for (Node* node : nodes)
      for (NodeOutput& output : node->outputs) {
        output.storage = read_edge(nodes);
        ++outputs;
      }
    // Follows each output to its root, and stops where an earlier walk has been.
    std::unordered_map<const NodeOutput*, bool> ends;
    for (const Node* node : nodes)
      for (const NodeOutput& output : node->outputs) {
        std::vector<const NodeOutput*> way;
        for (const NodeOutput* at = &output; !ends[at];) {
          way.push_back(at);
          ByteReader::check(way.size() <= outputs, "memory that lies in itself");
          if (!at->storage.node) break;
          at = &at->storage.node->outputs[static_cast<size_t>(at->storage.port)];
        }
        for (const NodeOutput* at : way) ends[at] = true;
      }
  }

  static void check_shape(const Shape& shape) {
    int64_t elements = 1;  // -1: a dimension of a body may be open
    for (const int64_t size : shape)
      ByteReader::check(
          size >= -1 && !__builtin_mul_overflow(elements, std::max<int64_t>(size, 1), &elements) &&
              elements <= kMostStoredElements,
          "a shape");
  }

  std::unique_ptr<Node> read_node(size_t layers) {
    auto node = std::make_unique<Node>();
    transfer_node(in_, *node);
    for (const NodeOutput& output : node->outputs) {
      check_shape(output.shape);
      check_shape(output.desc.shape);
      ByteReader::check(output.desc.strides.size() == output.desc.shape.size(), "the strides");
    }
    for (const int layer : node->computes)
      ByteReader::check(layer >= 0 && static_cast<size_t>(layer) < layers, "a layer");
    bool has_def = false;
    in_.number(has_def);
    if (has_def) node->def = find_op(node->type, node->opset);
    ByteReader::check(!has_def || node->def != nullptr, "an operation");
    for (size_t left = in_.size(); left > 0; --left) {
      std::string key, value;
      in_.text(key);
      in_.text(value);
      node->attributes.set(key, std::move(value));
    }
    node->constant = read_constant();
    ByteReader::check(node->is("Constant") == !node->constant.empty(), "a value");
    in_.list(node->bodies, [&](std::shared_ptr<const Body>& body) { body = read_body(); });
    return node;
  }

  std::shared_ptr<const Body> read_body() {
    auto body = std::make_shared<GraphBody>(read());
    transfer_connections(in_, *body);
    const size_t parameters = body->parameter_count(), results = body->graph().results.size();
    for (const Body::Port& port : body->inputs)
      ByteReader::check(port.inner < parameters, "an input of a body");
    for (const Body::Port& port : body->outputs)
      ByteReader::check(port.inner < results, "an output of a body");
    for (const Body::BackEdge& edge : body->back_edges)
      ByteReader::check(edge.result < results && edge.parameter < parameters, "a state");
    ByteReader::check(!body->counter || *body->counter < parameters, "a counter");
    ByteReader::check(!body->condition || *body->condition < results, "a condition");
    return body;
  }

  Tensor read_constant() {
    Where where = Where::none;
    in_.choice(where, Where::pool);
    if (where == Where::none) return {};
    ElementType type{};
    Shape shape;
    transfer_type(in_, type);
    transfer_numbers(in_, shape);
    check_shape(shape);
    ByteReader::check(std::ranges::all_of(shape, [](int64_t size) { return size >= 0; }),
                      "the shape of a constant");
    const size_t bytes = static_cast<size_t>(count(shape)) * size_of(type);
    uint64_t index = 0, offset = 0;
    if (where == Where::known) {
      in_.number(index);
      ByteReader::check(index < known_.all().size(), "the number of a constant");
    }
    in_.number(offset);
    if (bytes == 0) return Tensor::allocate(type, std::move(shape));
    std::string_view memory = pool_.bytes;
    std::shared_ptr<const void> owner = pool_.owner;
    if (where == Where::known) {
      const auto whole = std::make_shared<const Tensor>(known_.all()[static_cast<size_t>(index)]);
      memory = {first_byte(*whole), whole->bytes()};
      owner = whole;
    }
    ByteReader::check(offset <= memory.size() && bytes <= memory.size() - offset,
                      "the place of a constant");
    const char* first = memory.data() + offset;
    ByteReader::check(reinterpret_cast<uintptr_t>(first) % size_of(type) == 0,
                      "the alignment of a constant");
    return Tensor::view(type, std::move(shape), first, std::move(owner));
  }

  ByteReader& in_;
  const KnownConstants& known_;
  const PoolView& pool_;
  int depth_ = 0;
};

}  // namespace

KnownConstants::KnownConstants(const Graph& model) {
  collect(model, all_);
  for (size_t i = 0; i < all_.size(); ++i) {
    if (all_[i].bytes() == 0) continue;
    const auto [at, fresh] = by_address_.try_emplace(first_byte(all_[i]), i);
    if (!fresh && all_[at->second].bytes() < all_[i].bytes()) at->second = i;
  }
}

std::optional<KnownConstants::Place> KnownConstants::find(const Tensor& value) const {
  if (value.empty() || value.bytes() == 0) return {};
  const char* const first = first_byte(value);
  auto at = by_address_.upper_bound(first);
  if (at == by_address_.begin()) return {};
  --at;
  const auto offset = static_cast<size_t>(first - at->first);
  if (offset + value.bytes() > all_[at->second].bytes()) return {};
  return Place{at->second, offset};
}

uint64_t ConstantPool::add(const Tensor& value) {
  auto& known = places_[value.raw()];
  for (const auto& [tensor, offset] : known)
    if (tensor.bytes() >= value.bytes()) return offset;
  bytes_.resize((bytes_.size() + kConstantAlignment - 1) / kConstantAlignment * kConstantAlignment);
  const uint64_t offset = bytes_.size();
  bytes_.append(first_byte(value), value.bytes());
  known.emplace_back(value, offset);
  return offset;
}

void write_graph(ByteWriter& out, const Graph& graph, const KnownConstants& known,
                 ConstantPool& pool) {
  GraphWriter(out, known, pool).write(graph);
}

std::unique_ptr<Graph> read_graph(ByteReader& in, const KnownConstants& known,
                                  const PoolView& pool) {
  return GraphReader(in, known, pool).read();
}

}  // namespace clinfer
