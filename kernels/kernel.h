// Kernel families as plain data: what a family refuses, its tuning points, and what has to be
// launched for one of them.
#pragma once

#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "kernels/op.h"

namespace clinfer {

// How a device adds up four products of bytes: in one instruction by inline PTX (dp4a),
// cl_khr_integer_dot_product, AVX-512 VNNI or AVX-VNNI (of 8 fours at most); or in four of AVX2 or
// AVX-512BW, by pairs. The x86 ones are inline assembly.
enum class DotProduct { none, ptx, khr, avx512, avx, pairs };

// How warps of 32 work-items of a device multiply matrices (16 x 8 sums of 32 bytes a row, f16 or
// bytes): inline PTX (mma.sync), or plain C that acts the same out, for tests on any device.
enum class MatrixUnit { none, ptx, emulated };

// How all work-groups of a launch, which are on the device together, wait for each other: fences
// and atomics by inline PTX, or there is a single work-group, for tests on any device.
enum class GridBarrier { none, ptx, single };

enum class Vendor { other, intel, nvidia, amd, arm, pocl };

// What kernels may know of a device. Filled by engine/ocl from queries and probes; a test may make
// up its own.
struct DeviceTraits {
  Vendor vendor = Vendor::other;
  std::string name;
  bool is_cpu = false;
  unsigned compute_units = 1;
  size_t max_work_group = 256;
  size_t local_memory = 32 << 10;  // bytes
  unsigned vector_width = 4;       // floats in a native vector; 1 on scalar (SIMT) machines
  bool fp16 = false;               // half arithmetic compiles
  unsigned sub_group = 0;          // width that kernels may require, 0 = none
  bool intel_block_io = false;     // cl_intel_subgroups block reads and shuffles
  DotProduct dot = DotProduct::none;
  MatrixUnit matrix = MatrixUnit::none;
  bool wgmma = false;  // warpgroup matrix instructions by marked PTX (KernelSpec::marked_ptx)
  GridBarrier grid_barrier = GridBarrier::none;
  // Kernels run one after the other: only one stream's. Else others' run beside them, and what a
  // kernel issues counts for more than how long it takes.
  bool alone = true;
};

// Named integers, in a fixed order. Two points of one family have the same names.
struct TuningPoint {
  std::vector<std::pair<std::string, int>> values;
  int operator[](std::string_view name) const {
    for (const auto& [key, value] : values)
      if (key == name) return value;
    throw std::out_of_range("tuning point has no " + std::string(name));
  }
  friend bool operator==(const TuningPoint&, const TuningPoint&) = default;
};

// One argument of a launch, in the kernel's order. A tensor argument becomes two kernel arguments:
// the buffer that holds the tensor (cl_mem) and an int, the offset of its first element in elements
// of `unit` bytes (macros IN/OUT in common/types.cl). An image is one kernel argument: an image2d_t
// that something outside the plan provides. So kernels see few base buffers, and plans can be
// walked by a persistent kernel.
struct Argument {
  enum class Kind { input, output, packed, workspace, value, image };
  Kind kind = Kind::value;
  size_t index =
      0;            // input, output: of the OpDesc; packed: of KernelPlan::packed; image: the plane
  size_t unit = 4;  // bytes of one element in the kernel's eyes
  std::vector<std::byte>
      bytes{};  // value: passed by value (struct of ints and floats, or one scalar)
  std::string_view type = "FN(Args)";  // value: its type in the source

  static Argument input(size_t i, size_t unit) { return {Kind::input, i, unit}; }
  static Argument output(size_t i, size_t unit) { return {Kind::output, i, unit}; }
  static Argument packed(size_t i, size_t unit) { return {Kind::packed, i, unit}; }
  static Argument image(size_t i) { return {Kind::image, i, 0}; }
  static Argument workspace(size_t unit) { return {Kind::workspace, 0, unit}; }
  template <typename T>
  static Argument value(const T& v) {
    Argument a;
    a.bytes.resize(sizeof(T));
    std::memcpy(a.bytes.data(), &v, sizeof(T));
    a.type = std::is_same_v<T, int>                    ? "int"
             : std::is_same_v<T, float>                ? "float"
             : std::is_same_v<T, std::array<int, 4>>   ? "int4"
             : std::is_same_v<T, std::array<float, 2>> ? "float2"
                                                       : "FN(Args)";
    return a;
  }
};

// Work-groups along the second and third dimension that all devices can start (NVIDIA's limit).
inline constexpr int64_t kMaxGroups = 65535;

// Instantiates one `KERNEL` of a source file. The engine emits: the common sources once per
// program, then per distinct spec the defines, `#define KERNEL_NAME <unique>`, the prologue, the
// file, and #undefs; equal (source, defines, prologue) share one kernel. So whatever differs
// between layers but not between machine codes belongs into `arguments`.
struct KernelSpec {
  std::string source;                                        // "convolution.cl"
  std::vector<std::pair<std::string, std::string>> defines;  // NAME -> text
  std::string prologue;                   // generated OpenCL C (the tail), may use KERNEL_NAME
  std::array<size_t, 3> global{1, 1, 1};  // work-items; a multiple of local
  std::array<size_t, 3> local{1, 1, 1};   // work-group; the source states it by WORK_GROUP
  size_t shared = 0;                      // bytes of local memory that it declares (SHARED)
  // Its inline PTX holds instructions that the driver refuses in OpenCL C, as comments `//@...`; the
  // engine makes instructions of them in the PTX that comes out (engine/ocl/marked_ptx.h).
  bool marked_ptx = false;
  std::vector<Argument> arguments;
};

// What runs one OpDesc: launches in order, constants repacked at load, scratch that lives for this
// step only.
struct KernelPlan {
  std::vector<KernelSpec> launches;
  std::vector<std::function<std::vector<std::byte>()>>
      packed;            // called once at load, possibly on another thread
  size_t workspace = 0;  // bytes
};

// The point of least cost, the first of equals: by the points' costs, or by `cost(point)`.
inline TuningPoint cheapest(const std::vector<TuningPoint>& points,
                            const std::vector<double>& costs) {
  return points[static_cast<size_t>(std::min_element(costs.begin(), costs.end()) - costs.begin())];
}
template <typename Cost>
TuningPoint cheapest(const std::vector<TuningPoint>& points, const Cost& cost) {
  std::vector<double> costs;
  for (const TuningPoint& point : points) costs.push_back(cost(point));
  return cheapest(points, costs);
}

// One way to compute an op. Plain functions, no state. `reject` comes first: the others may assume
// that it said nothing.
struct KernelFamily {
  std::string name;  // stored in tuning records
  int version = 1;   // raised when old records would no longer mean the same
  std::string (*reject)(const OpDesc&, const DeviceTraits&) = nullptr;  // reason, or ""
  std::vector<TuningPoint> (*space)(const OpDesc&, const DeviceTraits&) =
      nullptr;  // all points worth trying; never empty
  TuningPoint (*heuristic)(const OpDesc&,
                           const DeviceTraits&) = nullptr;  // untuned choice; a member of the space
  KernelPlan (*plan)(const OpDesc&, const DeviceTraits&, const TuningPoint&) = nullptr;
  // Times of the points of space() as a model sees them, in any unit: a search tries the cheapest
  // first. Without it, the space goes from the most promising point to the least.
  std::vector<double> (*costs)(const OpDesc&, const DeviceTraits&) = nullptr;
};

}  // namespace clinfer
