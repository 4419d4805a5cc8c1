// Writes an LSTM whose gates read the cell (peepholes) step by step, because no operation of the
// engine computes it.
#include "engine/onnx/op_table.h"
#include "kernels/shape_util.h"

namespace clinfer {

namespace {

constexpr int64_t kMostSteps = 256;

// One direction of the LSTM. x is [time, batch, inputs]; `d` is the index of the direction's
// weights.
struct Direction {
  OnnxNode& n;
  int64_t d, hidden;

  // Returns row d of an input, without the first dimension.
  Edge of(size_t input) const { return n.squeeze(n.slice(n.in(input), 0, d, d + 1), {0}); }
  Edge gate(const Edge& all, int64_t i) const {
    return n.slice(all, n.rank(all) - 1, i * hidden, (i + 1) * hidden);
  }
};

}  // namespace

void onnx_lstm_with_peepholes(OnnxNode& n) {
  const Edge x = n.in(0);
  const Shape shape = n.shape(x, 3);
  const int64_t hidden = n.dim(n.in(2), 2), time = shape[0], batch = shape[1];
  const std::string direction = n.string_of("direction", "forward");
  const int64_t directions = direction == "bidirectional" ? 2 : 1;
  if (time < 1 || batch < 1 || time > kMostSteps)
    unsupported_node("peepholes of " + std::to_string(time) + " steps are not supported");
  for (const char* name : {"activations", "clip", "activation_alpha", "activation_beta"})
    if (n.has_attribute(name))
      unsupported_node(std::string("peepholes with the attribute ") + name + " are not supported");
  if (n.int_of("layout", 0) || n.int_of("input_forget", 0))
    unsupported_node("peepholes with layout=1 or input_forget=1 are not supported");
  if (n.has(4))
    for (const int64_t length : n.need_ints(n.in(4), "the lengths of the sequences"))
      if (length != time)
        unsupported_node("peepholes with sequences of different lengths are not supported");
  std::vector<Edge> all, last_h, last_c;  // [time, 1, batch, hidden], [1, batch, hidden]
  for (int64_t d = 0; d < directions; ++d) {
    const Direction of{n, d, hidden};
    const bool back = direction == "reverse" || d == 1;
    Edge input = n.matmul(x, of.of(1), false, true);  // [time, batch, 4 * hidden]: i, o, f, c
    if (n.has(3)) {
      const Edge bias = of.of(3);
      input = n.add(
          input, n.add(n.slice(bias, 0, 0, 4 * hidden), n.slice(bias, 0, 4 * hidden, 8 * hidden)));
    }
    const Edge zeros = n.constant(
        Tensor::of(ElementType::f32, {batch, hidden},
                   std::vector<float>(static_cast<size_t>(checked_count({batch, hidden})), 0.f)));
    Edge h = n.has(5) ? of.of(5) : zeros, c = n.has(6) ? of.of(6) : zeros;
    const Edge peep = of.of(7), weights = of.of(2);
    std::vector<Edge> steps(static_cast<size_t>(time));
    for (int64_t k = 0; k < time; ++k) {
      const int64_t t = back ? time - 1 - k : k;
      const Edge gates =
          n.add(n.squeeze(n.slice(input, 0, t, t + 1), {0}), n.matmul(h, weights, false, true));
      const auto opened = [&](int64_t gate, int64_t own, const Edge& cell) {
        return n.op("Sigmoid", 1,
                    {n.add(of.gate(gates, gate), n.multiply(of.gate(peep, own), cell))});
      };
      const Edge i = opened(0, 0, c), f = opened(2, 2, c);
      c = n.add(n.multiply(f, c), n.multiply(i, n.op("Tanh", 1, {of.gate(gates, 3)})));
      h = n.multiply(opened(1, 1, c), n.op("Tanh", 1, {c}));
      steps[static_cast<size_t>(t)] = n.unsqueeze(h, {0, 1});
    }
    all.push_back(n.concat(steps, 0));
    last_h.push_back(n.unsqueeze(h, {0}));
    last_c.push_back(n.unsqueeze(c, {0}));
  }
  n.out(0, n.concat(all, 1));
  n.out(1, n.concat(last_h, 0));
  n.out(2, n.concat(last_c, 0));
}

}  // namespace clinfer
