// ConvolutionBackpropData and GroupConvolutionBackpropData (transposed convolution): shapes, plain
// reference, and the families deconv_tile (deconvolution.cl) and deconv_general.
#include <algorithm>

#include "kernels/convolution/tiles/convolution_families.h"
#include "kernels/item_kernel.h"
#include "kernels/registers.h"
#include "kernels/shape_util.h"

namespace clinfer {

namespace {

bool is_grouped(const std::string& type) { return type.starts_with("Group"); }

// Resolves the operation from its attributes, the shapes of data and filter, and the spatial sizes
// of the output if the model states them (else empty). `pad` is the part cut off before the output.
ConvShape resolve(const std::string& type, const Attributes& attributes, const Shape& data,
                  const Shape& filter, const std::vector<int64_t>& stated) {
  const ConvAttributes read = read_convolution(is_grouped(type), true, attributes, data, filter);
  ConvShape s = read.shape;
  const size_t spatial = data.size() - 2, first = 3 - spatial;
  const std::vector<int64_t> extra = spatial_steps(attributes, "output_padding", spatial, 0, 0);
  if (!stated.empty() && stated.size() != spatial)
    fail_model("the output shape has " + std::to_string(stated.size()) + " numbers for " +
               std::to_string(spatial) + " spatial dimensions");
  for (size_t i = 0; i < spatial; ++i) {
    const size_t d = first + i;
    const int64_t full =
        (s.in[d] - 1) * s.stride[d] + (s.kernel[d] - 1) * s.dilation[d] + 1 + extra[i];
    s.out[d] = stated.empty() ? full - read.begin[i] - read.end[i] : stated[i];
    if (s.out[d] < 1 || s.out[d] > kMaxIndex / 4 || full > kMaxIndex / 4)
      fail_model("a spatial dimension of the output would be " + std::to_string(s.out[d]));
    s.pad[d] = read.begin[i];
    if (read.same() && !stated.empty()) {
      const int64_t cut = std::max<int64_t>(0, full - stated[i]);
      s.pad[d] = read.auto_pad == "same_upper" ? cut - cut / 2 : cut / 2;
    }
  }
  return s;
}

// Resolves the operation with the output's sizes, whether an input states them or not.
ConvShape resolve(const OpDesc& desc) {
  const Shape& out = desc.outputs[0].shape;
  return resolve(desc.type, desc.attributes, desc.inputs[0].shape, desc.inputs[1].shape,
                 desc.own_inputs > 2 ? std::vector<int64_t>(out.begin() + 2, out.end())
                                     : std::vector<int64_t>());
}

std::vector<ValueInfo> infer_shapes(const ShapeContext& context) {
  check_inputs(context, 2, 3);
  const Shape& data = context.inputs[0].shape;
  const ConvShape s = resolve(context.type, context.attributes, data, context.inputs[1].shape,
                              has_input(context, 2) ? constant_ints(context, 2, "the output shape")
                                                    : std::vector<int64_t>());
  return {{context.inputs[0].type, s.output(data.size()), {}}};
}

// Adds the kernel times each input element to the output, in double.
void evaluate(const OpDesc& desc, std::span<const Tensor> inputs, std::span<Tensor> outputs) {
  const Shape& shape = outputs[0].shape();
  const ConvShape s = resolve(desc.type, desc.attributes, inputs[0].shape(), inputs[1].shape(),
                              {shape.begin() + 2, shape.end()});
  const std::vector<float> data = inputs[0].to_floats(), filter = inputs[1].to_floats();
  const int64_t in_plane = s.in[0] * s.in[1] * s.in[2], out_plane = s.out[0] * s.out[1] * s.out[2];
  std::vector<double> sums(static_cast<size_t>(out_plane));
  float* out = outputs[0].mutable_data<float>();
  for (int64_t n = 0; n < s.batch; ++n)
    for (int64_t c = 0; c < s.groups * s.out_channels; ++c) {
      const int64_t group = c / s.out_channels;
      std::fill(sums.begin(), sums.end(), 0.0);
      for (int64_t i = 0; i < s.in_channels; ++i) {
        const int64_t channel = group * s.in_channels + i;
        const float* from = data.data() + (n * s.groups * s.in_channels + channel) * in_plane;
        const float* w = filter.data() + (channel * s.out_channels + c % s.out_channels) * s.taps();
        Shape tap(3, 0);
        do {
          const double weight = *w++;
          Shape at(3, 0);
          const float* value = from;
          do {
            int64_t target = 0;
            bool inside = true;
            for (size_t d = 0; d < 3; ++d) {
              const int64_t o = at[d] * s.stride[d] + tap[d] * s.dilation[d] - s.pad[d];
              inside = inside && o >= 0 && o < s.out[d];
              target = target * s.out[d] + o;
            }
            if (inside) sums[static_cast<size_t>(target)] += weight * *value;
            ++value;
          } while (next_index(at, Shape(s.in.begin(), s.in.end())));
        } while (next_index(tap, Shape(s.kernel.begin(), s.kernel.end())));
      }
      for (double sum : sums) *out++ = static_cast<float>(sum);
    }
}

// ---- tile --------------------------------------------------------------------------------------

bool is_depthwise(const ConvShape& s) {
  return s.in_channels == 1 && s.out_channels == 1 && s.groups > 1;
}

// Returns whether vectors fit. A tail processes whole vectors, so that a vector of channels must
// stay within its group. A depthwise work-item reads as many input channels as it writes.
bool fits(const OpDesc& desc, const ConvShape& s, int vector) {
  return is_depthwise(s) ? s.groups % vector == 0 : fits_groups(desc, s, vector);
}

std::string reject_tile(const OpDesc& desc, const DeviceTraits&) {
  if (desc.constants[1].empty()) return "the weights are not constant";
  if (std::string why = reject_storage(desc, 1); !why.empty()) return why;
  const ConvShape s = resolve(desc);
  if (std::string why =
          reject_channels(s, pixel_strides(desc.inputs[0]), pixel_strides(desc.outputs[0]));
      !why.empty())
    return why;
  if (s.groups * (s.out_channels + 16) * s.taps() * s.in_channels > kMaxIndex)
    return "the weights have more than 2^31 elements";
  return reject_tail(desc, 16, spatial_axes(desc.outputs[0].shape.size()));
}

std::vector<TuningPoint> tile_space(const OpDesc& desc, const DeviceTraits& traits) {
  const ConvShape s = resolve(desc);
  const int64_t channels = is_depthwise(s) ? s.groups : s.out_channels;
  const auto size = static_cast<int64_t>(size_of(desc.inputs[0].type));
  std::vector<TuningPoint> space;
  for (int vector : {8, 16, 4, 2, 1}) {
    if (!fits(desc, s, vector) || (vector > 1 && vector / 2 >= channels)) continue;
    for (int tile : {4, 8, 2, 1}) {
      // Counts sums, a row of weights, and an element of each pixel; the tile and each of its pixels
      // have a place.
      if (!fits_registers_of_items(traits, 4 * vector * tile + size * vector + 4 * tile, 3 + tile))
        continue;
      for (int group : {128, 64, 256, 1})
        if (static_cast<size_t>(group) <= traits.max_work_group && traits.is_cpu == (group == 1))
          space.push_back({{{"VECTOR", vector}, {"TILE_P", tile}, {"GROUP", group}}});
    }
  }
  return space;
}

// Minimises multiply-adds, including those of pixels and channels past the ends, weighted higher if
// few share a load. A GPU also needs many work-items.
TuningPoint tile_heuristic(const OpDesc& desc, const DeviceTraits& traits) {
  const ConvShape s = resolve(desc);
  const int64_t channels = is_depthwise(s) ? s.groups : s.out_channels;
  const auto cost = [&](const TuningPoint& p) {
    const int vector = p["VECTOR"], tile = p["TILE_P"];
    const int64_t blocks = ceil_div(channels, vector),
                  row = ceil_div(ceil_div(s.out[2], s.stride[2]), tile);
    const double items = static_cast<double>(blocks * row);
    const double width =
        traits.is_cpu ? std::max(1.0, vector / double(traits.vector_width)) : vector;
    double value = items * (tile * width + tile + width + 4);
    if (traits.is_cpu) return value;
    const double all = items * static_cast<double>(s.batch * s.out[0] * s.out[1] * s.stride[2]);
    const double wanted = 256.0 * traits.compute_units;
    return value * (all < wanted ? wanted / all : 1.0);
  };
  return cheapest(tile_space(desc, traits), cost);
}

struct Args {
#include "kernels/convolution/deconvolution_args.cl"
};

KernelPlan tile_plan(const OpDesc& desc, const DeviceTraits& traits, const TuningPoint& point) {
  const ConvShape s = resolve(desc);
  const PixelStrides in = pixel_strides(desc.inputs[0]), out = pixel_strides(desc.outputs[0]);
  const ElementType type = desc.inputs[0].type;
  const int vector = point["VECTOR"], tile = point["TILE_P"], group = point["GROUP"];
  const bool depthwise = is_depthwise(s);
  // If depthwise, all groups together form one group with as many channels.
  const int64_t groups = depthwise ? 1 : s.groups, in_channels = s.in_channels,
                out_channels = depthwise ? s.groups : s.out_channels;
  const int64_t blocks = ceil_div(out_channels, vector),
                row_tiles = ceil_div(ceil_div(s.out[2], s.stride[2]), tile);
  const int64_t tiles = row_tiles * s.stride[2] * s.out[1] * s.out[0] * s.batch;
  const int64_t weights = groups * blocks * vector * s.taps() * in_channels;
  const double flops = 2.0 * static_cast<double>(s.taps() * in_channels) * tile * vector /
                       static_cast<double>(s.stride[0] * s.stride[1] * s.stride[2]);
  const int64_t per_item =
      traits.is_cpu ? tiles_per_item(tiles, groups * blocks, flops, traits) : 1;

  KernelPlan plan;
  plan.packed.push_back([filter = desc.constants[1], s, vector, blocks, weights, depthwise, type] {
    const std::vector<float> from = filter.to_floats();
    std::vector<float> to(static_cast<size_t>(weights + std::max<int64_t>(s.in_channels, vector)),
                          0.f);
    const float* value = from.data();
    for (int64_t g = 0; g < s.groups; ++g)
      for (int64_t i = 0; i < s.in_channels; ++i)
        for (int64_t o = 0; o < s.out_channels; ++o)
          for (int64_t t = 0; t < s.taps(); ++t) {
            const int64_t at =
                depthwise
                    ? t * s.groups + g
                    : (((g * blocks + o / vector) * s.taps() + t) * s.in_channels + i) * vector +
                          o % vector;
            to[static_cast<size_t>(at)] = *value++;
          }
    return to_bytes(to, type);
  });
  KernelSpec spec;
  spec.source = "deconvolution.cl";
  spec.defines = {{"T", storage_name(type)},
                  {"VECTOR", std::to_string(vector)},
                  {"TILE_P", std::to_string(tile)},
                  {"GROUP", std::to_string(group)},
                  {"DEPTHWISE", depthwise ? "1" : "0"}};
  Args args{};
  set_strides(args, in, out);
  set_geometry(args, s);
  args.in_channels = to_int(in_channels);
  args.out_channels = to_int(out_channels);
  args.blocks = to_int(blocks);
  args.all_blocks = to_int(groups * blocks);
  args.row_tiles = to_int(row_tiles);
  args.tiles = to_int(tiles);
  args.tiles_per_item = to_int(per_item);
  args.zeros = to_int(weights);
  const size_t size = size_of(type);
  spec.arguments = {Argument::input(0, size), Argument::packed(0, size), Argument::output(0, size),
                    Argument::value(args)};
  add_tail(desc, vector, spatial_axes(desc.outputs[0].shape.size()), spec, plan);
  spec.local[0] = static_cast<size_t>(group);
  spec.global[0] =
      static_cast<size_t>(ceil_div(ceil_div(tiles, per_item) * groups * blocks, group)) *
      spec.local[0];
  plan.launches.push_back(std::move(spec));
  return plan;
}

const KernelFamily kTile{"deconv_tile", 1, reject_tile, tile_space, tile_heuristic, tile_plan};

// ---- general -----------------------------------------------------------------------------------

KernelPlan general_plan(const OpDesc& desc, const DeviceTraits&, const TuningPoint& point) {
  // Constants are packed in the model's order.
  TensorDesc filter = desc.inputs[1];
  if (!desc.constants[1].empty()) filter = TensorDesc::row_major(desc.inputs[0].type, filter.shape);
  GeneralWeights weights{filter_strides(filter, is_grouped(desc.type), true), {}};
  if (!desc.constants[1].empty())
    weights.constants = [constant = desc.constants[1]] { return constant.to_floats(); };
  return general_convolution(desc, resolve(desc), true, weights, point);
}

const KernelFamily kGeneral{"deconv_general", 1,           reject_general_convolution, item_space,
                            item_heuristic,   general_plan};

OpDef deconvolution_op(const char* type) {
  return {.type = type,
          .opsets = {1},
          .infer_shapes = infer_shapes,
          .evaluate = evaluate,
          .families = {&kTile, &kGeneral},
          .layout = LayoutRule::image};
}

}  // namespace

ConvShape resolve_deconvolution(const OpDesc& desc) { return resolve(desc); }

std::vector<OpDef> deconvolution_ops() {
  return {deconvolution_op("ConvolutionBackpropData"),
          deconvolution_op("GroupConvolutionBackpropData")};
}

}  // namespace clinfer
