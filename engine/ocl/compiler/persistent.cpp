// Generates the source and the work list of persistent kernels.
#include "engine/ocl/compiler/persistent.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <map>
#include <mutex>

#include "kernels/base/hash.h"

namespace clinfer::ocl {

namespace {

// work-items in a work-group: with 255 registers each they still fit a compute unit.
constexpr size_t kItems = 256;
constexpr size_t kWarp = 32;       // barriers of a team count whole warps
constexpr size_t kAlignment = 64;  // of a team's local memory, the size of the widest vector
constexpr size_t kReserve = 1024;  // bytes of local memory that drivers may need
constexpr size_t kListStep = 512;  // words by which the list's buffer grows
constexpr size_t kCounters = 16;   // that fit a cache line of a CPU
// Limits the characters of all kernels. NVIDIA's driver compiles a program in one thread, 20 us a
// character, so a large network becomes several persistent kernels for several compiler processes.
// Ten launches in place of two cost at most 2 %.
constexpr size_t kMostText = 100000;

// The words of a list entry; arguments follow from kArguments on.
enum Word : size_t { kKernel, kGroups, kGroupsX, kGroupsY, kLength, kArguments };

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
      call +=
          "*(PK_LIST const " + std::string(argument.type) + "*)(at + " + std::to_string(word) + ")";
    word += words_of(argument);
  }
  return call;
}

// Returns the function that calls one kernel for a work-item.
std::string entry_text(const KernelSpec& spec) {
  return R"(inline __attribute__((always_inline)) void FN(entry)(
    __global uchar *b0, __global uchar *b1, __global uchar *b2, __local const int *at,
    int group, int item, int team, __local uchar *shared) {
  const int nx = )" +
         at(kGroupsX) + ", ny = " + at(kGroupsY) + R"(;
  FN(body)((int4)(group % nx, group / nx % ny, group / nx / ny, nx), item, team, shared)" +
         arguments_text(spec) + ");\n}\n";
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
      FN(body)((int4)(group % nx, group / nx % ny, group / nx / ny, nx), item, 0, 0)" +
         arguments_text(spec) + ");\n}\n";
}

}  // namespace

size_t PersistentKernel::counter_words(unsigned groups) const {
  return launch_counters > 0 ? kCounters + launch_counters * (1 + groups) : 1;
}

bool shares_work(const DeviceTraits& traits) {
  return traits.grid_barrier == GridBarrier::single && traits.is_cpu &&
         traits.vendor == Vendor::pocl;
}

LaunchTime launch_time(const KernelSpec& spec, double products, unsigned compute_units) {
  const size_t items = spec.global[0] * spec.global[1] * spec.global[2];
  const auto rounds =
      static_cast<double>((items + kItems * compute_units - 1) / (kItems * compute_units));
  const double share = products / compute_units;
  return {4.8 + 0.96 * rounds + 1.9e-6 * share, 1.53 * rounds + 1.19e-5 * share};
}

std::string reject_persistent(const KernelSpec& spec, const DeviceTraits& traits) {
  if (traits.grid_barrier == GridBarrier::none) return "the device has no grid-wide barrier";
  if (spec.own) return "a kernel of the user's";
  for (const Argument& argument : spec.arguments)
    if (argument.kind == Argument::Kind::image) return "images";
  if (traits.grid_barrier == GridBarrier::single)
    return spec.shared > 0 ? "work-items that share memory" : "";
  if (spec.marked_ptx) return "instructions that need patched PTX";
  const size_t team = team_size(spec);
  if (team > std::min(kItems, traits.max_work_group) || team % kWarp != 0)
    return "work-groups of " + std::to_string(team) + " work-items";
  if (round_up(spec.shared, kAlignment) * (kItems / team) +
          4 * round_up(words_of(spec), kListStep) + kReserve >
      traits.local_memory)
    return "its local memory";
  return "";
}

PersistentKernel make_persistent(
    std::span<const KernelSpec* const> launches,
    const std::function<ArgumentPlace(size_t launch, const Argument& argument)>& place,
    const DeviceTraits& traits, size_t& count) {
  PersistentKernel result;
  const bool single = traits.grid_barrier == GridBarrier::single;
  result.items = single ? 1 : kItems;

  Instantiations functions;
  std::map<std::string, size_t> known;  // indices of kernels by name
  std::string kernels, cases;
  size_t shared = kAlignment;
  count = 0;
  for (const KernelSpec* spec : launches) {
    const size_t team = team_size(*spec), teams = result.items / team;
    const size_t own = round_up(spec->shared, kAlignment);
    const size_t words = round_up(result.list.size() + words_of(*spec), kListStep);
    if (!single && std::max(shared, own * teams) + 4 * words + kReserve > traits.local_memory)
      break;
    const auto reachable = [&](const Argument& argument) {
      return argument.kind == Argument::Kind::value ||
             place(count, argument).offset / static_cast<int64_t>(argument.unit) <=
                 std::numeric_limits<int32_t>::max();
    };
    if (!std::all_of(spec->arguments.begin(), spec->arguments.end(), reachable)) break;

    KernelSpec called = *spec;
    for (const auto& [name, value] :
         {std::pair{"PK_X", spec->local[0]}, std::pair{"PK_Y", spec->local[1]},
          std::pair{"PK_Z", spec->local[2]}, std::pair{"PK_SHARED", spec->shared}})
      called.defines.emplace_back(name, std::to_string(value));
    const Instantiation& function =
        functions.of_function(called, single ? loop_text(*spec) : entry_text(*spec));
    const bool fresh = !known.contains(function.kernel_name);
    if (fresh && !single && count > 0 && kernels.size() + function.text.size() > kMostText) break;
    shared = std::max(shared, own * teams);
    const auto found = known.try_emplace(function.kernel_name, known.size()).first;
    if (fresh) {
      kernels += function.text;
      const std::string size = std::to_string(team), number = std::to_string(found->second);
      // If the work-group is not a whole number of teams, the last work-items do nothing.
      if (single)
        cases += " case " + number + ": entry_" + function.kernel_name +
                 "(b0, b1, b2, list + at, from, to); break;";
      else
        cases +=
            " case " + number + ": for (int g = item / " + size + " * all + me; (item < " +
            std::to_string(teams * team) + ") & (g < groups); g += all * " + std::to_string(teams) +
            ") { entry_" + function.kernel_name + "(b0, b1, b2, list + at, g, item % " + size +
            ", item / " + size + ", shared + item / " + size + " * " + std::to_string(own) + "); " +
            // Waits, because the next work-group must not overwrite what slower work-items of this
            // one read.
            (own != 0 ? "pk_barrier_team(item / " + size + ", " + size + "); " : "") + "} break;";
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
  if (shares_work(traits)) result.launch_counters = round_up(std::max<size_t>(count, 1), kCounters);
  result.barriers = count && !single ? static_cast<unsigned>(count - 1) : 0;

  std::string text =
      "#define PK_PTX " + std::to_string(!single) +
      "\n#define PK_BUFFER(i) ((__global void*)((i) == 0 ? b0 : (i) == 1 ? b1 : b2))\n"
      "#line 1 \"persistent.cl\"\n" +
      std::string(kernel_source("persistent.cl")) + kernels;
  for (const auto& [name, value] : {std::pair{"PK_ITEMS", result.items},
                                    {"PK_ROOM", round_up(result.list.size(), kListStep)},
                                    {"PK_LOCAL", shared},
                                    {"PK_LENGTH", kLength},
                                    {"PK_GROUPS", kGroups},
                                    {"PK_CORES", result.launch_counters > 0},
                                    {"PK_HEAD", kCounters},
                                    {"PK_STRIDE", result.launch_counters}})
    text += "#define " + std::string(name) + " " + std::to_string(value) + "\n";
  text += "#define PK_MEET " + std::to_string(kMeet) + "\n#define PK_CASES" + cases +
          "\n#line 1 \"persistent_main.cl\"\n" + std::string(kernel_source("persistent_main.cl"));
  result.program.kernel_name = "persistent_" + hex(fnv1a(text));
  result.program.text = "#define PK_NAME " + result.program.kernel_name + "\n" + text;
  // With an empty list the kernel does nothing.
  if (single)
    result.program.launches.push_back(
        {{1, 1, 1},
         {1, 1, 1},
         {Argument::input_address(0, 4), Argument::input_address(1, 4),
          Argument::input_address(2, 4), Argument::input_address(3, 4), Argument::value(0),
          Argument::input_address(4, 4), Argument::value(0)}});
  return result;
}

namespace {

struct Shares {
  std::mutex mutex;
  std::map<std::string, unsigned> taken;  // by device id
};

Shares& shares() {
  static Shares* const all = new Shares;  // never destroyed, because holders may outlive statics
  return *all;
}

}  // namespace

GroupShare::GroupShare(const Device& device, unsigned wanted, unsigned least)
    : device_(device.info.id) {
  const std::lock_guard lock(shares().mutex);
  unsigned& taken = shares().taken[device_];
  const unsigned left = device.info.compute_units - std::min(taken, device.info.compute_units);
  groups_ = std::min(wanted, left);
  if (groups_ < least) groups_ = 0;
  taken += groups_;
}

GroupShare::~GroupShare() {
  const std::lock_guard lock(shares().mutex);
  shares().taken[device_] -= groups_;
}

}  // namespace clinfer::ocl
