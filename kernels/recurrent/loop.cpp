// TensorIterator, Loop, If, DeviceLoop and Subgraph: shapes, and execution on the host. Passes
// unroll bodies with a known number of iterations or turn them into a DeviceLoop; the others run
// here.
#include "kernels/recurrent/loop.h"

#include <algorithm>
#include <stdexcept>

#include "kernels/base/system/work_limit.h"
#include "kernels/kernel.h"
#include "kernels/shape_util.h"

namespace clinfer {

namespace {

constexpr const char* kHostReason =
    "how often the body runs, or which one, depends on values; or a layer of it has no kernel";
constexpr int64_t kMostIterations = 1 << 15;
// The maximum number of iterations that are counted by following them.
constexpr int64_t kMostCounted = 256;
// A number of nodes that exceeds every limit. Counts stay small, since a limit can be exceeded
// often.
constexpr double kMostAtOnce = 1 << 30;

thread_local IterationLimit* outermost = nullptr;

const Body& only_body(std::span<const std::shared_ptr<const Body>> bodies) {
  if (bodies.size() != 1 || !bodies[0]) fail_model("has no body");
  return *bodies[0];
}

// Returns the size along the sliced axis of an input.
int64_t slices_of(const Body::Port& port, const Shape& shape) {
  const auto axis = checked_axis(port.axis, shape.size(), "the axis of a port map");
  const int64_t size = shape[axis];
  const auto from_start = [&](int64_t v) { return v < 0 ? v + size + 1 : v; };
  const int64_t first = from_start(port.start), last = from_start(port.end);
  const int64_t low = std::min(first, last), high = std::max(first, last);
  if (low < 0 || high > size || port.stride == 0 || port.part < 1 ||
      std::abs(port.stride) < port.part || (port.stride > 0 ? last < first : first < last))
    fail_model("a port map slices an axis of " + std::to_string(size) + " elements from " +
               std::to_string(port.start) + " to " + std::to_string(port.end) + " by " +
               std::to_string(port.stride) + ", " + std::to_string(port.part) + " at a time");
  return (high - low) / std::abs(port.stride);
}

bool is_true(const Tensor& value) { return one_int(value, "a condition") != 0; }

// Returns the body's parameters in the first iteration, with the values that are known.
std::vector<ValueInfo> first_parameters(const Body& body, std::span<const ValueInfo> inputs) {
  std::vector<ValueInfo> parameters(body.parameter_count());
  std::vector<bool> given(parameters.size(), false);
  for (const Body::Port& port : body.inputs) {
    if (port.outer >= inputs.size() || port.inner >= parameters.size())
      fail_model("a port map names an input that is not there");
    ValueInfo& info = parameters[port.inner];
    info = inputs[port.outer];
    // Takes the type that the body states for integers, which may have been narrowed outside of the
    // body.
    if (const ElementType stated = body.parameter(port.inner).type;
        !is_float(info.type) && !is_float(stated)) {
      info.type = stated;
      if (!info.value.empty()) info.value = info.value.convert(stated);
    }
    given[port.inner] = true;
    if (port.sliced) {
      slices_of(port, info.shape);
      info.shape[checked_axis(port.axis, info.shape.size(), "the axis of a port map")] = port.part;
      info.value = {};
    }
  }
  if (body.counter && *body.counter < parameters.size()) {
    parameters[*body.counter] = body.parameter(*body.counter);
    if (checked_count(parameters[*body.counter].shape) != 1)
      fail_model("the number of the iteration has the shape " +
                 to_string(parameters[*body.counter].shape) + " in the body; it is one number");
    given[*body.counter] = true;
  }
  if (std::find(given.begin(), given.end(), false) != given.end())
    fail_model("a parameter of the body is tied to no input");
  for (const Body::BackEdge& edge : body.back_edges) {
    const auto is_slice = [&](const Body::Port& port) {
      return port.sliced && port.inner == edge.parameter;
    };
    if (body.counter == edge.parameter ||
        std::any_of(body.inputs.begin(), body.inputs.end(), is_slice))
      fail_model("a back edge leads to a parameter that each iteration has a value of its own for");
  }
  return parameters;
}

// Checks that each output of the operation is one result of the body.
void check_outputs(const Body& body, size_t output_count, size_t result_count) {
  std::vector<bool> given(output_count, false);
  for (const Body::Port& port : body.outputs) {
    if (port.outer >= output_count || port.inner >= result_count)
      fail_model("a port map names an output that is not there");
    if (given[port.outer]) fail_model("a port map ties an output to two results of the body");
    given[port.outer] = true;
  }
  if (std::find(given.begin(), given.end(), false) != given.end())
    fail_model("an output is tied to no result of the body");
}

// Returns the view of a part of `whole`.
TensorDesc part_of(const Tensor& whole, const Body::Port& port, int64_t begin, int64_t part) {
  TensorDesc view = TensorDesc::row_major(whole.type(), whole.shape());
  const auto axis = checked_axis(port.axis, whole.shape().size(), "the axis of a port map");
  view.offset = begin * view.strides[axis];
  view.shape[axis] = part;
  return view;
}

// Returns the part of a sliced input that iteration i reads.
Tensor nth_part(const Tensor& whole, const Body::Port& port, int64_t i) {
  const auto axis = checked_axis(port.axis, whole.shape().size(), "the axis of a port map");
  const TensorDesc view = part_of(whole, port, part_begin(port, whole.shape()[axis], i), port.part);
  Tensor part = Tensor::allocate(whole.type(), view.shape);
  copy_view(whole, view, part);
  return part;
}

void check_slices(const Body::Port& port, const Shape& shape, int64_t i) {
  if (i >= slices_of(port, shape)) fail_model("the loop runs on past the end of a sliced input");
}

// Sets the known values of iteration i besides its states: its number, and parts of constants.
void enter(const Body& body, std::span<const ValueInfo> inputs, int64_t i,
           std::vector<ValueInfo>& parameters) {
  for (const Body::Port& port : body.inputs) {
    if (!port.sliced) continue;
    const ValueInfo& whole = inputs[port.outer];
    check_slices(port, whole.shape, i);
    if (!whole.value.empty())
      parameters[port.inner].value =
          nth_part(whole.value, port, i).convert(parameters[port.inner].type);
  }
  if (body.counter) parameters[*body.counter].value = number_of(body.parameter(*body.counter), i);
}

void check_back_edges(const Body& body, size_t parameter_count, size_t result_count) {
  for (const Body::BackEdge& edge : body.back_edges)
    if (edge.result >= result_count || edge.parameter >= parameter_count)
      fail_model("a back edge leads from or to nowhere");
}

// Returns a state whose shape differs between the beginning and the end of an iteration; null if
// there is none.
const Body::BackEdge* changed_state(const Body& body, std::span<const ValueInfo> parameters,
                                    std::span<const ValueInfo> results) {
  check_back_edges(body, parameters.size(), results.size());
  for (const Body::BackEdge& edge : body.back_edges)
    if (results[edge.result].shape != parameters[edge.parameter].shape) return &edge;
  return nullptr;
}

void expect_same_states(const Body& body, std::span<const ValueInfo> parameters,
                        std::span<const ValueInfo> results) {
  if (const Body::BackEdge* edge = changed_state(body, parameters, results))
    fail_unsupported("a state changes its shape from " +
                     to_string(parameters[edge->parameter].shape) + " to " +
                     to_string(results[edge->result].shape) + " in one iteration");
}

// Advances to the next iteration: its states are the results of this one.
void advance(const Body& body, std::span<const ValueInfo> results,
             std::vector<ValueInfo>& parameters) {
  check_back_edges(body, parameters.size(), results.size());
  for (const Body::BackEdge& edge : body.back_edges)
    parameters[edge.parameter] = results[edge.result];
}

void expect_same_parts(const Body& body, std::span<const ValueInfo> first,
                       std::span<const ValueInfo> results) {
  for (const Body::Port& port : body.outputs)
    if (port.sliced && port.inner < results.size() &&
        results[port.inner].shape != first[port.inner].shape)
      fail_unsupported("an output's part has the shape " + to_string(first[port.inner].shape) +
                       " in the first iteration, then " + to_string(results[port.inner].shape));
}

void forget_states(const Body& body, std::vector<ValueInfo>& parameters) {
  for (const Body::BackEdge& edge : body.back_edges)
    if (edge.parameter < parameters.size()) parameters[edge.parameter].value = {};
}

// Infers the second and all later iterations, for any values of the states. The first iteration may
// give its final shape to a state that only begins there (in TensorFlow, a list of tensors of
// unknown shape).
std::vector<ValueInfo> infer_iteration(const Body& body, std::vector<ValueInfo> parameters) {
  forget_states(body, parameters);
  const std::vector<ValueInfo> first = body.infer_shapes(parameters);
  if (!changed_state(body, parameters, first)) return first;
  advance(body, first, parameters);
  forget_states(body, parameters);
  std::vector<ValueInfo> results = body.infer_shapes(parameters);
  expect_same_states(body, parameters, results);
  expect_same_parts(body, first, results);
  return results;
}

// Infers loops whose shapes depend on values that differ between iterations, such as a slice at a
// counter, from the first iterations. A state's shape may become known in one of them, or may grow
// in each if the number of iterations is known. The shapes of later iterations are checked when the
// loop is unrolled or run.
std::vector<ValueInfo> infer_iterations(const Body& body, const ShapeContext& context) {
  int64_t done = 0;
  std::optional<int64_t> count;  // number of iterations, set once a state has changed its shape
  std::vector<ValueInfo> first, last;
  follow_iterations(body, context.inputs,
                    [&](std::span<const ValueInfo> parameters, std::vector<ValueInfo>& results) {
                      results = last = body.infer_shapes(parameters);
                      if (++done == 1) first = results;
                      expect_same_parts(body, first, results);
                      const bool changed = changed_state(body, parameters, results);
                      if (done == 1 && changed)
                        count = iterations(context.type, body, context.inputs);
                      if (done == 2 && count.value_or(kMostCounted + 1) > kMostCounted)
                        expect_same_states(body, parameters, results);
                      return changed && done < count.value_or(2);
                    });
  return last;
}

std::vector<ValueInfo> infer_body(const Body& body, const ShapeContext& context) {
  try {
    return infer_iteration(body, first_parameters(body, context.inputs));
  } catch (const Error& error) {
    if (error.code() != ErrorCode::unsupported) throw;
  }
  return infer_iterations(body, context);
}

std::vector<ValueInfo> infer_loop(const ShapeContext& context) {
  const Body& body = only_body(context.bodies);
  const std::vector<ValueInfo> results = infer_body(body, context);
  const bool sliced = std::any_of(body.outputs.begin(), body.outputs.end(),
                                  [](const Body::Port& port) { return port.sliced; });
  const std::optional<int64_t> count =
      sliced ? iterations(context.type, body, context.inputs) : std::nullopt;
  check_outputs(body, context.output_count, results.size());
  std::vector<ValueInfo> outputs(context.output_count);
  for (const Body::Port& port : body.outputs) {
    outputs[port.outer] = {results[port.inner].type, results[port.inner].shape, {}};
    if (!port.sliced) continue;
    Shape& shape = outputs[port.outer].shape;
    int64_t& size = shape[checked_axis(port.axis, shape.size(), "the axis of a port map")];
    if (!count) {
      // Limits how many parts are joined by the trip count, if the condition may end the loop
      // earlier.
      if (context.type != "Loop" || context.inputs[0].value.empty() ||
          one_int(context.inputs[0].value, "the trip count") < 0)
        fail_unsupported("the size of an output depends on values computed at run time");
      size = checked_product(size, one_int(context.inputs[0].value, "the trip count"));
    } else {
      size = checked_product(size, *count);
    }
  }
  return outputs;
}

// Joins the parts of all iterations along the axis, first to last (last to first with a negative
// stride).
Tensor together(std::vector<Tensor> parts, const Body::Port& port, const ValueInfo& stated) {
  Shape shape = stated.shape;
  const auto axis = checked_axis(port.axis, shape.size(), "the axis of a port map");
  shape[axis] = 0;
  for (const Tensor& part : parts) {
    Shape others = part.shape();
    if (others.size() == shape.size()) {
      shape[axis] += others[axis];
      others[axis] = shape[axis];
    }
    if (others != shape || shape[axis] > stated.shape[axis])
      fail_unsupported("its output was to have the shape " + to_string(stated.shape) +
                       ", and a part of it comes out as " + to_string(part.shape()));
  }
  Tensor whole = Tensor::allocate(stated.type, shape);
  if (port.stride < 0) std::reverse(parts.begin(), parts.end());
  int64_t begin = 0;
  for (const Tensor& part : parts) {
    const TensorDesc view = part_of(whole, port, begin, part.shape()[axis]);
    begin += part.shape()[axis];
    if (part.elements() == 0) continue;
    const size_t size = size_of(part.type());
    copy_strided(
        size, part.shape(), part.raw(), row_major_strides(part.shape()),
        static_cast<std::byte*>(whole.raw_mutable()) + view.offset * static_cast<int64_t>(size),
        view.strides);
  }
  return whole;
}

// Refuses a shape that varies between iterations or between inputs, because layers after the loop
// may not expect that.
const Tensor& as_inferred(const Tensor& value, const Shape& shape) {
  if (value.shape() != shape)
    fail_unsupported("its output was to have the shape " + to_string(shape) +
                     ", and comes out as " + to_string(value.shape()));
  return value;
}

// Converts integers that were narrowed outside of the body.
Tensor as_stated(const Body& body, size_t parameter, const Tensor& value) {
  const ElementType type = body.parameter(parameter).type;
  return value.type() == type ? value : value.convert(type);
}

void evaluate_loop(const OpDesc& desc, std::span<const Tensor> inputs, std::span<Tensor> outputs) {
  const Body& body = only_body(desc.bodies);
  std::vector<ValueInfo> infos;
  for (const Tensor& input : inputs) infos.push_back({input.type(), input.shape(), input});
  int64_t count = kMostIterations;
  bool go_on = true;
  if (desc.type == "Loop") {
    const int64_t trips = one_int(inputs[0], "the trip count");
    if (trips >= 0) count = trips;
    go_on = is_true(inputs[1]);
  } else {
    count = iterations(desc.type, body, infos).value_or(0);
  }
  std::vector<Tensor> parameters(body.parameter_count()), results;
  for (const Body::Port& port : body.inputs)
    if (!port.sliced) parameters[port.inner] = as_stated(body, port.inner, inputs[port.outer]);
  std::vector<std::vector<Tensor>> parts(body.outputs.size());
  IterationLimit limit(IterationLimit::kAtInference);
  for (int64_t i = 0; i < count && go_on; ++i) {
    limit.take(body.node_count());
    WorkLimit::may_go_on();
    for (const Body::Port& port : body.inputs) {
      if (!port.sliced) continue;
      const Tensor& whole = inputs[port.outer];
      check_slices(port, whole.shape(), i);
      parameters[port.inner] = as_stated(body, port.inner, nth_part(whole, port, i));
    }
    if (body.counter) parameters[*body.counter] = number_of(body.parameter(*body.counter), i);
    results = body.evaluate(parameters);
    for (size_t k = 0; k < body.outputs.size(); ++k)
      if (body.outputs[k].sliced) parts[k].push_back(results.at(body.outputs[k].inner));
    for (const Body::BackEdge& edge : body.back_edges)
      parameters[edge.parameter] = results.at(edge.result);
    if (body.condition) go_on = is_true(results.at(*body.condition));
    if (i + 1 == kMostIterations)
      fail_unsupported("the loop runs more than " + std::to_string(kMostIterations - 1) + " times");
  }
  for (size_t k = 0; k < body.outputs.size(); ++k) {
    const Body::Port& port = body.outputs[k];
    Tensor& output = outputs[port.outer];
    if (port.sliced) {
      output = together(std::move(parts[k]), port, {output.type(), output.shape(), {}});
    } else if (!results.empty()) {
      output = as_inferred(results.at(port.inner), output.shape());
    } else {  // without iterations, a state keeps its first value
      for (const Body::BackEdge& edge : body.back_edges)
        if (edge.result == port.inner)
          output = as_inferred(parameters[edge.parameter], output.shape());
    }
  }
}

// ---- If ----------------------------------------------------------------------------------------

std::vector<ValueInfo> infer_branch(const Body& body, const ShapeContext& context) {
  const std::vector<ValueInfo> results = body.infer_shapes(first_parameters(body, context.inputs));
  check_outputs(body, context.output_count, results.size());
  std::vector<ValueInfo> outputs(context.output_count);
  for (const Body::Port& port : body.outputs) {
    outputs[port.outer] = {results[port.inner].type, results[port.inner].shape, {}};
  }
  return outputs;
}

std::vector<ValueInfo> infer_if(const ShapeContext& context) {
  if (context.bodies.size() != 2 || !context.bodies[0] || !context.bodies[1])
    fail_model("needs a then_body and an else_body");
  if (context.inputs.empty()) fail_model("has no condition");
  if (const auto branch = chosen_branch(context.inputs))
    return infer_branch(*context.bodies[*branch], context);
  const std::vector<ValueInfo> one = infer_branch(*context.bodies[0], context),
                               other = infer_branch(*context.bodies[1], context);
  for (size_t i = 0; i < one.size(); ++i)
    if (one[i].shape != other[i].shape || one[i].type != other[i].type)
      fail_unsupported("the branches give " + to_string(one[i].shape) + " and " +
                       to_string(other[i].shape) + ", and the condition is not constant");
  return one;
}

void evaluate_if(const OpDesc& desc, std::span<const Tensor> inputs, std::span<Tensor> outputs) {
  const Body& body = *desc.bodies.at(is_true(inputs[0]) ? 0 : 1);
  std::vector<Tensor> parameters(body.parameter_count());
  for (const Body::Port& port : body.inputs)
    parameters[port.inner] = as_stated(body, port.inner, inputs[port.outer]);
  const std::vector<Tensor> results = body.evaluate(parameters);
  for (const Body::Port& port : body.outputs) outputs[port.outer] = results.at(port.inner);
}

// ---- Subgraph, the engine's own: a part of the network whose shapes depend on values -----------

std::vector<ValueInfo> infer_subgraph(const ShapeContext& context) {
  if (context.bodies.size() != 1 || !context.bodies[0]) fail_model("needs a body");
  return infer_branch(*context.bodies[0], context);
}

void evaluate_subgraph(const OpDesc& desc, std::span<const Tensor> inputs,
                       std::span<Tensor> outputs) {
  const Body& body = *desc.bodies.at(0);
  std::vector<Tensor> parameters(body.parameter_count());
  for (const Body::Port& port : body.inputs)
    parameters[port.inner] = as_stated(body, port.inner, inputs[port.outer]);
  const std::vector<Tensor> results = body.evaluate(parameters);
  for (const Body::Port& port : body.outputs) outputs[port.outer] = results.at(port.inner);
}

// ---- DeviceLoop, the engine's own: a loop that the device runs ----------------------------------
// The parts of sliced inputs and outputs lie along a first dimension of their own; a negative stride
// takes them from the last on.

// Returns the number of the part that iteration i reads or writes.
int64_t part_of_iteration(const Body::Port& port, int64_t count, int64_t i) {
  return port.stride > 0 ? i : count - 1 - i;
}

std::vector<ValueInfo> infer_device_loop(const ShapeContext& context) {
  const Body& body = only_body(context.bodies);
  const int64_t count = context.attributes.get_int("iterations");
  std::vector<ValueInfo> parameters(body.parameter_count());
  for (const Body::Port& port : body.inputs) {
    ValueInfo& info = parameters.at(port.inner) = context.inputs[port.outer];
    info.value = {};
    if (port.sliced) info.shape.erase(info.shape.begin());
  }
  const std::vector<ValueInfo> results = body.infer_shapes(parameters);
  check_outputs(body, context.output_count, results.size());
  std::vector<ValueInfo> outputs(context.output_count);
  for (const Body::Port& port : body.outputs) {
    outputs[port.outer] = {results[port.inner].type, results[port.inner].shape, {}};
    Shape& shape = outputs[port.outer].shape;
    if (port.sliced) shape.insert(shape.begin(), count);
  }
  return outputs;
}

void evaluate_device_loop(const OpDesc& desc, std::span<const Tensor> inputs,
                          std::span<Tensor> outputs) {
  const Body& body = only_body(desc.bodies);
  const int64_t count = desc.attributes.get_int("iterations");
  const auto part_bytes = [&](const Tensor& whole) {
    return static_cast<size_t>(whole.elements() / count) * size_of(whole.type());
  };
  std::vector<Tensor> parameters(body.parameter_count()), results;
  for (const Body::Port& port : body.inputs)
    if (!port.sliced) parameters[port.inner] = inputs[port.outer];
  for (int64_t i = 0; i < count; ++i) {
    WorkLimit::may_go_on();
    for (const Body::Port& port : body.inputs) {
      if (!port.sliced) continue;
      const Tensor& whole = inputs[port.outer];
      Tensor part =
          Tensor::allocate(whole.type(), Shape(whole.shape().begin() + 1, whole.shape().end()));
      std::copy_n(static_cast<const std::byte*>(whole.raw()) +
                      static_cast<size_t>(part_of_iteration(port, count, i)) * part_bytes(whole),
                  part_bytes(whole), static_cast<std::byte*>(part.raw_mutable()));
      parameters[port.inner] = std::move(part);
    }
    results = body.evaluate(parameters);
    for (const Body::Port& port : body.outputs) {
      Tensor& whole = outputs[port.outer];
      if (port.sliced)
        std::copy_n(static_cast<const std::byte*>(results[port.inner].raw()), part_bytes(whole),
                    static_cast<std::byte*>(whole.raw_mutable()) +
                        static_cast<size_t>(part_of_iteration(port, count, i)) * part_bytes(whole));
      else
        whole = results[port.inner];
    }
    for (const Body::BackEdge& edge : body.back_edges)
      parameters[edge.parameter] = results[edge.result];
  }
}

std::string reject_device_loop(const OpDesc& desc, const DeviceTraits&) {
  std::optional<ElementType> floats;
  for (const auto* tensors : {&desc.inputs, &desc.outputs})
    for (const TensorDesc& tensor : *tensors) {
      if (!tensor.is_row_major() || tensor.elements() == 0)
        return "a tensor is empty or not row-major";
      if (!is_float(tensor.type)) continue;
      if (floats.value_or(tensor.type) != tensor.type) return "its tensors are both f16 and f32";
      floats = tensor.type;
    }
  return "";
}

// The engine plans the body's operations (engine/plan/loop.h).
KernelPlan plan_device_loop(const OpDesc&, const DeviceTraits&, const TuningPoint&) {
  throw std::logic_error("a loop has no kernels of its own");
}

std::vector<TuningPoint> no_points(const OpDesc&, const DeviceTraits&) { return {{}}; }
TuningPoint no_point(const OpDesc&, const DeviceTraits&) { return {}; }

const KernelFamily kLoop{"loop", 1, reject_device_loop, no_points, no_point, plan_device_loop};

}  // namespace

IterationLimit::IterationLimit(int64_t nodes) : most_(nodes), left_(nodes) {
  if (!outermost) outermost = this;
}

IterationLimit::~IterationLimit() {
  if (outermost == this) outermost = nullptr;
}

void IterationLimit::take(size_t nodes) { count(static_cast<double>(nodes) + kOfAnIteration); }

void IterationLimit::count(double nodes) {
  if (!outermost) return;
  outermost->left_ -= static_cast<int64_t>(std::min(nodes, kMostAtOnce));
  if (outermost->left_ >= 0) return;
  fail_unsupported("the model goes through more than " + std::to_string(outermost->most_) +
                   " layers here: those of loops and functions count as often as they are run or "
                   "written out, constants by the work to compute them");
}

bool IterationLimit::passed() { return outermost && outermost->left_ < 0; }

std::optional<int64_t> iterations(const std::string& type, const Body& body,
                                  std::span<const ValueInfo> inputs) {
  if (type == "Loop") {
    if (inputs.size() < 2) fail_model("needs a trip count and a condition");
    if (!inputs[1].value.empty() && !is_true(inputs[1].value)) return 0;
    if (inputs[0].value.empty() || inputs[1].value.empty()) return {};
    const int64_t trips = one_int(inputs[0].value, "the trip count");
    if (trips == 0 || (trips > 0 && !body.condition)) return trips;
    if (!body.condition) return {};
    // Follows a condition that depends on known values only, such as a counter in the body.
    int64_t done = 0;
    std::optional<int64_t> count;
    follow_iterations(body, inputs,
                      [&](std::span<const ValueInfo> parameters, std::vector<ValueInfo>& results) {
                        results = body.infer_shapes(parameters);
                        if (*body.condition >= results.size())
                          fail_model("the body's condition is not there");
                        const Tensor& again = results[*body.condition].value;
                        if (again.empty()) return false;
                        ++done;
                        if (done == trips || !is_true(again))
                          count = done;
                        else if (body.is_constant(*body.condition) && trips > 0)
                          count = trips;
                        return !count && !body.is_constant(*body.condition) && done < kMostCounted;
                      });
    return count;
  }
  std::optional<int64_t> count;
  for (const Body::Port& port : body.inputs) {
    if (!port.sliced) continue;
    const int64_t slices = slices_of(port, inputs[port.outer].shape);
    if (count && *count != slices) fail_model("sliced inputs have different numbers of parts");
    count = slices;
  }
  if (!count) fail_unsupported("no input is sliced, so there is no number of iterations");
  return count;
}

void follow_iterations(const Body& body, std::span<const ValueInfo> inputs,
                       const std::function<bool(std::span<const ValueInfo> parameters,
                                                std::vector<ValueInfo>& results)>& infer) {
  std::vector<ValueInfo> parameters = first_parameters(body, inputs), results;
  IterationLimit limit(IterationLimit::kToInferShapes);
  for (int64_t i = 0;; ++i) {
    limit.take(body.node_count());
    enter(body, inputs, i, parameters);
    if (!infer(parameters, results)) return;
    advance(body, results, parameters);
  }
}

Tensor number_of(const ValueInfo& counter, int64_t i) {
  return Tensor::of(counter.type, counter.shape,
                    std::vector<int64_t>(static_cast<size_t>(checked_count(counter.shape)), i));
}

int64_t part_begin(const Body::Port& port, int64_t size, int64_t i) {
  const int64_t start = port.start < 0 ? port.start + size + 1 : port.start;
  return start + i * port.stride - (port.stride < 0 ? port.part : 0);
}

std::optional<size_t> chosen_branch(std::span<const ValueInfo> inputs) {
  if (inputs.empty() || inputs[0].value.empty()) return {};
  return is_true(inputs[0].value) ? 0 : 1;
}

std::vector<OpDef> loop_ops() {
  return {{.type = "TensorIterator",
           .opsets = opset_range(1),
           .infer_shapes = infer_loop,
           .evaluate = evaluate_loop,
           .host_reason = kHostReason},
          {.type = "Loop",
           .opsets = opset_range(5),
           .infer_shapes = infer_loop,
           .evaluate = evaluate_loop,
           .host_reason = kHostReason,
           .rows_depend_on_data = true},
          {.type = "If",
           .opsets = opset_range(8),
           .infer_shapes = infer_if,
           .evaluate = evaluate_if,
           .host_reason = kHostReason},
          {.type = "Subgraph",
           .opsets = {1},
           .infer_shapes = infer_subgraph,
           .evaluate = evaluate_subgraph,
           .host_reason = kHostReason,
           .rows_depend_on_data = true},
          {.type = "DeviceLoop",
           .opsets = {1},
           .infer_shapes = infer_device_loop,
           .evaluate = evaluate_device_loop,
           .families = {&kLoop}}};
}

}  // namespace clinfer
