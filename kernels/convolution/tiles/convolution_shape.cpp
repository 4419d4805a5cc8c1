// Reads spatial attributes, shapes and strides in the same way for all kinds of convolution.
#include <algorithm>

#include "kernels/convolution/tiles/convolution_tile.h"
#include "kernels/shape_util.h"

namespace clinfer {

std::vector<int64_t> spatial_steps(const Attributes& attributes, const char* name, size_t spatial,
                                   int64_t low, std::optional<int64_t> otherwise) {
  std::optional<std::vector<int64_t>> all;
  if (otherwise) all = std::vector<int64_t>(spatial, *otherwise);
  const std::vector<int64_t> values = attributes.get_ints(name, all);
  if (values.size() != spatial)
    fail_model(std::string("attribute ") + name + " has " + std::to_string(values.size()) +
               " numbers for " + std::to_string(spatial) + " spatial dimensions");
  for (int64_t v : values)
    if (v < low || v > kMaxStep)
      fail_model(std::string("attribute ") + name + " is out of range: " + std::to_string(v));
  return values;
}

PixelStrides pixel_strides(const TensorDesc& desc) {
  const size_t rank = desc.shape.size();
  PixelStrides s;
  s.n = desc.strides[0];
  s.c = desc.strides[1];
  if (rank == 5) s.d = desc.strides[2];
  if (rank >= 4) s.h = desc.strides[rank - 2];
  s.w = desc.strides[rank - 1];
  return s;
}

bool vectors_aligned(const OpDesc& desc, const DeviceTraits& traits, int64_t elements) {
  if (traits.is_cpu && desc.inputs[0].type == ElementType::f32) return false;
  const auto fits = [&](const TensorDesc& tensor) {
    if (tensor.offset % elements != 0 || tensor.shape[1] % elements != 0) return false;
    for (size_t d = 0; d < tensor.shape.size(); ++d)
      if (tensor.shape[d] > 1 &&
          (d == 1 ? tensor.strides[d] != 1 : tensor.strides[d] % elements != 0))
        return false;
    return true;
  };
  return fits(desc.inputs[0]) && fits(desc.outputs[0]);
}

void define_access(KernelSpec& spec, bool aligned) {
  spec.defines.emplace_back("LOAD", aligned ? "LOADV_ALIGNED" : "LOADV");
  spec.defines.emplace_back("SAVE", aligned ? "STOREV_ALIGNED" : "STOREV");
}

TailAxes spatial_axes(size_t rank) {
  const int last = static_cast<int>(rank) - 1;
  return {0, rank >= 4 ? last - 1 : -1, last, 1};
}

ConvAttributes read_convolution(bool grouped, bool transposed, const Attributes& attributes,
                                const Shape& data, const Shape& filter) {
  if (data.size() < 3 || data.size() > 5)
    fail_model("the data has rank " + std::to_string(data.size()) + ", not 3, 4 or 5");
  if (filter.size() != data.size() + grouped)
    fail_model("the filter " + to_string(filter) + " does not fit the data " + to_string(data));
  for (const Shape* shape : {&data, &filter})
    for (size_t i = 0; i < shape->size(); ++i)
      if ((*shape)[i] < (shape == &data && i == 0 ? 0 : 1) || (*shape)[i] > kMaxIndex)
        fail_model("impossible size in " + to_string(*shape));
  ConvAttributes result;
  ConvShape& s = result.shape;
  s.batch = data[0];
  s.groups = grouped ? filter[0] : 1;
  s.out_channels = filter[grouped + transposed];
  s.in_channels = filter[grouped + !transposed];
  if (s.in_channels * s.groups != data[1])
    fail_model("the filter " + to_string(filter) + " takes " +
               std::to_string(s.in_channels * s.groups) + " channels, the data " + to_string(data) +
               " has " + std::to_string(data[1]));
  const size_t spatial = data.size() - 2, first = 3 - spatial;
  const std::vector<int64_t> strides = spatial_steps(attributes, "strides", spatial, 1, 1),
                             dilations = spatial_steps(attributes, "dilations", spatial, 1, 1);
  for (size_t i = 0; i < spatial; ++i) {
    const size_t d = first + i;
    s.in[d] = data[2 + i];
    s.kernel[d] = filter[2 + grouped + i];
    s.stride[d] = strides[i];
    s.dilation[d] = s.kernel[d] == 1 ? 1 : dilations[i];
  }
  result.auto_pad = attributes.get_string("auto_pad", "explicit");
  result.begin = result.end = std::vector<int64_t>(spatial, 0);
  if (result.auto_pad == "explicit" || result.auto_pad == "notset") {
    result.begin = spatial_steps(attributes, "pads_begin", spatial, -kMaxStep, 0);
    result.end = spatial_steps(attributes, "pads_end", spatial, -kMaxStep, 0);
  } else if (result.auto_pad != "valid" && !result.same()) {
    fail_model("unknown auto_pad \"" + result.auto_pad + "\"");
  }
  return result;
}

ConvShape resolve_convolution(const std::string& type, const Attributes& attributes,
                              const Shape& data, const Shape& filter) {
  const ConvAttributes read =
      read_convolution(type == "GroupConvolution", false, attributes, data, filter);
  ConvShape s = read.shape;
  const size_t first = 5 - data.size();
  for (size_t d = first; d < 3; ++d) {
    const int64_t begin = read.begin[d - first], end = read.end[d - first];
    const int64_t extent = (s.kernel[d] - 1) * s.dilation[d] + 1;
    if (read.same()) {
      s.out[d] = ceil_div(s.in[d], s.stride[d]);
      const int64_t total = std::max<int64_t>(0, (s.out[d] - 1) * s.stride[d] + extent - s.in[d]);
      s.pad[d] = read.auto_pad == "same_upper" ? total / 2 : total - total / 2;
    } else {
      const int64_t padded = s.in[d] + begin + end;
      if (padded < extent)
        fail_model("the kernel covers " + std::to_string(extent) +
                   " positions, the padded input has " + std::to_string(padded));
      s.out[d] = (padded - extent) / s.stride[d] + 1;
      s.pad[d] = begin;
    }
    if (s.out[d] > kMaxIndex || extent > kMaxIndex / 2)
      fail_model("the output or the kernel's extent is too large");
  }
  return s;
}

}  // namespace clinfer
