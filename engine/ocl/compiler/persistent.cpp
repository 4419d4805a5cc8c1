// Generates the source and the work list of persistent kernels.
#include "engine/ocl/compiler/persistent.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <map>

#include "kernels/base/hash.h"

namespace clinfer::ocl {

namespace {

constexpr size_t kCountersStep = 16;  // counters that fit a cache line of a CPU

// The words of a list entry; arguments follow from kArguments on.
enum Word : size_t { kKernel, kGroupCount, kGroupsX, kGroupsY, kLength, kArguments };

size_t team_size(const KernelSpec& spec) { return spec.local[0] * spec.local[1] * spec.local[2]; }

size_t round_up(size_t n, size_t step) { return (n + step - 1) / step * step; }

size_t words_of(const Argument& argument) {
  return argument.kind == Argument::Kind::value ? (argument.bytes.size() + 3) / 4 : 2;
}

size_t words_of(const KernelSpec& spec) {
  size_t words = kArguments;
  for (const Argument& argument : spec.arguments) words += words_of(argument);
  return words;
}

std::string at(size_t word) { return "at[" + std::to_string(word) + "]"; }

// Returns the arguments of one kernel as its function reads them from the list.
std::string arguments_text(const KernelSpec& spec) {
  std::string call;
  size_t word = kArguments;
  for (const Argument& argument : spec.arguments) {
    call += ",\n       ";
    if (argument.kind != Argument::Kind::value)
      call += "PK_BUFFER(" + at(word) + "), " + at(word + 1);
    else if (argument.type == "int")
      call += at(word);
    else if (argument.type == "float")
      call += "as_float(" + at(word) + ")";
    else if (argument.type == "int4")
      call += "vload4(0, at + " + std::to_string(word) + ")";
    else if (argument.type == "float2")
      call += "as_float2(vload2(0, at + " + std::to_string(word) + "))";
    else
      call += "*(__global const " + std::string(argument.type) + "*)(at + " + std::to_string(word) +
              ")";
    word += words_of(argument);
  }
  return call;
}

// Returns the function that calls one kernel for work-groups `from` to `to`. It is not inlined into
// the persistent kernel, because PoCL compiles that three times (kernels/outline.cl).
std::string loop_text(const KernelSpec& spec) {
  return R"(static __attribute__((noinline)) void FN(entry)(
    __global uchar *b0, __global uchar *b1, __global uchar *b2, __global const int *at,
    int from, int to) {
  const int nx = )" +
         at(kGroupsX) + ", ny = " + at(kGroupsY) + R"(;
  for (int group = from; group < to; ++group)
    for (int item = 0; item < )" +
         std::to_string(team_size(spec)) + R"(; ++item)
      FN(body)((int4)(group % nx, group / nx % ny, group / nx / ny, nx), item)" +
         arguments_text(spec) + ");\n}\n";
}

}  // namespace

size_t PersistentKernel::counter_words(unsigned groups) const {
  return launch_counters > 0 ? kCountersStep + launch_counters * (1 + groups) : 1;
}

bool shares_work(const DeviceTraits& traits) {
  return traits.grid_barrier != GridBarrier::none && traits.is_cpu && traits.vendor == Vendor::pocl;
}

std::string reject_persistent(const KernelSpec& spec, const DeviceTraits& traits) {
  if (traits.grid_barrier == GridBarrier::none) return "the device launches kernels one by one";
  if (spec.own) return "a kernel of the user's";
  for (const Argument& argument : spec.arguments)
    if (argument.kind == Argument::Kind::image) return "images";
  return spec.shared > 0 ? "work-items that share memory" : "";
}

PersistentKernel make_persistent(
    std::span<const KernelSpec* const> launches,
    const std::function<ArgumentPlace(size_t launch, const Argument& argument)>& place,
    const DeviceTraits& traits, size_t& count) {
  PersistentKernel result;
  Instantiations functions;
  std::map<std::string, size_t> known;  // indices of kernels by name
  std::string kernels, cases;
  count = 0;
  for (const KernelSpec* spec : launches) {
    const auto reachable = [&](const Argument& argument) {
      return argument.kind == Argument::Kind::value ||
             place(count, argument).offset / static_cast<int64_t>(argument.unit) <=
                 std::numeric_limits<int32_t>::max();
    };
    if (!std::all_of(spec->arguments.begin(), spec->arguments.end(), reachable)) break;

    KernelSpec called = *spec;
    for (const auto& [name, value] :
         {std::pair{"PK_X", spec->local[0]}, std::pair{"PK_Y", spec->local[1]},
          std::pair{"PK_Z", spec->local[2]}})
      called.defines.emplace_back(name, std::to_string(value));
    const Instantiation& function = functions.of_function(called, loop_text(*spec));
    const auto [found, fresh] = known.try_emplace(function.kernel_name, known.size());
    if (fresh) {
      kernels += function.text;
      cases += " case " + std::to_string(found->second) + ": entry_" + function.kernel_name +
               "(b0, b1, b2, list + at, from, to); break;";
    }

    std::array<size_t, 3> groups{};
    for (size_t d = 0; d < 3; ++d) groups[d] = spec->global[d] / spec->local[d];
    const size_t start = result.list.size();
    for (const size_t word :
         {found->second, groups[0] * groups[1] * groups[2], groups[0], groups[1], words_of(*spec)})
      result.list.push_back(static_cast<int32_t>(word));
    for (const Argument& argument : spec->arguments) {
      if (argument.kind == Argument::Kind::value) {
        const size_t word = result.list.size();
        result.list.resize(word + words_of(argument));
        std::memcpy(result.list.data() + word, argument.bytes.data(), argument.bytes.size());
      } else {
        const ArgumentPlace where = place(count, argument);
        result.list.push_back(where.buffer);
        result.list.push_back(
            static_cast<int32_t>(where.offset / static_cast<int64_t>(argument.unit)));
      }
    }
    if (result.list.size() != start + words_of(*spec))
      throw std::logic_error("the list of a persistent kernel is not as its arguments are");
    ++count;
  }
  if (shares_work(traits))
    result.launch_counters = round_up(std::max<size_t>(count, 1), kCountersStep);

  std::string text =
      "#define PK_BUFFER(i) ((__global void*)((i) == 0 ? b0 : (i) == 1 ? b1 : b2))\n"
      "#line 1 \"persistent.cl\"\n" +
      std::string(kernel_source("persistent.cl")) + kernels;
  for (const auto& [name, value] : {std::pair{"PK_LENGTH", size_t{kLength}},
                                    {"PK_GROUPS", kGroupCount},
                                    {"PK_CORES", result.launch_counters > 0},
                                    {"PK_HEAD", kCountersStep},
                                    {"PK_STRIDE", result.launch_counters}})
    text += "#define " + std::string(name) + " " + std::to_string(value) + "\n";
  text += "#define PK_MEET " + std::to_string(kMeet) + "\n#define PK_CASES" + cases +
          "\n#line 1 \"persistent_main.cl\"\n" + std::string(kernel_source("persistent_main.cl"));
  result.program.kernel_name = "persistent_" + hex(fnv1a(text));
  result.program.text = "#define PK_NAME " + result.program.kernel_name + "\n" + text;
  // With an empty list the kernel does nothing.
  result.program.launches.push_back(
      {{1, 1, 1},
       {1, 1, 1},
       {Argument::input_address(0, 4), Argument::input_address(1, 4), Argument::input_address(2, 4),
        Argument::input_address(3, 4), Argument::value(0), Argument::input_address(4, 4)}});
  return result;
}

}  // namespace clinfer::ocl
