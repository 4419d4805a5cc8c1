// Plans loops on the device. The body is planned like a network; its memory becomes the workspace
// of the step, and tensors from outside of the body become the step's inputs and outputs.
#include "engine/plan/loop.h"

#include <cstdlib>

#include "engine/passes/passes.h"

namespace clinfer {

Argument Loop::at(const Moving& moving, int64_t iteration) const {
  if (iteration == 0 && moving.first) return *moving.first;
  if (iteration + 1 == count && moving.last) return *moving.last;
  Argument argument = moving.usual;
  argument.offset += iteration * moving.advance + (iteration % 2 ? moving.odd : 0);
  return argument;
}

namespace {

using Moving = Loop::Moving;
using ArgumentKind = Argument::Kind;

constexpr int64_t kTensorAlignment = 64;  // bytes, the size of the widest vector

int64_t bytes_of(const TensorDesc& desc) {
  return desc.elements() * static_cast<int64_t>(size_of(desc.type));
}

class LoopPlanner {
 public:
  LoopPlanner(Step& step, const DeviceTraits& traits, const KernelChooser& choose)
      : step_(step),
        traits_(traits),
        body_(static_cast<const GraphBody&>(*step.desc.bodies.at(0))),
        loop_(std::make_shared<Loop>()) {
    loop_->count = step.desc.attributes.get_int("iterations");
    PassContext context{traits, activations()};
    context.integers = step.desc.attributes.get_bool("integers");
    inside_ = make_plan(compiled_body(body_, context, is_aligned()), traits, choose);
  }

  void run() {
    step_.kernels = {};
    // Reserves the body's request memory twice, because odd iterations have states of their own.
    odd_ = static_cast<int64_t>(inside_.request_bytes);
    step_.kernels.workspace = inside_.stream_bytes + 2 * inside_.request_bytes;
    place_results();
    place_parameters();
    step_.cuts.clear();
    double seconds = 0;
    for (const Step& step : inside_.steps) {
      add(step);
      seconds += assumed_seconds(step.desc, traits_);
    }
    loop_->first_part = first_part(seconds);
    for (Step& step : inside_.steps) step.kernels.packed.clear();  // moved to the loop
    loop_->body = std::make_shared<const Plan>(std::move(inside_));
    step_.loop = std::move(loop_);
  }

 private:
  // Returns the type of the loop's floats.
  ElementType activations() const {
    for (const auto* tensors : {&step_.desc.inputs, &step_.desc.outputs})
      for (const TensorDesc& tensor : *tensors)
        if (is_float(tensor.type)) return tensor.type;
    return ElementType::f32;
  }

  const TensorDesc& outer(const Body::Port& port, bool input) const {
    return (input ? step_.desc.inputs : step_.desc.outputs).at(port.outer);
  }

  int64_t part_bytes(const TensorDesc& whole) const { return bytes_of(whole) / loop_->count; }

  bool is_aligned() const {
    for (const bool input : {true, false})
      for (const Body::Port& port : input ? body_.inputs : body_.outputs) {
        const TensorDesc& tensor = outer(port, input);
        if (before(tensor) % kTensorAlignment != 0 ||
            (port.sliced && part_bytes(tensor) % kTensorAlignment != 0))
          return false;
      }
    return true;
  }

  static std::pair<const Node*, int> key(const Edge& edge) { return {edge.node, edge.port}; }

  Argument workspace(int64_t offset) const {
    Argument argument = Argument::workspace(1);
    argument.offset = offset;
    return argument;
  }

  // Returns the argument for a region of the body's own plan.
  Argument in_workspace(const Region& region) const {
    const size_t begin = region.memory == Memory::stream ? 0 : inside_.stream_bytes;
    return workspace(static_cast<int64_t>(begin + region.offset));
  }

  // Returns where the part of a sliced tensor lies in each iteration.
  Moving sliced(const Body::Port& port, bool input) const {
    const int64_t part = part_bytes(outer(port, input));
    Moving place;
    place.usual = input ? Argument::input(port.outer, 1) : Argument::output(port.outer, 1);
    place.usual.offset = port.stride > 0 ? 0 : (loop_->count - 1) * part;
    place.advance = port.stride > 0 ? part : -part;
    return place;
  }

  // Returns the bytes of the memory that lie before the tensor's first element, if addresses are
  // not aligned.
  static int64_t before(const TensorDesc& desc) {
    return desc.offset * static_cast<int64_t>(size_of(desc.type));
  }

  static void shift(Moving& place, int64_t bytes) {
    place.usual.offset += bytes;
    for (std::optional<Argument>* argument : {&place.first, &place.last})
      if (*argument) (*argument)->offset += bytes;
  }

  Edge result(size_t index) const { return inside_.graph->results.at(index)->inputs[0]; }

  static void expect_same(const TensorDesc& a, const TensorDesc& b) {
    if (a.type != b.type || a.shape != b.shape || !a.is_row_major() || !b.is_row_major())
      throw Error(ErrorCode::unsupported, "a state is stored in another way after an iteration");
  }

  // Finds the places of outputs of the loop, and of states, by storage root.
  void place_results() {
    for (const Body::Port& port : body_.outputs) {
      const Edge edge = result(port.inner);
      const Edge root = storage_root(edge);
      const TensorDesc& desc = edge.node->outputs[edge.port].desc;
      if (desc.type != outer(port, false).type)
        throw Error(ErrorCode::unsupported, "an output has another type in the body");
      Moving place;
      if (port.sliced) {
        place = sliced(port, false);
      } else {
        place.usual = in_workspace(inside_.region_of(root));
        place.odd = odd_;
        place.last = Argument::output(port.outer, 1);
      }
      shift(place, -before(desc));
      places_[key(root)] = place;
    }
    for (const Body::BackEdge& edge : body_.back_edges) {
      const Edge root = storage_root(result(edge.result));
      Moving place;
      place.usual = in_workspace(inside_.region_of(root));
      place.odd = odd_;
      places_.try_emplace(key(root), place);
    }
  }

  void place_parameters() {
    for (const Body::Port& port : body_.inputs) {
      Node* const parameter = inside_.graph->parameters.at(port.inner);
      const TensorDesc& desc = parameter->outputs[0].desc;
      if (desc.type != outer(port, true).type)
        throw Error(ErrorCode::unsupported, "an input has another type in the body");
      Moving place = place_of_input(port, desc);
      shift(place, -before(desc));
      places_.try_emplace(key({parameter, 0}), place);
    }
  }

  // Returns where the body reads a parameter of its own.
  Moving place_of_input(const Body::Port& port, const TensorDesc& desc) const {
    for (const Body::BackEdge& edge : body_.back_edges)
      if (edge.parameter == port.inner) return state(edge, port, desc);
    if (port.sliced) return sliced(port, true);
    Moving place;
    place.usual = Argument::input(port.outer, 1);
    return place;
  }

  // Returns the place that the iteration before wrote; in the first iteration the input.
  Moving state(const Body::BackEdge& edge, const Body::Port& port, const TensorDesc& desc) const {
    const Edge written = result(edge.result);
    const TensorDesc& from = written.node->outputs[written.port].desc;
    expect_same(from, desc);
    Moving place = places_.at(key(storage_root(written)));
    place.last.reset();
    shift(place, before(from));
    place.usual.offset += place.odd - place.advance;
    place.odd = -place.odd;
    place.first = Argument::input(port.outer, 1);
    return place;
  }

  // Returns the argument for a constant that a kernel reads unchanged.
  Argument constant(const Edge& edge) {
    const auto [found, fresh] = constants_.try_emplace(edge.node, step_.kernels.packed.size());
    if (fresh)
      step_.kernels.packed.push_back([value = edge.node->constant,
                                      desc = edge.node->outputs[0].desc,
                                      size = inside_.region_of(edge).bytes] {
        std::vector<std::byte> bytes(size);
        scatter_to(value, desc, bytes.data());
        return bytes;
      });
    return Argument::packed(found->second, 1);
  }

  Moving place_of(const Step& step, const Argument& argument, size_t first_packed) {
    Moving place;
    if (argument.kind == ArgumentKind::packed) {
      place.usual = Argument::packed(first_packed + argument.index, 1);
      return place;
    }
    if (argument.kind == ArgumentKind::workspace) {
      const bool stream = inside_.workspace == Memory::stream;
      place.usual = workspace(static_cast<int64_t>(
          (stream ? inside_.stream_bytes : inside_.stream_bytes + inside_.request_bytes) -
          inside_.workspace_bytes));
      return place;
    }
    const Edge edge = argument.kind == ArgumentKind::input
                          ? step.node->inputs[argument.index]
                          : Edge{step.node, static_cast<int>(argument.index)};
    if (edge.node->is("Constant")) {
      place.usual = constant(edge);
      return place;
    }
    const Edge root = storage_root(edge);
    if (const auto found = places_.find(key(root)); found != places_.end())
      place = found->second;
    else
      place.usual = in_workspace(inside_.region_of(root));
    shift(place, before(edge.node->outputs[edge.port].desc));
    return place;
  }

  void add(const Step& step) {
    const size_t first_packed = step_.kernels.packed.size();
    for (const auto& make : step.kernels.packed) step_.kernels.packed.push_back(make);
    for (const KernelSpec& launch : step.kernels.launches) {
      KernelSpec spec = launch;
      for (size_t a = 0; a < spec.arguments.size(); ++a) {
        Argument& argument = spec.arguments[a];
        if (argument.kind == ArgumentKind::value) continue;
        Moving place = place_of(step, argument, first_packed);
        for (Argument* to : {&place.usual, place.first ? &*place.first : nullptr,
                             place.last ? &*place.last : nullptr})
          if (to) to->unit = argument.unit;
        place.launch = step_.kernels.launches.size();
        place.argument = a;
        argument = loop_->at(place, 0);
        if (place.advance != 0 || place.odd != 0 || place.first || place.last)
          loop_->moving.push_back(std::move(place));
      }
      step_.kernels.launches.push_back(std::move(spec));
    }
    for (size_t l = 0; l < step.kernels.launches.size(); ++l) step_.cuts.push_back(step.cut(l));
  }

  // Returns the number of iterations in the first part, if one takes `seconds`.
  int64_t first_part(double seconds) const {
    constexpr double kMostLaunches = 128;
    const double launches = std::max(static_cast<double>(step_.kernels.launches.size()), 1.0);
    const double iterations =
        std::min(kMostLaunches / launches, kSecondsOfPart / std::max(seconds, 1e-9));
    return std::max<int64_t>(static_cast<int64_t>(iterations), 1);
  }

  Step& step_;
  const DeviceTraits& traits_;
  const GraphBody& body_;
  std::shared_ptr<Loop> loop_;
  Plan inside_;
  int64_t odd_ = 0;
  // Keyed by storage root; other tensors do not move.
  std::map<std::pair<const Node*, int>, Moving> places_;
  std::map<const Node*, size_t> constants_;  // index of the packed constant, by node
};

}  // namespace

void plan_loop(Step& step, const DeviceTraits& traits, const KernelChooser& choose) try {
  LoopPlanner(step, traits, choose).run();
} catch (const Error& error) {
  throw Error(error.code(), label(*step.node) + ": " + error.what(), error.place());
}

}  // namespace clinfer
