// Makes operands for tuning.
#include "engine/measure/trial_tensors.h"

#include <algorithm>

#include "engine/measure/noise.h"

namespace clinfer {

namespace {

BoundBuffer memory_for(const ocl::Context& context, const TensorDesc& desc, const Tensor& value) {
  const auto size = static_cast<int64_t>(size_of(desc.type));
  std::vector<std::byte> bytes(
      static_cast<size_t>(std::max<int64_t>((desc.offset + desc.span()) * size, 4)));
  if (!value.empty()) scatter_to(value, desc, bytes.data());
  return {cl::Buffer(context.context, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR, bytes.size(),
                     bytes.data()),
          desc.offset * size};
}

}  // namespace

TrialTensors::TrialTensors(const ocl::Context& context, const OpDesc& desc) {
  for (size_t i = 0; i < desc.inputs.size(); ++i) {
    const TensorDesc& input = desc.inputs[i];
    const bool known = i < desc.constants.size() && !desc.constants[i].empty();
    inputs_.push_back(memory_for(
        context, input, known ? desc.constants[i] : noise_tensor(input.type, input.shape)));
  }
  for (const TensorDesc& output : desc.outputs) outputs_.push_back(memory_for(context, output, {}));
}

BoundBuffer TrialTensors::find(const Argument& argument) const {
  return argument.kind == Argument::Kind::input ? inputs_.at(argument.index)
                                                : outputs_.at(argument.index);
}

}  // namespace clinfer
