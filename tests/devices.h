// Devices that plans are made for without having one.
#pragma once

#include <string>

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

// PoCL on a processor with AVX2.
inline DeviceTraits cpu_with_avx2() {
  DeviceTraits traits = cpu_with_dot_products();
  traits.vector_width = 8;
  traits.dot = DotProduct::avx;
  return traits;
}

// NVIDIA's Hopper GPUs.
inline DeviceTraits hopper(const char* name) {
  DeviceTraits traits;
  traits.vendor = Vendor::nvidia;
  traits.name = name;
  traits.compute_units = 132;
  traits.max_work_group = 1024;
  traits.local_memory = 48 << 10;
  traits.vector_width = 1;
  traits.fp16 = true;
  traits.dot = DotProduct::ptx;
  traits.matrix = MatrixUnit::ptx;
  traits.wgmma = true;
  traits.grid_barrier = GridBarrier::ptx;
  return traits;
}

// Intel's GPUs by the name that the offline compiler has for their kind, as their driver reports them.
// (The compiler of Debian 12 has no OpenCL C 3.0 for pvc, so no dot products, and does not know bmg.)
inline DeviceTraits intel_gpu(const std::string& kind, unsigned compute_units) {
  const bool dot = kind == "tgllp" || kind == "dg2" || kind == "bmg";
  DeviceTraits traits;
  traits.vendor = Vendor::intel;
  traits.name = kind;
  traits.compute_units = compute_units;
  traits.max_work_group = kind == "tgllp" ? 512 : dot || kind == "pvc" ? 1024 : 256;
  traits.local_memory = 64 << 10;
  traits.vector_width = 1;
  traits.fp16 = true;
  traits.dot = dot ? DotProduct::khr : DotProduct::none;
  traits.sub_groups = kind == "pvc" || kind == "bmg" ? 16 + 32 : 8 + 16 + 32;
  traits.matrix = kind == "dg2"                    ? MatrixUnit::xmx8
                  : kind == "pvc" || kind == "bmg" ? MatrixUnit::xmx16
                                                   : MatrixUnit::none;
  traits.blocks_2d = kind == "pvc"   ? Blocks2d::extended
                     : kind == "bmg" ? Blocks2d::io
                                     : Blocks2d::none;
  return traits;
}

}  // namespace clinfer::test
