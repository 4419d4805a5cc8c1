// Checks kernels on the OpenCL device against evaluate(): each family that accepts an OpDesc, at
// its extreme and default tuning points (all points with CLINFER_TEST_ALL=1). Compares the outputs,
// and every byte around them.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "kernels/kernel.h"

namespace clinfer::test {

// Uniform random floats in [low, high), from a generator seeded with `seed`.
Tensor random_tensor(Shape shape, float low = -1, float high = 1, unsigned seed = 1);
// Random integers in [low, high].
Tensor random_ints(ElementType type, Shape shape, int64_t low, int64_t high, unsigned seed = 1);
// Random weights of i16 that differ by less than 256 in each part along dimension 0. The parts
// alternate between values below the range of bytes, in it, and above it.
Tensor shifted_weights(const Shape& shape);

// Describes an operation on `inputs` with the engine's layouts (channels-last if
// has_channels_last() is true). Infers the shapes of the outputs. `constant[i]`: input i is a
// constant.
OpDesc make_desc(const std::string& type, int opset, const Attributes& attributes,
                 const std::vector<Tensor>& inputs, const std::vector<bool>& constant,
                 size_t output_count = 1);
Attributes attributes(std::initializer_list<std::pair<const char*, const char*>> values);

// Changes a layout into a view with gaps between pixels (larger strides) and an offset, in
// elements.
TensorDesc with_gaps(TensorDesc desc, int64_t gap = 5, int64_t offset = 3);

struct Tolerance {
  double absolute = 1e-5, relative = 1e-4;
};

// Runs every family that does not reject `desc` and compares its results with evaluate() +
// apply_tail(). Fails if no family accepts it. Float activations may be f32 or f16 by their desc's
// type (with f16 the reference is computed from the rounded inputs). Returns the number of (family,
// point) pairs that ran. `pretend`: traits with which families plan, instead of the device's own
// (the kernels still run on the device). `only`: the single family to run.
size_t check_op(const OpDesc& desc, const std::vector<Tensor>& inputs, Tolerance tolerance = {},
                const DeviceTraits* pretend = nullptr, const std::string& only = "");
// Does so with the device's own traits, and with those of a GPU.
void check_both(const OpDesc& desc, const std::vector<Tensor>& inputs, Tolerance tolerance = {});
// Microseconds that the kernels of the first family that does not reject `desc` take at its default
// point.
double kernel_us(const OpDesc& desc, const std::vector<Tensor>& inputs, const DeviceTraits& traits);
// The points of a family that tests run: the default, the first and the last, or all of them.
std::vector<TuningPoint> points_of(const KernelFamily& family, const OpDesc& desc,
                                   const DeviceTraits& traits);
const DeviceTraits& device_traits();  // of the device that all tests run on
// Traits of a mid-sized GPU without extensions, so that code for GPUs is tested on any device.
DeviceTraits gpu_traits();
// Traits of a GPU with small work-groups only, which leave kernels few points.
DeviceTraits tiny_traits();

// Runs the reference alone: evaluate() + apply_tail().
std::vector<Tensor> reference(const OpDesc& desc, const std::vector<Tensor>& inputs);

}  // namespace clinfer::test
