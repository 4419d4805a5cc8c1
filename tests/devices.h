// Devices that plans are made for without having one.
#pragma once

#include "kernels/kernel.h"

namespace clinfer::test {

// A CPU with integer dot products: of all devices the one with most fusions.
inline DeviceTraits cpu_with_dot_products() {
  DeviceTraits traits;
  traits.vendor = Vendor::pocl;
  traits.is_cpu = true;
  traits.compute_units = 2;
  traits.max_work_group = 4096;
  traits.local_memory = 1 << 20;
  traits.vector_width = 16;
  traits.dot = DotProduct::avx512;
  return traits;
}

}  // namespace clinfer::test
