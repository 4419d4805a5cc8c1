// Kernel families as plain data: the operations that a family rejects, its tuning points, and the
// launches for one point.
#pragma once

#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "kernels/op.h"

namespace clinfer {

// How a device computes dot products of four bytes. In one instruction: inline PTX (dp4a),
// cl_khr_integer_dot_product, AVX-512 VNNI, or AVX-VNNI (`avx`: vectors of up to 8 dot products).
// In four instructions of AVX2 or AVX-512BW: `pairs`. The x86 variants are inline assembly.
enum class DotProduct { none, ptx, khr, avx512, avx, pairs };

// How a device multiplies matrices whose rows have 32 bytes, f16 or bytes. A warp of 32 work-items
// computes a tile of 16 x 8 sums, by inline PTX (mma.sync), or by plain C that emulates it, for
// tests on any device. A sub-group of Intel's GPUs computes 8 x 8 (xmx8) or up to 8 x 16 sums
// (xmx16), with as many columns as it has lanes, by cl_intel_subgroup_matrix_multiply_accumulate
// (dpas) or by shuffles that emulate it. A core with AMX multiplies tiles of 16 rows of 64 bytes
// into 16 x 16 sums, by inline assembly or plain C.
enum class MatrixUnit {
  none,
  ptx,
  emulated,
  xmx8,
  xmx16,
  emulated_xmx8,
  emulated_xmx16,
  amx,
  emulated_amx
};

// The extension by which sub-groups read blocks of several rows of memory at once, into the
// operands of xmx16: cl_intel_subgroup_2d_block_io, or that of older drivers
// (cl_intel_subgroup_extended_block_read).
enum class Blocks2d { none, io, extended };

// The method to add up products of bf16 in f32: by AVX512_BF16 (inline assembly), or by plain C,
// for tests on any device.
enum class Bf16 { none, avx512, emulated };

// The grid-wide barrier of a persistent kernel. single: no barrier, for a single work-group, and
// for several on PoCL's CPU, which share the work (kernels/persistent_main.cl). none: no persistent
// kernels.
enum class GridBarrier { none, single };

enum class Vendor { other, intel, nvidia, amd, arm, pocl };

// The properties of a device that families may use. engine/ocl fills them from queries and probes;
// a test may set its own.
struct DeviceTraits {
  Vendor vendor = Vendor::other;
  std::string name;
  // Also means that a core computes the work-items of a group one after the other.
  bool is_cpu = false;
  unsigned compute_units = 1;
  size_t max_work_group = 256;
  size_t local_memory = 32 << 10;  // bytes
  unsigned vector_width = 4;       // floats in a native vector; 1 on scalar (SIMT) machines
  bool fp16 = false;               // half arithmetic compiles
  DotProduct dot = DotProduct::none;
  MatrixUnit matrix = MatrixUnit::none;
  Blocks2d blocks_2d = Blocks2d::none;
  Bf16 bf16 = Bf16::none;
  std::string no_amx;  // reason why kernels of a CPU may not use AMX
  // The sum of the sub-group sizes that kernels may ask for (8 + 16 + 32), if sub-groups shuffle
  // values and read blocks of 32 and 16 bits: cl_intel_subgroups, cl_intel_subgroups_short and
  // cl_intel_required_subgroup_size. Otherwise 0.
  unsigned sub_groups = 0;
  bool wgmma = false;  // warpgroup matrix instructions by marked PTX (KernelSpec::marked_ptx)
  GridBarrier grid_barrier = GridBarrier::none;
  // True if only one stream runs, so that kernels run one after the other. Otherwise kernels of
  // other streams run at the same time, and the number of instructions that a kernel issues matters
  // more than its latency.
  bool alone = true;
  // True if sums are added up in the one order that KernelFamily::own_order describes, so that they
  // are the same on every device. space() then leaves out the points that add up in another order.
  bool ordered_sums = false;
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
// of `unit` bytes (macros IN/OUT in common/types.cl). Kernels thus use few base buffers, and a
// persistent kernel can run several steps of a plan. An image becomes one kernel argument, an
// image2d_t that the caller of the plan provides.
struct Argument {
  enum class Kind { input, output, packed, workspace, value, image };
  Kind kind = Kind::value;
  // input, output: index in the OpDesc; packed: index in KernelPlan::packed; image: the plane.
  size_t index = 0;
  // Bytes of one element as the kernel accesses it.
  size_t unit = 4;
  // value: a struct of ints and floats, or one scalar, passed by value.
  std::vector<std::byte> bytes{};
  // value: its type in the source.
  std::string_view type = "FN(Args)";
  // input, output: unless 0, the kernel takes the address of a dense tensor of this many bytes, and
  // no offset.
  size_t address_bytes = 0;
  // input, output, workspace: byte offset from the beginning of the tensor or the memory.
  int64_t offset = 0;

  static Argument input(size_t i, size_t unit) { return {Kind::input, i, unit}; }
  static Argument output(size_t i, size_t unit) { return {Kind::output, i, unit}; }
  static Argument packed(size_t i, size_t unit) { return {Kind::packed, i, unit}; }
  static Argument input_address(size_t i, size_t bytes) {
    Argument a = input(i, 1);
    a.address_bytes = bytes;
    return a;
  }
  static Argument output_address(size_t i, size_t bytes) {
    Argument a = output(i, 1);
    a.address_bytes = bytes;
    return a;
  }
  static Argument image(size_t i) { return {Kind::image, i, 0}; }
  static Argument workspace(size_t unit) { return {Kind::workspace, 0, unit}; }
  template <typename T>
  static Argument value(const T& v) {
    // Members of four bytes have the same layout in C++ and OpenCL C. Every device accepts 1024
    // bytes of arguments.
    static_assert(std::is_standard_layout_v<T> && std::is_trivially_copyable_v<T>);
    static_assert(alignof(T) == 4 && sizeof(T) % 4 == 0 && sizeof(T) <= 768);
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

// The number of work-groups along the second and third dimension that every device can launch
// (NVIDIA's limit).
inline constexpr int64_t kMaxGroups = 65535;

// A user's program with one kernel (kernels/custom): it is compiled unchanged, without the common
// sources.
struct OwnProgram {
  std::string text;
  std::string entry;    // the kernel's name in it
  std::string options;  // compiler options
  std::string where;    // the description that defines it, for messages
};

// Instantiates one `KERNEL` of a source file. The engine emits the common sources once per program,
// then for each distinct spec: the defines, `#define KERNEL_NAME <unique>`, the prologue, the file,
// and #undefs. Specs with equal source, defines and prologue share one kernel; values that differ
// between layers without changing the machine code therefore belong in `arguments`.
struct KernelSpec {
  // File name below kernels/: "convolution.cl".
  std::string source;
  // Pairs of name and text.
  std::vector<std::pair<std::string, std::string>> defines;
  // Generated OpenCL C (the tail); may use KERNEL_NAME.
  std::string prologue;
  // Work-items; a multiple of `local`.
  std::array<size_t, 3> global{1, 1, 1};
  // Size of a work-group; the source states it by WORK_GROUP.
  std::array<size_t, 3> local{1, 1, 1};
  // Bytes of local memory that the kernel declares (SHARED).
  size_t shared = 0;
  // The inline PTX contains instructions that the driver rejects in OpenCL C, as comments `//@...`.
  // The engine turns them into instructions in the compiled PTX (engine/ocl/compiler/marked_ptx.h).
  bool marked_ptx = false;
  std::vector<Argument> arguments;
  // A user's program, which replaces source, defines and prologue; `source` then names the kernel
  // in messages.
  std::shared_ptr<const OwnProgram> own = {};
};

// The execution of one OpDesc: launches in order, constants packed when the model is loaded, and
// scratch memory that is valid during this step only.
struct KernelPlan {
  std::vector<KernelSpec> launches;
  // Each is called once when the model is loaded, possibly on another thread.
  std::vector<std::function<std::vector<std::byte>()>> packed;
  // Bytes of scratch memory.
  size_t workspace = 0;
};

// Returns the point with the lowest cost, the first one if several are equal. The costs are given
// as a list, or computed by `cost(point)`.
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

// Reasons of several families to add up in an order of their own.
inline constexpr const char* kSharedSums = "work-items share a sum";
inline constexpr const char* kMatrixOrder = "matrix instructions add up in an order of their own";

// One way to compute an operation. Plain functions without state. `reject` is called first: the
// others may assume that it returned "".
struct KernelFamily {
  // Stored in tuning records.
  std::string name;
  // Must be raised when the meaning of existing records changes.
  int version = 1;
  // Returns the reason why the family cannot compute this operation on this device, or "".
  std::string (*reject)(const OpDesc&, const DeviceTraits&) = nullptr;
  // Returns all points worth measuring; never empty.
  std::vector<TuningPoint> (*space)(const OpDesc&, const DeviceTraits&) = nullptr;
  // Returns the point used without measurements; it is a member of the space.
  TuningPoint (*heuristic)(const OpDesc&, const DeviceTraits&) = nullptr;
  // Returns the launches for a point.
  KernelPlan (*plan)(const OpDesc&, const DeviceTraits&, const TuningPoint&) = nullptr;
  // Returns the times of the points of space() as a cost model predicts them, in any unit: a search
  // measures the cheapest first. If null, space() is ordered from the most to the least promising.
  std::vector<double> (*costs)(const OpDesc&, const DeviceTraits&) = nullptr;
  // Why the kernels add up f32 in an order of their own, so that they are not taken where
  // DeviceTraits::ordered_sums is set; "" if they then follow the one order. This is the order:
  // Each element of an output is one f32 sum, which starts at 0 and takes its terms one after the
  // other. A product is added by fma(), which rounds once; other operations round each result. The
  // terms of a
  // - convolution, transposed convolution: taps of the filter by depth, row and column; in each tap
  //   the input channels of the group, ascending. A tap outside the input adds 0;
  // - product of matrices: k ascending;
  // - pooling: elements of the window by depth, row and column;
  // - softmax: elements along the axis, ascending;
  // - reduction, normalisation: elements by their places in memory, where images are
  //   channels-last. The sum of the squares takes what the mean is subtracted from;
  // - resizing: a sum of each row's taps by column, then of these by depth and row;
  // - samples of maps: the pixels around a point by row and column, point by point;
  // - recurrent layer: the bias, then the inputs, ascending; and a sum of the states, ascending,
  //   which is added to that.
  // The tail (bias, activation and so on) follows.
  std::string own_order = {};
};

}  // namespace clinfer
