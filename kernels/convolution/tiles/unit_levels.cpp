// Moves the scale of limits into the multiplications and additions before them.
#include "kernels/convolution/tiles/unit_levels.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

namespace clinfer {

namespace {

bool is_constant(const OpDesc& desc, const PostOp& op) {
  return !op.is_unary() && !desc.constants[static_cast<size_t>(op.operand)].empty();
}

bool is_number(const OpDesc& desc, const PostOp& op) {
  return is_constant(desc, op) && desc.constants[static_cast<size_t>(op.operand)].elements() == 1;
}

float constant_number(const OpDesc& desc, const PostOp& op) {
  return desc.constants[static_cast<size_t>(op.operand)].to_floats()[0];
}

// Returns whether a step multiplies by a constant, or adds a constant or bytes.
bool is_affine(const OpDesc& desc, const PostOp& op) {
  if (op.padded || (op.function != "multiply" && op.function != "add")) return false;
  if (!is_constant(desc, op))
    return op.function == "add" && !op.is_unary() &&
           desc.inputs[static_cast<size_t>(op.operand)].type == ElementType::u8;
  const std::vector<float> values = desc.constants[static_cast<size_t>(op.operand)].to_floats();
  return std::all_of(values.begin(), values.end(), [](float v) { return std::isfinite(v); });
}

// Returns a step with a constant operand of its own, made of that of `op` by value * scale + offset.
PostOp changed(OpDesc& desc, PostOp op, float scale, float offset) {
  const Tensor& constant = desc.constants[static_cast<size_t>(op.operand)];
  std::vector<float> values = constant.to_floats();
  for (float& value : values) value = value * scale + offset;
  const Tensor made = Tensor::of<float>(ElementType::f32, constant.shape(), values);
  op.operand = static_cast<int>(desc.inputs.size());
  desc.inputs.push_back(TensorDesc::row_major(ElementType::f32, made.shape()));
  desc.constants.push_back(made);
  return op;
}

PostOp with_number(OpDesc& desc, const char* function, float value) {
  PostOp op{function};
  op.operand = static_cast<int>(desc.inputs.size());
  const Shape one(desc.outputs[0].shape.size(), 1);
  desc.inputs.push_back(TensorDesc::row_major(ElementType::f32, one));
  desc.constants.push_back(Tensor::of<float>(ElementType::f32, one, {value}));
  return op;
}

// Returns affine steps that give scale * x + offset instead of x.
std::vector<PostOp> scaled(OpDesc& desc, const std::vector<PostOp>& steps, float scale,
                           float offset) {
  const auto first = std::find_if(steps.begin(), steps.end(),
                                  [](const PostOp& op) { return op.function == "multiply"; });
  // The steps up to the last product that stays are not changed, since the scale goes into this one.
  std::vector<PostOp> reversed;
  auto op = steps.rbegin();
  bool multiplied = false;
  for (; op != steps.rend() && !multiplied; ++op) {
    const bool number = is_number(desc, *op);
    if (!is_constant(desc, *op)) {
      offset += op->beta * scale;
      reversed.push_back(*op);
      reversed.back().alpha *= scale;
      reversed.back().beta = 0;
    } else if (op->function == "add" && number) {
      offset += constant_number(desc, *op) * scale;
    } else if (op->function == "multiply" && number && op.base() - 1 != first) {
      scale *= constant_number(desc, *op);
    } else {
      multiplied = op->function == "multiply";
      reversed.push_back(changed(desc, *op, scale, multiplied ? 0 : std::exchange(offset, 0.f)));
    }
  }
  if (!multiplied) reversed.push_back(with_number(desc, "multiply", scale));
  // One instruction multiplies and adds.
  if (offset != 0) reversed.insert(reversed.end() - 1, with_number(desc, "add", offset));
  reversed.insert(reversed.end(), op, steps.rend());
  return {reversed.rbegin(), reversed.rend()};
}

}  // namespace

void limit_units(OpDesc& desc) {
  std::vector<PostOp> made, affine;
  for (size_t i = 0; i < desc.tail.size(); ++i) {
    const PostOp op = desc.tail[i];
    const bool last = i + 1 == desc.tail.size() && op.function == "clamp_number";
    if (is_affine(desc, op)) {
      affine.push_back(op);
      continue;
    }
    if (last || op.function == "number_to_level") {
      const float scale = 1 / (op.beta - op.alpha);
      affine = scaled(desc, affine, scale, -op.alpha * scale);
    }
    made.insert(made.end(), affine.begin(), affine.end());
    affine.clear();
    if (last) break;
    made.push_back(op);
    if (op.function == "number_to_level") made.back().function = "unit_to_level";
  }
  made.insert(made.end(), affine.begin(), affine.end());
  desc.tail = made;
}

}  // namespace clinfer
