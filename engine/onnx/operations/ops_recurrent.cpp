// Translates LSTM, GRU and RNN: sequences [time, batch, values] with the gates in ONNX's order.
#include <algorithm>

#include "engine/onnx/op_table.h"

namespace clinfer {

namespace {

struct Recurrent {
  int64_t gates;
  std::vector<int64_t> order;  // order[n]: index in ONNX of the engine's gate n
  const char* ours;
};

Recurrent kind_of(const std::string& type) {
  if (type == "LSTM") return {4, {2, 0, 3, 1}, "LSTMSequence"};  // i o f c -> f i c o
  if (type == "GRU") return {3, {0, 1, 2}, "GRUSequence"};       // z r h
  return {1, {0}, "RNNSequence"};
}

// Reorders the gates along axis 1.
Edge reordered(OnnxNode& n, const Edge& e, const std::vector<int64_t>& order) {
  if (std::is_sorted(order.begin(), order.end())) return e;
  const std::vector<Edge> gates = n.split(e, 1, static_cast<int64_t>(order.size()));
  std::vector<Edge> parts;
  for (int64_t gate : order) parts.push_back(gates[static_cast<size_t>(gate)]);
  return n.concat(parts, 1);
}

// Adds the biases of input and state. For a GRU that resets after its product, the last gate's two
// biases stay separate.
Edge bias_of(OnnxNode& n, const Recurrent& kind, int64_t directions, int64_t hidden,
             bool reset_after) {
  const int64_t rows = kind.gates * hidden;
  if (!n.has(3)) {
    const Shape shape{directions, reset_after ? rows + hidden : rows};
    return n.constant(Tensor::allocate(ElementType::f32, shape));
  }
  const std::vector<Edge> both = n.split(n.in(3), 1, 2);
  if (!reset_after) return reordered(n, n.add(both[0], both[1]), kind.order);
  const Edge sum = n.add(n.slice(both[0], 1, 0, 2 * hidden), n.slice(both[1], 1, 0, 2 * hidden));
  return n.concat(
      {sum, n.slice(both[0], 1, 2 * hidden, rows), n.slice(both[1], 1, 2 * hidden, rows)}, 1);
}

std::string activations_of(OnnxNode& n, int64_t directions) {
  std::vector<std::string> names = n.strings_of("activations");
  if (names.empty()) return "";
  const size_t each = names.size() / static_cast<size_t>(directions);
  for (size_t i = each; i < names.size(); ++i)
    if (names[i] != names[i - each])
      unsupported_node("directions with different activations are not supported");
  std::string list;
  for (size_t i = 0; i < each; ++i) {
    std::string name = names[i];
    std::transform(name.begin(), name.end(), name.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    list += (list.empty() ? "" : ",") + name;
  }
  return list;
}

// Writes the node with weights of input and state of [directions, gates * hidden, ...].
void sequence(OnnxNode& n, const Recurrent& kind, const Edge& weights, const Edge& recurrence) {
  const bool lstm = kind.gates == 4;
  const std::string direction = n.string_of("direction", "forward");
  const int64_t directions = direction == "bidirectional" ? 2 : 1;
  if (n.rank(n.in(0)) != 3 || n.rank(recurrence) != 3)
    bad_node("inputs and weights have 3 dimensions");
  const int64_t hidden = n.dim(recurrence, 2);
  const bool batch_first = n.int_of("layout", 0) != 0;
  if (lstm && n.has(7)) {
    const Tensor peepholes = n.known(n.in(7));
    const std::vector<float> values =
        peepholes.empty() ? std::vector<float>{1} : peepholes.to_floats();
    if (std::any_of(values.begin(), values.end(), [](float v) { return v != 0; })) {
      if (n.type() != "LSTM") unsupported_node("peepholes are not supported");
      return onnx_lstm_with_peepholes(n);
    }
  }
  if (lstm && n.int_of("input_forget", 0)) unsupported_node("input_forget=1 is not supported");
  const bool reset_after = n.type() == "GRU" && n.int_of("linear_before_reset", 0) != 0;

  const Edge x = batch_first ? n.in(0) : n.transpose(n.in(0), {1, 0, 2});
  const int64_t batch = n.dim(x, 0), time = n.dim(x, 1);
  const auto state = [&](size_t i) {
    if (!n.has(i)) {
      // The initial state has as many rows as the input, whatever the batch is.
      const Edge rows =
          n.concat({n.slice(n.shape_of(x), 0, 0, 1), n.ints({directions, hidden})}, 0);
      return n.op("Broadcast", 3, {n.number(0), rows}, {{"mode", "numpy"}});
    }
    return batch_first ? n.in(i) : n.transpose(n.in(i), {1, 0, 2});
  };
  Edge lengths;
  if (n.has(4)) {
    lengths = n.in(4);
  } else {
    const Edge rows = n.slice(n.shape_of(x), 0, 0, 1);
    lengths = n.op("Broadcast", 3, {n.slice(n.shape_of(x), 0, 1, 2), rows}, {{"mode", "numpy"}});
  }
  std::vector<Edge> inputs{x, state(5)};
  if (lstm) inputs.push_back(state(6));
  inputs.insert(inputs.end(),
                {lengths, reordered(n, weights, kind.order), reordered(n, recurrence, kind.order),
                 bias_of(n, kind, directions, hidden, reset_after)});
  AttributePairs attributes{{"hidden_size", std::to_string(hidden)}, {"direction", direction}};
  if (const std::string names = activations_of(n, directions); !names.empty())
    attributes.emplace_back("activations", names);
  for (const char* name : {"activation_alpha", "activation_beta"}) {
    const std::vector<float> values = n.floats_of(name, std::vector<float>{});
    if (!values.empty())
      attributes.emplace_back(
          std::string_view(name) == "activation_alpha" ? "activations_alpha" : "activations_beta",
          text_of(values));
  }
  if (n.has_attribute("clip")) attributes.emplace_back("clip", text_of(double{n.float_of("clip")}));
  if (n.type() == "GRU") attributes.emplace_back("linear_before_reset", text_of(reset_after));
  if (batch < 1 || time < 1) bad_node("an empty sequence");
  const Edge y = n.op(kind.ours, 5, inputs, attributes, lstm ? 3 : 2);
  n.out(0, n.transpose(y, batch_first ? std::vector<int64_t>{0, 2, 1, 3}
                                      : std::vector<int64_t>{2, 1, 0, 3}));
  for (size_t i = 1; i < (lstm ? 3u : 2u); ++i) {
    const Edge last = port(y, static_cast<int>(i));
    n.out(i, batch_first ? last : n.transpose(last, {1, 0, 2}));
  }
}

void recurrent(OnnxNode& n) { sequence(n, kind_of(n.type()), n.in(1), n.in(2)); }

// Returns weights of bytes, [directions, ..., gates * hidden], as the floats that LSTM takes. Scale
// and zero point are one number, one for each direction, or one for each of its columns.
Edge dequantized_weights(OnnxNode& n, size_t at, size_t scale_at) {
  const Edge bytes = n.in(at);
  if (n.rank(bytes) != 3) bad_node("weights have 3 dimensions");
  const auto spread = [&](const Edge& e) {
    if (n.rank(e) == 2) return n.unsqueeze(e, {1});
    return n.along(e, 0, 3);
  };
  Edge w = n.convert(bytes, ElementType::f32);
  if (n.has(scale_at + 1))
    w = n.subtract(w, spread(n.convert(n.in(scale_at + 1), ElementType::f32)));
  return n.transpose(n.multiply(w, spread(n.in(scale_at))), {0, 2, 1});
}

// Translates com.microsoft's LSTM with weights of bytes. ONNX Runtime also quantises the values of
// each step; here they stay floats, which are more precise.
void quantized_lstm(OnnxNode& n) {
  sequence(n, kind_of("LSTM"), dequantized_weights(n, 1, 8), dequantized_weights(n, 2, 10));
}

}  // namespace

std::vector<OnnxOp> onnx_recurrent_ops() {
  return {{"GRU", recurrent},
          {"LSTM", recurrent},
          {"RNN", recurrent},
          {"DynamicQuantizeLSTM", quantized_lstm, kMicrosoft}};
}

}  // namespace clinfer
