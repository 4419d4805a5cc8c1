// Makes pictures for tuning.
#include "engine/measure/trial_picture.h"

#include "kernels/frames/preprocess.h"

namespace clinfer {

TrialPicture::TrialPicture(const ocl::Context& context, const OpDesc& desc) {
  const PictureKind kind = kind_of(desc);
  const Frame frame = typical_picture(kind);
  const auto sizes = plane_sizes(frame);
  for (size_t p = 0; p < sizes.size(); ++p) {
    if (sizes[p].rows == 0) continue;
    std::vector<uint8_t> bytes(static_cast<size_t>(frame.strides[p]) *
                               static_cast<size_t>(sizes[p].rows));
    for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<uint8_t>(i * 41 >> 3);
    constexpr cl_mem_flags kFlags = CL_MEM_READ_ONLY | CL_MEM_COPY_HOST_PTR;
    if (kind == PictureKind::surface) {
      const size_t texel = p == 0 ? 1 : 2;
      images_.emplace_back(context.context, kFlags,
                           cl::ImageFormat(p == 0 ? CL_R : CL_RG, CL_UNORM_INT8),
                           static_cast<size_t>(frame.strides[p]) / texel,
                           static_cast<size_t>(sizes[p].rows), size_t{0}, bytes.data());
    } else {
      planes_.emplace_back(context.context, kFlags, bytes.size(), bytes.data());
    }
  }
  const TensorDesc& out = desc.outputs[0];
  const auto size = static_cast<int64_t>(size_of(out.type));
  out_offset_ = out.offset * size;
  out_ = cl::Buffer(context.context, CL_MEM_READ_WRITE,
                    static_cast<size_t>(out_offset_ + out.span() * size));
}

BoundBuffer TrialPicture::find(const Argument& argument) const {
  switch (argument.kind) {
    case Argument::Kind::input:
      return {planes_.at(argument.index), 0};
    case Argument::Kind::image:
      return {{}, 0, images_.at(argument.index)};
    default:
      return {out_, out_offset_};
  }
}

}  // namespace clinfer
