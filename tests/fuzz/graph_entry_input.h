// One input of the fuzzer of the cache's graphs: changes of an entry that was written from a small model. Each
// takes five bytes: the place, and what stands there then. An odd last byte cuts the entry.
#pragma once

#include <cstdlib>
#include <cstring>
#include <string_view>

#include "engine/compile/graph_cache.h"
#include "engine/runtime/model.h"
#include "tests/engine/graph/graph_builder.h"
#include "tests/fuzz/one_line.h"

namespace clinfer {

struct FuzzedEntry {
  std::unique_ptr<Graph> model;
  KnownConstants known;
  std::vector<unsigned char> bytes;
};

// A convolution with a factor that passes fold into its weights, and a loop that stays one.
inline FuzzedEntry make_fuzzed_entry() {
  test::GraphBuilder inner;
  const Edge row = inner.parameter({1, 4}), state = inner.parameter({1, 4});
  inner.result(inner.op("Add", 1, {row, state}));
  auto body = std::make_shared<GraphBody>(inner.finish());
  body->inputs = {{0, 0, true, 0, 0, -1, 1, 1}, {1, 1}};
  body->outputs = {{0, 0}};
  body->back_edges = {{0, 1}};
  test::GraphBuilder b;
  const auto constant = [&](const Shape& shape) {
    return b.constant(Tensor::of(ElementType::f32, shape,
                                 std::vector<float>(static_cast<size_t>(count(shape)), 0.5f)));
  };
  const Edge picture = b.parameter({1, 3, 6, 6}), rows = b.parameter({3, 4});
  const Edge convolution =
      b.op("Convolution", 1, {picture, constant({4, 3, 3, 3})},
           {{"strides", "1,1"}, {"dilations", "1,1"}, {"pads_begin", "1,1"}, {"pads_end", "1,1"}});
  b.result(b.op("ReLU", 1, {b.op("Multiply", 1, {convolution, constant({1, 4, 1, 1})})}));
  const Edge loop = Insertion(b.graph(), nullptr, "loop")
                        .op("TensorIterator", 1, {rows, constant({1, 4})}, {}, 1, {body});
  b.result(loop);
  std::unique_ptr<Graph> model = b.finish();
  KnownConstants known(*model);
  PassedGraph passed{model->clone(), input_ports(*model), output_ports(*model)};
  passed.graph->note_layers();
  PassContext context;
  context.unroll_loops = false;
  run_passes(*passed.graph, context);
  std::vector<unsigned char> bytes = entry_bytes(passed, known);
  return {std::move(model), std::move(known), std::move(bytes)};
}

// Ends the process if an error is not one printable line, or if what was read cannot be written.
inline void read_graph_entry_input(std::string_view input) {
  static const FuzzedEntry entry = make_fuzzed_entry();
  std::vector<unsigned char> bytes = entry.bytes;
  for (; input.size() >= 5; input.remove_prefix(5)) {
    uint32_t place = 0;
    std::memcpy(&place, input.data(), sizeof place);
    bytes[place % bytes.size()] = static_cast<unsigned char>(input[4]);
  }
  if (!input.empty()) bytes.resize(bytes.size() * static_cast<unsigned char>(input[0]) / 256);
  try {
    const PassedGraph passed = read_entry(std::move(bytes), entry.known);
    to_dot(*passed.graph);
    if (entry_bytes(passed, entry.known).empty()) std::abort();
  } catch (const Error& error) {
    must_be_one_line(error);
  }
}

}  // namespace clinfer
