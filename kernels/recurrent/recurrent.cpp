// LSTMCell, GRUCell, RNNCell and their sequences: gates = X W^T + H R^T + B, and the functions of
// the gates for each kind.
#include <algorithm>
#include <bit>
#include <cctype>
#include <cstdio>
#include <cstring>

#include "kernels/arguments.h"
#include "kernels/base/system/work_limit.h"
#include "kernels/item_kernel.h"
#include "kernels/movement/index_range.h"
#include "kernels/scalar_functions.h"
#include "kernels/shape_util.h"
#include "kernels/storage.h"

namespace clinfer {

namespace {

constexpr const char* kHostReason =
    "where weights are computed at run time, or a state is too large";
constexpr int64_t kLargestState = 1 << 16;

enum class Kind { lstm, gru, rnn };

struct Activation {
  const UnaryFunction* function;
  float alpha, beta;
  float operator()(float x) const { return function->apply(x, alpha, beta); }
};

struct Settings {
  Kind kind;
  int64_t hidden;
  float clip;
  bool reset_after;  // linear_before_reset: the reset gate is applied after the matrix
  std::vector<Activation> activations;
  int64_t gates() const { return kind == Kind::lstm ? 4 : kind == Kind::gru ? 3 : 1; }
  int64_t bias_rows() const { return gates() + (reset_after ? 1 : 0); }
  size_t states() const { return kind == Kind::lstm ? 2 : 1; }
};

std::vector<std::string> words(const std::string& text) {
  std::vector<std::string> list(1);
  for (char c : text) {
    if (c == ',')
      list.emplace_back();
    else if (c != ' ')
      list.back() += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return list;
}

Activation activation(const std::string& name, float alpha, float beta) {
  const std::string known = name == "hardsigmoid" ? "hard_sigmoid"
                            : name == "softsign"  ? "soft_sign"
                            : name == "affine"    ? "linear"
                                                  : name;
  for (const char* possible :
       {"sigmoid", "tanh", "relu", "hard_sigmoid", "soft_sign", "linear", "elu"})
    if (known == possible) return {find_unary(known), alpha, beta};
  fail_unsupported("activation \"" + name + "\"");
}

Settings read_settings(const std::string& type, const Attributes& a) {
  Settings s{};
  s.kind = type.starts_with("LSTM") ? Kind::lstm : type.starts_with("GRU") ? Kind::gru : Kind::rnn;
  s.hidden = a.get_int("hidden_size");
  if (s.hidden < 1 || s.hidden > kLargestState)
    fail_model("hidden_size is " + std::to_string(s.hidden));
  s.clip = static_cast<float>(a.get_float("clip", 0));
  s.reset_after = s.kind == Kind::gru && a.get_bool("linear_before_reset", false);
  if (a.get_bool("input_forget", false)) fail_unsupported("input_forget");
  // Ignores weights_format of the first LSTMCell: weights are always in the order below.
  const char* usual = s.kind == Kind::lstm  ? "sigmoid,tanh,tanh"
                      : s.kind == Kind::gru ? "sigmoid,tanh"
                                            : "tanh";
  std::string names = a.get_string("activations", usual);
  if (words(names) == words("")) names = usual;
  const std::vector<std::string> list = words(names);
  const std::vector<double> alpha = a.get_floats("activations_alpha", std::vector<double>()),
                            beta = a.get_floats("activations_beta", std::vector<double>());
  if (list.size() != words(usual).size())
    fail_model("activations=\"" + names + "\" must name " + std::to_string(words(usual).size()));
  for (size_t i = 0; i < list.size(); ++i) {
    const bool is_hard = list[i] == "hardsigmoid";  // the only one whose parameters have defaults
    s.activations.push_back(activation(list[i],
                                       i < alpha.size() ? static_cast<float>(alpha[i])
                                       : is_hard        ? 0.2f
                                                        : 1.0f,
                                       i < beta.size() ? static_cast<float>(beta[i])
                                       : is_hard       ? 0.5f
                                                       : 0.0f));
  }
  return s;
}

// ---- one step ----------------------------------------------------------------------------------

// The weights of one direction: w [gates * hidden, in], r [gates * hidden, hidden], b [bias rows *
// hidden] or null.
struct Weights {
  const float *w, *r, *b;
  int64_t in;
};

float dot(const float* a, const float* b, int64_t n) {
  float sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += a[i] * b[i];
  return sum;
}

// Replaces the states by the new ones, computed from x. `c` is used for LSTM only.
class Stepper {
 public:
  Stepper(const Settings& s, const Weights& weights)
      : s_(s),
        weights_(weights),
        gates_(static_cast<size_t>(s.bias_rows() * s.hidden)),
        reset_(static_cast<size_t>(s.hidden)) {}

  void step(const float* x, float* h, float* c) {
    const int64_t n = s_.hidden;
    // GRU's last gate needs the reset gate before the state is added.
    const int64_t with_state = s_.kind == Kind::gru ? 2 : s_.gates();
    WorkLimit::for_ranges(s_.gates() * n, static_cast<double>(weights_.in + n),
                          [&](int64_t begin, int64_t end) {
                            for (int64_t row = begin; row < end; ++row)
                              gates_[static_cast<size_t>(row)] =
                                  dot(weights_.w + row * weights_.in, x, weights_.in) + bias(row) +
                                  (row < with_state * n ? dot(weights_.r + row * n, h, n) : 0.0f);
                          });
    if (s_.kind == Kind::lstm) return finish_lstm(h, c);
    if (s_.kind == Kind::gru) return finish_gru(h);
    for (int64_t i = 0; i < n; ++i)
      h[i] = s_.activations[0](clipped(gates_[static_cast<size_t>(i)]));
  }

 private:
  float bias(int64_t row) const { return weights_.b ? weights_.b[row] : 0.0f; }
  float clipped(float v) const { return s_.clip > 0 ? std::clamp(v, -s_.clip, s_.clip) : v; }
  float gate(size_t which, int64_t i) const {
    return clipped(gates_[which * static_cast<size_t>(s_.hidden) + static_cast<size_t>(i)]);
  }

  void finish_lstm(float* h, float* c) {  // gates: forget, input, cell, output
    const auto& f = s_.activations;
    for (int64_t i = 0; i < s_.hidden; ++i) {
      c[i] = f[0](gate(0, i)) * c[i] + f[0](gate(1, i)) * f[1](gate(2, i));
      h[i] = f[0](gate(3, i)) * f[2](c[i]);
    }
  }

  void finish_gru(float* h) {  // gates: update, reset, new
    const int64_t n = s_.hidden;
    const float* r = weights_.r + 2 * n * n;
    for (int64_t i = 0; i < n; ++i) {
      const float reset = s_.activations[0](gate(1, i));
      reset_[static_cast<size_t>(i)] =
          s_.reset_after ? reset * (dot(r + i * n, h, n) + bias(3 * n + i)) : reset * h[i];
    }
    for (int64_t i = 0; i < n; ++i) {
      const float state =
          s_.reset_after ? reset_[static_cast<size_t>(i)] : dot(r + i * n, reset_.data(), n);
      gates_[static_cast<size_t>(2 * n + i)] += state;
    }
    for (int64_t i = 0; i < n; ++i) {
      const float update = s_.activations[0](gate(0, i));
      h[i] = (1 - update) * s_.activations[1](gate(2, i)) + update * h[i];
    }
  }

  const Settings& s_;
  Weights weights_;
  std::vector<float> gates_, reset_;
};

double work_of_step(const Settings& s, int64_t in) {
  return static_cast<double>(s.gates() * s.hidden * (in + s.hidden));
}

// Works as WorkLimit::for_ranges() does. If there is only one sequence, the rows of its weights are
// shared among threads instead.
template <typename F>
void for_independent(int64_t sequences, double each, const F& f) {
  if (sequences == 1)
    f(int64_t{0}, int64_t{1});
  else
    WorkLimit::for_ranges(sequences, each, f);
}

// ---- cells: X, H, (C), W, R, B -----------------------------------------------------------------

void expect(const ShapeContext& context, size_t i, const Shape& shape, const char* what) {
  if (has_input(context, i) && context.inputs[i].shape != shape)
    fail_model(std::string(what) + " has the shape " + to_string(context.inputs[i].shape) +
               ", expected " + to_string(shape));
}

// In the first LSTMCell, gates may depend on the old cell state through weights; converters always
// write zeros.
void check_no_peepholes(const ValueInfo& weights) {
  if (weights.value.empty()) fail_unsupported("peephole weights must be constant");
  const std::vector<float> values = weights.value.to_floats();
  if (std::any_of(values.begin(), values.end(), [](float v) { return v != 0; }))
    fail_unsupported("peepholes");
}

std::vector<ValueInfo> infer_cell(const ShapeContext& context) {
  const Settings s = read_settings(context.type, context.attributes);
  const size_t first = 1 + s.states();
  const bool may_peep = context.type == "LSTMCell" && context.opset < 4;
  check_inputs(context, first + 2, first + (may_peep ? 4 : 3));
  if (has_input(context, first + 3)) check_no_peepholes(context.inputs[first + 3]);
  const Shape& x = context.inputs[0].shape;
  check_rank(x, 2, 2, "the input");
  const ValueInfo state{context.inputs[0].type, {x[0], s.hidden}};
  for (size_t i = 1; i < first; ++i) expect(context, i, state.shape, "a state");
  expect(context, first, {s.gates() * s.hidden, x[1]}, "W");
  expect(context, first + 1, {s.gates() * s.hidden, s.hidden}, "R");
  expect(context, first + 2, {s.bias_rows() * s.hidden}, "B");
  return std::vector<ValueInfo>(s.states(), state);
}

void evaluate_cell(const OpDesc& desc, std::span<const Tensor> inputs, std::span<Tensor> outputs) {
  const Settings s = read_settings(desc.type, desc.attributes);
  const size_t first = 1 + s.states();
  const int64_t batch = inputs[0].shape()[0], in = inputs[0].shape()[1];
  std::vector<std::vector<float>> states;
  for (size_t i = 1; i < first; ++i) states.push_back(inputs[i].to_floats());
  const Weights weights{inputs[first].data<float>(), inputs[first + 1].data<float>(),
                        first + 2 < inputs.size() ? inputs[first + 2].data<float>() : nullptr, in};
  for_independent(batch, work_of_step(s, in), [&](int64_t begin, int64_t end) {
    Stepper stepper(s, weights);
    for (int64_t n = begin; n < end; ++n)
      stepper.step(inputs[0].data<float>() + n * in, states[0].data() + n * s.hidden,
                   s.states() > 1 ? states[1].data() + n * s.hidden : nullptr);
  });
  for (size_t i = 0; i < outputs.size() && i < states.size(); ++i)
    std::copy(states[i].begin(), states[i].end(), outputs[i].mutable_data<float>());
}

// ---- sequences: X, H, (C), lengths, W, R, B ----------------------------------------------------

struct Directions {
  int64_t count;
  bool first_is_reverse;
};

Directions directions_of(const Attributes& a) {
  const std::string name = a.get_string("direction");
  if (name != "forward" && name != "reverse" && name != "bidirectional")
    fail_model("direction \"" + name + "\"");
  return {name == "bidirectional" ? 2 : 1, name == "reverse"};
}

std::vector<ValueInfo> infer_sequence(const ShapeContext& context) {
  const Settings s = read_settings(context.type, context.attributes);
  const int64_t directions = directions_of(context.attributes).count;
  const size_t first = 2 + s.states();
  check_inputs(context, first + 3, first + 3);
  const Shape& x = context.inputs[0].shape;
  check_rank(x, 3, 3, "the input");
  const ElementType type = context.inputs[0].type;
  const Shape state{x[0], directions, s.hidden}, all{x[0], directions, x[1], s.hidden};
  for (size_t i = 1; i + 1 < first; ++i) expect(context, i, state, "a state");
  expect(context, first - 1, {x[0]}, "the lengths");
  check_range(context.inputs[first - 1], 0, x[1], "a length");
  expect(context, first, {directions, s.gates() * s.hidden, x[2]}, "W");
  expect(context, first + 1, {directions, s.gates() * s.hidden, s.hidden}, "R");
  expect(context, first + 2, {directions, s.bias_rows() * s.hidden}, "B");
  checked_count(all);
  std::vector<ValueInfo> outputs(1 + s.states(), ValueInfo{type, state});
  outputs[0].shape = all;
  return outputs;
}

void evaluate_sequence(const OpDesc& desc, std::span<const Tensor> inputs,
                       std::span<Tensor> outputs) {
  const Settings s = read_settings(desc.type, desc.attributes);
  const Directions directions = directions_of(desc.attributes);
  const size_t first = 2 + s.states();
  const int64_t batch = inputs[0].shape()[0], steps = inputs[0].shape()[1],
                in = inputs[0].shape()[2];
  const std::vector<int64_t> lengths = inputs[first - 1].to_ints();
  std::vector<std::vector<float>> states;
  for (size_t i = 1; i + 1 < first; ++i) states.push_back(inputs[i].to_floats());
  float* all = outputs[0].mutable_data<float>();
  std::fill_n(all, outputs[0].elements(), 0.0f);  // steps after the end of a sequence stay 0
  const auto run = [&](int64_t n, int64_t d) {
    const bool reverse = d == 1 || directions.first_is_reverse;
    const int64_t rows = s.gates() * s.hidden;
    Stepper stepper(s, {inputs[first].data<float>() + d * rows * in,
                        inputs[first + 1].data<float>() + d * rows * s.hidden,
                        inputs[first + 2].data<float>() + d * s.bias_rows() * s.hidden, in});
    const int64_t length = std::clamp<int64_t>(lengths[static_cast<size_t>(n)], 0, steps),
                  at = (n * directions.count + d) * s.hidden;
    float *h = states[0].data() + at, *c = s.states() > 1 ? states[1].data() + at : nullptr;
    for (int64_t t = 0; t < length; ++t) {
      WorkLimit::may_go_on();
      const int64_t step = reverse ? length - 1 - t : t;
      stepper.step(inputs[0].data<float>() + (n * steps + step) * in, h, c);
      std::copy(h, h + s.hidden, all + ((n * directions.count + d) * steps + step) * s.hidden);
    }
  };
  for_independent(batch * directions.count, static_cast<double>(steps) * work_of_step(s, in),
                  [&](int64_t begin, int64_t end) {
                    for (int64_t i = begin; i < end; ++i)
                      run(i / directions.count, i % directions.count);
                  });
  for (size_t i = 0; i + 1 < outputs.size() && i < states.size(); ++i)
    std::copy(states[i].begin(), states[i].end(), outputs[i + 1].mutable_data<float>());
}

// ---- kernel ------------------------------------------------------------------------------------

bool is_sequence_type(const std::string& type) { return type.ends_with("Sequence"); }
// Returns the index of the input W.
size_t weights_input(const OpDesc& desc, const Settings& s) {
  return (is_sequence_type(desc.type) ? 2 : 1) + s.states();
}

// Returns the number of hidden units for which the kernel reserves local memory. There are few
// sizes, so that networks share programs.
int64_t room(int64_t hidden) {
  return static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(std::max<int64_t>(hidden, 64))));
}

std::string reject_tensors(const OpDesc& desc, const Settings& s) {
  const size_t first = weights_input(desc, s);
  for (size_t i = first; i < std::min(first + 3, desc.own_inputs); ++i)
    if (desc.constants[i].empty()) return "the weights are not constant";
  const bool sequence = is_sequence_type(desc.type);
  if (desc.outputs.size() < s.states() + sequence) return "fewer outputs than the operation has";
  // Accepts both float types, because the application's tensors may stay f32 where activations are
  // f16.
  const auto is_storage = [](const TensorDesc& tensor) {
    return tensor.type == ElementType::f32 || tensor.type == ElementType::f16;
  };
  for (size_t i = 0; i <= s.states(); ++i)
    if (!is_storage(desc.inputs[i]) || desc.inputs[i].span() > kMaxIndex)
      return "the input or a state is too large, or neither f32 nor f16";
  for (const TensorDesc& output : desc.outputs)
    if (!is_storage(output) || output.type != desc.outputs[0].type || output.elements() == 0 ||
        output.span() > kMaxIndex)
      return "an output is empty, too large, or of another type";
  if (sequence && desc.inputs[first - 1].type != ElementType::i32 &&
      desc.inputs[first - 1].type != ElementType::i64)
    return "the lengths are neither i32 nor i64";
  return desc.tail.empty() ? "" : "takes no tail";
}

std::string reject(const OpDesc& desc, const DeviceTraits& traits) {
  const Settings s = read_settings(desc.type, desc.attributes);
  if (std::string why = reject_tensors(desc, s); !why.empty()) return why;
  if (static_cast<size_t>(5 * room(s.hidden)) * sizeof(float) > traits.local_memory)
    return "the states do not fit into local memory";
  return "";
}

// The number of hidden units from which on a launch for each step is faster. One work-group reads
// all weights of the states in each step, at the speed of one compute unit: 64 steps of an LSTM of
// 128 units take 0.54 ms on an H100; with 256 units they take 1.15 ms, and 0.37 ms by launches.
constexpr int64_t kWorthLaunch = 128;
constexpr int64_t kMostLaunches = 1024;

int64_t steps_of(const OpDesc& desc) {
  return is_sequence_type(desc.type) ? desc.inputs[0].shape[1] : 1;
}

// Returns the number of launches of a step. A GRU's second product needs the reset gates of all
// units, unless the gate is applied after the product.
int64_t launches_of_a_step(const Settings& s) {
  return s.kind == Kind::gru && !s.reset_after ? 2 : 1;
}

std::string reject_steps(const OpDesc& desc, const DeviceTraits& traits) {
  const Settings s = read_settings(desc.type, desc.attributes);
  if (std::string why = reject_tensors(desc, s); !why.empty()) return why;
  if (traits.is_cpu) return "a CPU's core reads the weights as fast as all of them";
  const int64_t launches = launches_of_a_step(s);
  if (s.hidden < launches * kWorthLaunch)
    return "fewer than " + std::to_string(launches * kWorthLaunch) + " hidden units";
  const bool both = is_sequence_type(desc.type) && directions_of(desc.attributes).count == 2;
  if (2 * desc.inputs[0].shape[0] * (both ? 2 : 1) > traits.compute_units)
    return "a work-group for each image fills half of the device";
  if (launches * steps_of(desc) > kMostLaunches)
    return "more than " + std::to_string(kMostLaunches) + " launches";
  return "";
}

// Returns an activation as a function in the kernel's source.
std::string function_text(size_t number, const Activation& activation) {
  return "FLOATV(VECTOR) FN(f" + std::to_string(number) + ")(FLOATV(VECTOR) x) { return " +
         with_parameters(activation.function->opencl, activation.alpha, activation.beta) + "; }\n";
}

// Returns the points. A work-item of a CPU computes vectors of units one after the other; elsewhere
// work-items share the units.
std::vector<TuningPoint> space(const OpDesc&, const DeviceTraits& traits) {
  std::vector<TuningPoint> points;
  if (traits.is_cpu) {
    for (const int vector : {16, 8, 4}) points.push_back({{{"VECTOR", vector}, {"LOCAL", 1}}});
    return points;
  }
  for (const int local : {256, 128, 64, 512, 1024})
    if (static_cast<size_t>(local) <= traits.max_work_group)
      points.push_back({{{"VECTOR", 1}, {"LOCAL", local}}});
  if (points.empty()) points.push_back({{{"VECTOR", 1}, {"LOCAL", 1}}});
  return points;
}

// Chooses about as many work-items as there are units.
TuningPoint heuristic(const OpDesc& desc, const DeviceTraits& traits) {
  const int64_t hidden = desc.attributes.get_int("hidden_size");
  return cheapest(space(desc, traits), [&](const TuningPoint& point) {
    const int items = point["LOCAL"], vector = point["VECTOR"];
    if (traits.is_cpu) return vector == static_cast<int>(traits.vector_width) ? 0.0 : 16.0 / vector;
    const auto rounds = static_cast<double>((hidden + items - 1) / items);
    return rounds + items / 2048.0;
  });
}

std::vector<TuningPoint> space_of_steps(const OpDesc&, const DeviceTraits& traits) {
  const int local =
      static_cast<int>(std::bit_floor(std::clamp<size_t>(traits.max_work_group, 8, 256)));
  std::vector<TuningPoint> points;
  for (const int units : {8, 16, 32})
    if (units <= local) points.push_back({{{"VECTOR", 1}, {"LOCAL", local}, {"UNITS", units}}});
  return points;
}

// Chooses the largest number of units in a work-group that leaves a work-group for each compute
// unit.
TuningPoint heuristic_of_steps(const OpDesc& desc, const DeviceTraits& traits) {
  const int64_t hidden = desc.attributes.get_int("hidden_size") * desc.inputs[0].shape[0];
  return cheapest(space_of_steps(desc, traits), [&](const TuningPoint& point) {
    const int64_t groups = hidden / point["UNITS"];
    return groups < traits.compute_units ? 100.0 + point["UNITS"] : 1.0 / point["UNITS"];
  });
}

// The layout of the packed weights. Units are padded to whole vectors. On a CPU a block has VECTOR
// rows, elsewhere one block has all rows.
struct Packing {
  int64_t directions, in, hidden, padded, gates, bias_rows, block;
  int64_t rows() const { return gates * padded; }  // rows of a direction
  int64_t of_inputs() const { return directions * in * rows(); }
  int64_t of_states() const { return directions * hidden * rows(); }
};

std::vector<std::byte> pack(const Tensor& w, const Tensor& r, const Tensor& b, const Packing& p) {
  const std::vector<float> from_w = w.to_floats(), from_r = r.to_floats(),
                           from_b = b.empty() ? std::vector<float>() : b.to_floats();
  std::vector<float> to(
      static_cast<size_t>(p.of_inputs() + p.of_states() + p.directions * p.bias_rows * p.padded));
  const auto at = [](const auto& all, int64_t i) -> auto& { return all[static_cast<size_t>(i)]; };
  float* out = to.data();
  for (int64_t d = 0; d < p.directions; ++d)
    for (int64_t k = 0; k < p.gates; ++k)
      for (int64_t unit = 0; unit < p.hidden; ++unit) {
        const int64_t from = (d * p.gates + k) * p.hidden + unit, row = k * p.padded + unit;
        const int64_t row_block = p.block ? p.block : p.rows();
        float* const inputs = out + d * p.in * p.rows() + row / row_block * row_block * p.in;
        for (int64_t j = 0; j < p.in; ++j)
          inputs[j * row_block + row % row_block] = at(from_w, from * p.in + j);
        const int64_t block = p.block ? p.block : p.padded;
        float* const states = out + p.of_inputs() + d * p.hidden * p.rows() +
                              unit / block * block * p.gates * p.hidden;
        for (int64_t j = 0; j < p.hidden; ++j)
          states[(j * p.gates + k) * block + unit % block] = at(from_r, from * p.hidden + j);
      }
  if (!from_b.empty())
    for (int64_t row = 0; row < p.directions * p.bias_rows; ++row)
      std::copy_n(&at(from_b, row * p.hidden), p.hidden,
                  out + p.of_inputs() + p.of_states() + row * p.padded);
  return to_bytes(to, ElementType::f32);
}

struct InputArgs {
#include "kernels/recurrent/recurrent_input_args.cl"
};

// Makes the launch that multiplies the input's weights with all steps.
KernelSpec input_launch(const OpDesc& desc, const DeviceTraits& traits, const TuningPoint& point,
                        const Packing& p) {
  const bool sequence = is_sequence_type(desc.type);
  const TensorDesc& x = desc.inputs[0];
  InputArgs args{};
  args.x_n = to_int(x.strides[0]), args.x_i = to_int(x.strides.back());
  args.x_t = to_int(sequence ? x.strides[1] : 0);
  args.images = to_int(x.shape[0]), args.directions = to_int(p.directions);
  args.steps = to_int(sequence ? x.shape[1] : 1), args.inputs = to_int(p.in);
  args.rows = to_int(p.rows()), args.biases = to_int(p.of_inputs() + p.of_states());
  args.stated = to_int(p.bias_rows * p.padded);
  const int64_t steps = args.steps == 1 ? 1 : traits.is_cpu && traits.vector_width < 16 ? 4 : 8;
  KernelSpec spec;
  spec.source = "recurrent_input.cl";
  spec.defines = {{"T", storage_name(x.type)},
                  {"VECTOR", std::to_string(point["VECTOR"])},
                  {"STEPS", std::to_string(steps)},
                  {"BLOCKED", p.block ? "1" : "0"}};
  spec.arguments = {Argument::input(0, size_of(x.type)), Argument::packed(0, sizeof(float)),
                    Argument::workspace(sizeof(float)), Argument::value(args)};
  const int64_t tiles = (args.steps + steps - 1) / steps;
  set_items(spec, x.shape[0] * p.directions * tiles * (p.rows() / point["VECTOR"]), point);
  return spec;
}

struct Args {
#include "kernels/recurrent/recurrent_args.cl"
};

Args strides_of(const OpDesc& desc, const Settings& s, size_t first) {
  const bool sequence = is_sequence_type(desc.type);
  // States are [batch, direction, unit]; cells have neither directions nor steps.
  const auto inner = [&](const TensorDesc& t, size_t d) {
    return to_int(sequence ? t.strides[d] : 0);
  };
  const TensorDesc &h = desc.inputs[1], &c = desc.inputs[s.states()], &all = desc.outputs[0],
                   &last = desc.outputs[sequence], &cell = desc.outputs[sequence + s.states() - 1];
  Args args{};
  args.h_n = to_int(h.strides[0]), args.h_i = to_int(h.strides.back());
  args.h_d = inner(h, 1);
  args.c_n = to_int(c.strides[0]), args.c_i = to_int(c.strides.back());
  args.c_d = inner(c, 1);
  args.length_n = sequence ? to_int(desc.inputs[first - 1].strides[0]) : 0;
  args.all_n = to_int(all.strides[0]), args.all_i = to_int(all.strides.back());
  args.all_d = inner(all, 1), args.all_t = inner(all, 2);
  args.last_n = to_int(last.strides[0]), args.last_i = to_int(last.strides.back());
  args.last_d = inner(last, 1);
  args.cell_n = to_int(cell.strides[0]), args.cell_i = to_int(cell.strides.back());
  args.cell_d = inner(cell, 1);
  return args;
}

// A layer as all its kernels need it.
struct Layer {
  Settings s;
  bool sequence;
  Directions directions;
  size_t first;  // index of the input W
  Packing packing;
};

Layer layer_of(const OpDesc& desc, const DeviceTraits& traits, int64_t vector) {
  Layer l{
      read_settings(desc.type, desc.attributes), is_sequence_type(desc.type), {1, false}, 0, {}};
  if (l.sequence) l.directions = directions_of(desc.attributes);
  l.first = weights_input(desc, l.s);
  l.packing = {l.directions.count,
               desc.inputs[0].shape.back(),
               l.s.hidden,
               (l.s.hidden + vector - 1) / vector * vector,
               l.s.gates(),
               l.s.bias_rows(),
               traits.is_cpu ? vector : 0};
  return l;
}

int64_t gates_of(const OpDesc& desc, const Layer& l) {
  return desc.inputs[0].shape[0] * l.packing.directions * steps_of(desc) * l.packing.rows();
}

// Packs the weights and makes the launch that computes the input's part of the gates; `states`
// floats follow the gates in the workspace.
KernelPlan begin_plan(const OpDesc& desc, const DeviceTraits& traits, const TuningPoint& point,
                      const Layer& l, int64_t states) {
  KernelPlan plan;
  plan.packed.push_back([w = desc.constants[l.first], r = desc.constants[l.first + 1],
                         b = l.first + 2 < desc.own_inputs ? desc.constants[l.first + 2] : Tensor(),
                         p = l.packing] { return pack(w, r, b, p); });
  plan.launches.push_back(input_launch(desc, traits, point, l.packing));
  plan.workspace = sizeof(float) * static_cast<size_t>(to_int(gates_of(desc, l) + states));
  return plan;
}

int kind_number(const Settings& s) {
  return s.kind == Kind::rnn ? 0 : s.kind == Kind::lstm ? 1 : s.reset_after ? 3 : 2;
}

// Sets defines, functions and arguments.
KernelSpec step_kernel(const char* source, const OpDesc& desc, const Layer& l) {
  const Settings& s = l.s;
  const ElementType length = l.sequence ? desc.inputs[l.first - 1].type : ElementType::i32;
  KernelSpec spec;
  spec.source = source;
  spec.defines = {{"T", storage_name(desc.outputs[0].type)},
                  {"H", storage_name(desc.inputs[1].type)},
                  {"C", storage_name(desc.inputs[s.states()].type)},
                  {"LENGTH", length == ElementType::i64 ? "long" : "int"},
                  {"KIND", std::to_string(kind_number(s))},
                  {"SEQUENCE", l.sequence ? "1" : "0"},
                  {"GATES", std::to_string(s.gates())},
                  {"BIAS_ROWS", std::to_string(s.bias_rows())}};
  for (size_t i = 0; i < s.activations.size(); ++i)
    spec.prologue += function_text(i, s.activations[i]);
  const Packing& p = l.packing;
  Args args = strides_of(desc, s, l.first);
  args.steps = to_int(steps_of(desc)), args.hidden = to_int(s.hidden);
  args.padded = to_int(p.padded), args.directions = to_int(p.directions);
  args.reverse = (l.directions.first_is_reverse ? 1 : 0) | (l.directions.count > 1 ? 2 : 0);
  args.states = to_int(p.of_inputs()), args.biases = to_int(p.of_inputs() + p.of_states());
  args.clip = s.clip;
  spec.arguments.push_back(Argument::workspace(sizeof(float)));
  for (size_t i = 1; i <= s.states(); ++i)
    spec.arguments.push_back(Argument::input(i, size_of(desc.inputs[i].type)));
  if (l.sequence) spec.arguments.push_back(Argument::input(l.first - 1, size_of(length)));
  spec.arguments.push_back(Argument::packed(0, sizeof(float)));
  for (size_t i = 0; i < s.states() + l.sequence; ++i)
    spec.arguments.push_back(Argument::output(i, size_of(desc.outputs[i].type)));
  spec.arguments.push_back(Argument::value(args));
  return spec;
}

KernelPlan plan(const OpDesc& desc, const DeviceTraits& traits, const TuningPoint& point) {
  const Layer l = layer_of(desc, traits, point["VECTOR"]);
  KernelPlan plan = begin_plan(desc, traits, point, l, 0);
  KernelSpec spec = step_kernel("recurrent.cl", desc, l);
  const int kind = kind_number(l.s);
  const int64_t kept = kind == 1 ? 3 : kind == 2 ? 5 : 2;  // vectors in local memory
  for (const auto& [name, value] : {std::pair{"MOST", room(l.s.hidden)},
                                    {"KEPT", kept},
                                    {"VECTOR", int64_t{point["VECTOR"]}},
                                    {"CHAINS", traits.ordered_sums ? 1
                                               : l.s.gates() == 1  ? 4
                                                                   : 2},
                                    {"BLOCKED", l.packing.block ? 1 : 0}})
    spec.defines.emplace_back(name, std::to_string(value));
  set_items(spec, desc.inputs[0].shape[0] * l.directions.count * point["LOCAL"], point);
  spec.shared = sizeof(float) * static_cast<size_t>(kept * room(l.s.hidden));
  plan.launches.push_back(std::move(spec));
  return plan;
}

KernelPlan plan_steps(const OpDesc& desc, const DeviceTraits& traits, const TuningPoint& point) {
  const Layer l = layer_of(desc, traits, 1);
  const int64_t rows = desc.inputs[0].shape[0] * l.directions.count, units = point["UNITS"],
                parts = point["LOCAL"] / units, phases = launches_of_a_step(l.s),
                kept = phases == 2 ? 4 : 3;
  KernelPlan plan = begin_plan(desc, traits, point, l, rows * kept * l.s.hidden);
  KernelSpec spec = step_kernel("recurrent_step.cl", desc, l);
  spec.arguments.push_back(Argument::value(to_int(gates_of(desc, l))));
  for (const auto& [name, value] :
       {std::pair{"VECTOR", int64_t{1}}, {"UNITS", units}, {"PARTS", parts}, {"KEPT", kept}})
    spec.defines.emplace_back(name, std::to_string(value));
  set_items(spec, rows * ((l.s.hidden + units - 1) / units) * point["LOCAL"], point);
  spec.shared = sizeof(float) * static_cast<size_t>(point["LOCAL"] * l.s.gates());
  for (int64_t t = 0; t < steps_of(desc); ++t)
    for (int64_t phase = 0; phase < phases; ++phase) {
      KernelSpec& launch = plan.launches.emplace_back(spec);
      launch.defines.emplace_back("PHASE", std::to_string(phases == 2 ? phase + 1 : 0));
      launch.arguments.push_back(Argument::value(to_int(t)));
    }
  return plan;
}

// Spreads hidden units over the device; see recurrent_step.cl.
const KernelFamily kRecurrentSteps{"recurrent_steps",  1,          reject_steps, space_of_steps,
                                   heuristic_of_steps, plan_steps, nullptr,      kSharedSums};
const KernelFamily kRecurrent{"recurrent", 2, reject, space, heuristic, plan};

OpDef recurrent_op(const char* type, int opset, bool is_sequence) {
  return {.type = type,
          .opsets = opset_range(opset),
          .infer_shapes = is_sequence ? infer_sequence : infer_cell,
          .evaluate = is_sequence ? evaluate_sequence : evaluate_cell,
          .families = {&kRecurrentSteps, &kRecurrent},
          .host_reason = kHostReason};
}

}  // namespace

std::vector<OpDef> recurrent_ops() {
  return {recurrent_op("LSTMCell", 1, false),   recurrent_op("GRUCell", 3, false),
          recurrent_op("RNNCell", 1, false),    recurrent_op("LSTMSequence", 5, true),
          recurrent_op("GRUSequence", 5, true), recurrent_op("RNNSequence", 5, true)};
}

}  // namespace clinfer
