// Devices that plans are made for without having one.
#pragma once

#include <algorithm>
#include <initializer_list>
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
  return traits;
}

// Intel's GPUs by the name that the offline compiler has for their kind, as their driver reports them.
// skl and icllp are known to older compilers only, mtl (Meteor Lake), arl-h (Arrow Lake H), lnl (Lunar
// Lake) and bmg (Battlemage) to newer ones. pvc is as the older driver reports it: without OpenCL C 3.0,
// so without dot products, and with the older of two extensions for 2-D block reads.
inline DeviceTraits intel_gpu(const std::string& kind, unsigned compute_units) {
  const auto is = [&](std::initializer_list<const char*> kinds) {
    return std::find(kinds.begin(), kinds.end(), kind) != kinds.end();
  };
  DeviceTraits traits;
  traits.vendor = Vendor::intel;
  traits.name = kind;
  traits.compute_units = compute_units;
  traits.max_work_group = is({"skl", "icllp"}) ? 256 : kind == "tgllp" ? 512 : 1024;
  traits.local_memory = 64 << 10;
  traits.vector_width = 1;
  traits.fp16 = true;
  traits.dot = is({"skl", "icllp", "pvc"}) ? DotProduct::none : DotProduct::khr;
  traits.sub_groups = is({"pvc", "lnl", "bmg"}) ? 16 + 32 : 8 + 16 + 32;
  traits.matrix = is({"dg2", "arl-h"})        ? MatrixUnit::xmx8
                  : is({"pvc", "lnl", "bmg"}) ? MatrixUnit::xmx16
                                              : MatrixUnit::none;
  traits.blocks_2d = kind == "pvc"        ? Blocks2d::extended
                     : is({"lnl", "bmg"}) ? Blocks2d::io
                                          : Blocks2d::none;
  return traits;
}

}  // namespace clinfer::test
