// Checks kernels on the OpenCL device against evaluate(): each family that takes an OpDesc, at its
// extreme and default tuning points (all points with CLINFER_TEST_ALL=1). Outputs, and every byte
// around them, are compared.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "kernels/kernel.h"

namespace clinfer::test {

// Uniform random floats in [low, high), by a fixed generator that `seed` picks.
Tensor random_tensor(Shape shape, float low = -1, float high = 1, unsigned seed = 1);
// Random integers in [low, high].
Tensor random_ints(ElementType type, Shape shape, int64_t low, int64_t high, unsigned seed = 1);
// Random weights of i16, less than 256 apart in each part along dimension 0: below bytes, bytes,
// and above by turns.
Tensor shifted_weights(const Shape& shape);

// Describes an operation on `inputs` with the layouts the engine would give (channels-last as
// has_channels_last() says). Shapes of the outputs are inferred. `constant[i]`: input i is a
// constant.
OpDesc make_desc(const std::string& type, int opset, const Attributes& attributes,
                 const std::vector<Tensor>& inputs, const std::vector<bool>& constant,
                 size_t output_count = 1);
Attributes attributes(std::initializer_list<std::pair<const char*, const char*>> values);

// Widens a layout so that it is a view: gaps between pixels (dimension steps grow) and an offset,
// in elements.
TensorDesc with_gaps(TensorDesc desc, int64_t gap = 5, int64_t offset = 3);

struct Tolerance {
  double absolute = 1e-5, relative = 1e-4;
};

// Runs every family that does not reject `desc` and compares with evaluate() + apply_tail(). Fails
// when no family takes it. Float activations may be f32 or f16 by their desc's type (with f16 the
// reference is computed from the rounded inputs). Returns the number of (family, point) pairs run.
// `pretend`: traits for families to plan by instead of the device's own (whose kernels still run on
// it). `only`: the one family to run.
size_t check_op(const OpDesc& desc, const std::vector<Tensor>& inputs, Tolerance tolerance = {},
                const DeviceTraits* pretend = nullptr, const std::string& only = "");
// Microseconds that the kernels of the first family take which does not reject `desc`, at its
// default point.
double kernel_us(const OpDesc& desc, const std::vector<Tensor>& inputs, const DeviceTraits& traits);
// The points of a family that tests run: the default, the first and the last, or all of them.
std::vector<TuningPoint> points_of(const KernelFamily& family, const OpDesc& desc,
                                   const DeviceTraits& traits);
const DeviceTraits& device_traits();  // of the device that all tests run on
// Traits of a mid-sized GPU without extensions, so that what is meant for GPUs is run here, too.
DeviceTraits gpu_traits();
// The same with small work-groups only, which leave kernels few points to run.
DeviceTraits tiny_traits();

// The reference alone: evaluate() + apply_tail().
std::vector<Tensor> reference(const OpDesc& desc, const std::vector<Tensor>& inputs);

}  // namespace clinfer::test
