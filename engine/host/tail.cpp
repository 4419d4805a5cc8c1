// Prepares tails for the host, and applies them.
#include "engine/host/tail.h"

#include <algorithm>

#include "kernels/tail.h"

namespace clinfer::host {

namespace {

// Returns whether g(y, x) = g(x, y).
bool commutes(std::string_view function) {
  static constexpr std::string_view kAll[] = {"add", "multiply", "maximum", "minimum",
                                              "squared_difference"};
  return std::find(std::begin(kAll), std::end(kAll), function) != std::end(kAll);
}

// Returns the operand's size along dimension `dim` of the output, aligned as in NumPy.
int64_t size_along(const Shape& operand, size_t rank, size_t dim) {
  const size_t missing = rank - operand.size();
  return dim < missing ? 1 : operand[dim - missing];
}

}  // namespace

Tail::Tail(const OpDesc& desc) {
  if (desc.tail.empty()) return;
  const Shape& shape = desc.outputs[0].shape;
  const size_t rank = shape.size();
  if (quantizes(desc.tail)) throw Error(ErrorCode::unsupported, "the tail makes bytes");
  const auto operand_shape = [&](const PostOp& op) -> const Shape& {
    const TensorDesc& operand = desc.inputs.at(static_cast<size_t>(op.operand));
    if (!is_float(operand.type) || operand.shape.size() > rank)
      throw Error(ErrorCode::unsupported, "an operand of the tail is no float");
    return operand.shape;
  };
  // Makes a row of as many of the last dimensions as possible: each operand must have either all of
  // them or none.
  size_t outer = rank;
  std::vector<int> whole(desc.tail.size(), -1);  // -1: no dimension of more than one element yet
  for (; outer > 0; --outer) {
    const size_t d = outer - 1;
    if (shape[d] == 1) continue;
    std::vector<int> with = whole;
    bool fits = true;
    for (size_t i = 0; i < desc.tail.size(); ++i) {
      const PostOp& op = desc.tail[i];
      if (op.is_unary()) continue;
      if (op.padded && d <= 1) fits = false;
      const int full = size_along(operand_shape(op), rank, d) != 1;
      fits = fits && (with[i] == -1 || with[i] == full);
      with[i] = full;
    }
    if (!fits) break;
    whole = with;
  }
  outer_.assign(shape.begin(), shape.begin() + static_cast<std::ptrdiff_t>(outer));
  row_ = 1;
  for (size_t d = outer; d < rank; ++d) row_ *= shape[d];

  for (size_t i = 0; i < desc.tail.size(); ++i) {
    const PostOp& op = desc.tail[i];
    Step step;
    step.alpha = op.alpha;
    step.beta = op.beta;
    if (op.function == "keep" || op.function == "fork") {
      step.kind = op.function == "keep" ? Step::Kind::keep : Step::Kind::fork;
      keeps_ = keeps_ || op.function == "keep";
    } else if (op.is_unary()) {
      step.loop = kernels().unary(op.function);
      step.function = find_unary(op.function);
    } else {
      step.kind = Step::Kind::binary;
      step.swapped = op.swapped;
      if (!op.swapped || commutes(op.function)) step.loops = kernels().binary(op.function);
      step.combination = find_binary(op.function);
      step.operand = static_cast<size_t>(op.operand);
      step.one = whole[i] != 1;
      const Shape& operand = operand_shape(op);
      const Shape strides = row_major_strides(operand);
      for (size_t d = 0; d < outer; ++d) {
        const bool broadcast = size_along(operand, rank, d) == 1;
        step.strides.push_back(broadcast ? 0 : strides[d - (rank - operand.size())]);
      }
      if (op.padded) step.channels = size_along(operand, rank, 1);
    }
    if (step.kind == Step::Kind::unary ? !step.function
                                       : step.kind == Step::Kind::binary && !step.combination)
      throw Error(ErrorCode::unsupported, "no element function " + op.function);
    steps_.push_back(std::move(step));
  }
}

void Tail::apply_binary(const Step& step, const Tensor& operand, float* values, int64_t row,
                        int64_t first, int64_t count) const {
  int64_t at = step.one ? 0 : first;
  bool inside = true;
  for (size_t d = outer_.size(); d-- > 0; row /= outer_[d]) {
    const int64_t index = row % outer_[d];
    at += index * step.strides[d];
    if (d == 1 && step.channels != 0) inside = index < step.channels;
  }
  static constexpr float kNothing = 0;
  const float* others = inside ? operand.data<float>() + at : &kNothing;
  const bool one = step.one || !inside;
  if (one && step.loops.one != nullptr) return step.loops.one(values, *others, count);
  if (!one && step.loops.each != nullptr) return step.loops.each(values, others, count);
  const auto function = step.combination->apply;
  for (int64_t i = 0; i < count; ++i) {
    const float other = others[one ? 0 : i];
    values[i] = step.swapped ? function(other, values[i]) : function(values[i], other);
  }
}

void Tail::apply(std::span<const Tensor> inputs, float* output, float* kept, int64_t begin,
                 int64_t end) const {
  if (steps_.empty()) return;
  constexpr int64_t kPart = 4096;  // floats, which stay in the L1 cache
  float trunk[kPart];
  for (int64_t from = begin; from < end;) {
    const int64_t row = from / row_, first = from % row_;
    const int64_t count = std::min({end - from, row_ - first, kPart});
    float* values = output + from;
    bool forked = false;
    for (const Step& step : steps_) switch (step.kind) {
        case Step::Kind::unary:
          if (step.loop != nullptr) {
            step.loop(values, count, step.alpha, step.beta);
          } else {
            for (int64_t i = 0; i < count; ++i)
              values[i] = step.function->apply(values[i], step.alpha, step.beta);
          }
          break;
        case Step::Kind::binary:
          apply_binary(step, inputs[step.operand], values, row, first, count);
          break;
        case Step::Kind::fork:
          std::copy_n(values, count, trunk);
          forked = true;
          break;
        case Step::Kind::keep:
          std::copy_n(values, count, kept + from);
          if (forked) std::copy_n(trunk, count, values);
          break;
      }
    from += count;
  }
}

}  // namespace clinfer::host
