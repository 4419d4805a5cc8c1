// An OpenCL layer that gives Intel's CPU runtime what Intel's GPUs have and it lacks: matrix instructions (XMX) of
// sub-groups of CLINFER_LANES lanes (8, as DG2; or 16, as Ponte Vecchio), with 16 lanes 2-D block reads, and accurate
// native_exp() and native_recip(). Programs that call these functions get them in OpenCL C, by shuffles and loads.
#include <algorithm>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "tests/opencl_layer.h"

namespace {

constexpr std::string_view kFunctions = R"(
#define cl_intel_subgroup_matrix_multiply_accumulate 1
#define LAYER_FUNCTION __attribute__((overloadable, always_inline)) inline

// Word i of the row of which each lane has a part, a word or half of one.
LAYER_FUNCTION uint layer_word(uint part, int i) { return intel_sub_group_shuffle(part, i); }
LAYER_FUNCTION uint layer_word(ushort part, int i) {
  return intel_sub_group_shuffle((uint)part, 2 * i) |
         intel_sub_group_shuffle((uint)part, 2 * i + 1) << 16;
}
LAYER_FUNCTION uint layer_word(int part, int i) { return layer_word(as_uint(part), i); }
LAYER_FUNCTION uint layer_word(short part, int i) { return layer_word(as_ushort(part), i); }

LAYER_FUNCTION float layer_f16_f16(float sum, uint x, uint w) {
  const float2 a = vload_half2(0, (const half*)&x), b = vload_half2(0, (const half*)&w);
  return sum + a.x * b.x + a.y * b.y;
}
LAYER_FUNCTION int layer_u8_i8(int sum, uint x, uint w) {
  const int4 products = convert_int4(as_uchar4(x)) * convert_int4(as_char4(w));
  return sum + products.x + products.y + products.z + products.w;
}
LAYER_FUNCTION int layer_i8_u8(int sum, uint w, uint x) { return layer_u8_i8(sum, x, w); }

#define LAYER_MAD(TYPES, K, PART, PARTS, COLUMNS, SUM, SUMS)                                     \
  LAYER_FUNCTION SUMS intel_sub_group_##TYPES##_matrix_mad_##K(PARTS rows, COLUMNS columns,      \
                                                               SUMS sums) {                      \
    for (size_t row = 0; row < sizeof(PARTS) / sizeof(PART); ++row)                              \
      for (int i = 0; i < 8; ++i)                                                                \
        ((SUM*)&sums)[row] = layer_##TYPES(                                                      \
            ((SUM*)&sums)[row], layer_word(((PART*)&rows)[row], i), ((uint*)&columns)[i]);       \
    return sums;                                                                                 \
  }
#define LAYER_MADS(TYPES, K, PART, COLUMNS, SUM)               \
  LAYER_MAD(TYPES, K, PART, PART, COLUMNS, SUM, SUM)           \
  LAYER_MAD(TYPES, K, PART, PART##2, COLUMNS, SUM, SUM##2)     \
  LAYER_MAD(TYPES, K, PART, PART##4, COLUMNS, SUM, SUM##4)     \
  LAYER_MAD(TYPES, K, PART, PART##8, COLUMNS, SUM, SUM##8)
LAYER_MADS(f16_f16, k16, int, int8, float)
LAYER_MADS(f16_f16, k16, short, int8, float)
LAYER_MADS(u8_i8, k32, uint, int8, int)
LAYER_MADS(u8_i8, k32, ushort, int8, int)
LAYER_MADS(i8_u8, k32, int, uint8, int)

// Surfaces that the instruction does not take give wrong values.
LAYER_FUNCTION void intel_sub_group_2d_block_read_16b_8r16x2c(
    __global void* surface, int bytes, int rows, int pitch, int2 place, ushort* values) {
  const bool valid = (ulong)surface % 64 == 0 && bytes >= 64 && bytes % 4 == 0 &&
                     pitch >= bytes && pitch % 16 == 0 && place.x % 2 == 0;
  for (int i = 0; i < 16; ++i) {
    const int column = place.x + i / 8 * 16 + (int)get_sub_group_local_id();
    const int row = place.y + i % 8;
    const bool inside = column >= 0 && 2 * column < bytes && row >= 0 && row < rows;
    values[i] = !valid ? 0x7777
                : inside
                    ? ((__global const ushort*)((__global const char*)surface + (long)row * pitch))[column]
                    : 0;
  }
}
#line 1
)";

bool has_wide_matrices() {
  const char* const lanes = std::getenv("CLINFER_LANES");
  return lanes == nullptr || std::string_view(lanes) != "8";
}

cl_int CL_API_CALL device_info(cl_device_id device, cl_device_info what, size_t size, void* out,
                               size_t* needed) {
  if (what == CL_DEVICE_SUB_GROUP_SIZES_INTEL) {
    static constexpr size_t kSizes[] = {8, 16, 32};
    const size_t first = has_wide_matrices() ? 1 : 0;
    return answer_bytes(kSizes + first, sizeof kSizes - first * sizeof kSizes[0], size, out,
                        needed);
  }
  const auto query = [&](size_t room, void* text, size_t* length) {
    return g_next->clGetDeviceInfo(device, what, room, text, length);
  };
  if (what == CL_DEVICE_EXTENSIONS)
    return with_extension(query,
                          has_wide_matrices() ? "cl_intel_subgroup_matrix_multiply_accumulate "
                                                "cl_intel_subgroup_2d_block_io"
                                              : "cl_intel_subgroup_matrix_multiply_accumulate",
                          size, out, needed);
  return query(size, out, needed);
}

cl_program CL_API_CALL create_program(cl_context context, cl_uint count, const char** strings,
                                      const size_t* lengths, cl_int* status) {
  // Its own are wrong in the fourth digit.
  constexpr std::string_view kExact =
      "#define native_exp exp\n#define native_recip(x) (1.0f / (x))\n";
  std::vector<std::string_view> pieces{kExact};
  for (cl_uint i = 0; i < count; ++i) {
    const bool ends = lengths == nullptr || lengths[i] == 0;  // with a NUL
    pieces.push_back(ends ? std::string_view(strings[i])
                          : std::string_view(strings[i], lengths[i]));
  }
  const auto calls = [](std::string_view piece) {
    return piece.find("_matrix_mad_k") != piece.npos || piece.find("_2d_block_read_") != piece.npos;
  };
  if (std::any_of(pieces.begin(), pieces.end(), calls)) pieces.insert(pieces.begin(), kFunctions);
  std::vector<const char*> begins;
  std::vector<size_t> sizes;
  for (const std::string_view piece : pieces) {
    begins.push_back(piece.data());
    sizes.push_back(piece.size());
  }
  return g_next->clCreateProgramWithSource(context, static_cast<cl_uint>(begins.size()),
                                           begins.data(), sizes.data(), status);
}

}  // namespace

void replace_calls(cl_icd_dispatch& table) {
  table.clGetDeviceInfo = device_info;
  table.clCreateProgramWithSource = create_program;
}
