// Chooses work-groups and memory of the kernels that sort and suppress boxes.
#include "kernels/detection/box_lists.h"

#include <algorithm>
#include <bit>

#include "kernels/shape_util.h"

namespace clinfer {

namespace {

// More work-items would wait longer for each other than they save.
constexpr size_t kMostLocal = 512;
constexpr size_t kBeside = 6 << 10;  // bytes of local memory for data other than keys
constexpr size_t kLeastPart = 256;   // keys
constexpr size_t kMostPart = 4096;
constexpr size_t kMostMemory = 256 << 20;  // bytes

// Returns the number of keys that are sorted at a time in local memory.
size_t part(const DeviceTraits& traits) {
  const size_t keys = traits.local_memory < kBeside ? 0 : (traits.local_memory - kBeside) / 8;
  return std::min(std::bit_floor(keys), kMostPart);
}

// Return the bytes of parts of FN(Space) in common/boxes.cl for `local` work-items: to suppress
// boxes, and to sort `room` keys.
size_t near_bytes(size_t local) {
  const size_t words = local / 32;
  return (local * (16 + 8 + 4) + 4 * (local * (words + 1) / 2 + 2 * words + 2) + 15) / 16 * 16;
}
size_t short_bytes(size_t local, size_t room) { return 4 * (4 + 2) * local + 2 * 8 * room; }

size_t space_bytes(const DeviceTraits& traits, size_t local) {
  return std::max(8 * part(traits), near_bytes(local));
}

}  // namespace

int64_t ListMemory::add(int64_t bytes) {
  const int64_t at = units_;
  units_ += ceil_div(bytes, 2 * kUnit) * 2;
  return at;
}

int64_t list_room(int64_t count) {
  return static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(std::max<int64_t>(count, 2))));
}

std::string reject_lists(const OpDesc& desc, const DeviceTraits& traits, size_t inputs,
                         int64_t boxes, const ListMemory& memory) {
  // PoCL on two cores takes 0.5 to 50 times as long as evaluate() (test BoxLists.Speed).
  if (traits.is_cpu) return "a CPU is faster at it on the host";
  if (!desc.tail.empty()) return "takes no tail";
  for (size_t i = 0; i < inputs; ++i)
    if (desc.inputs[i].type != ElementType::f32 && desc.inputs[i].type != ElementType::f16)
      return "takes f32 and f16 only";
  for (const TensorDesc& output : desc.outputs) {
    if (is_float(output.type) && size_of(output.type) > 4) return "gives f32 and f16 only";
    if (output.elements() == 0) return "an output is empty";
    if (!output.is_row_major()) return "gives dense rows only";
  }
  if (boxes == 0) return "there are no boxes";
  if (memory.bytes() > kMostMemory) return "its lists take too much memory";
  if (traits.max_work_group < 64 || part(traits) < kLeastPart)
    return "its work-groups are too small";
  return "";
}

std::vector<TuningPoint> list_space(const OpDesc&, const DeviceTraits& traits) {
  std::vector<TuningPoint> space;
  for (int local : {64, 128, 256, 512, 1024})
    if (static_cast<size_t>(local) <= traits.max_work_group &&
        near_bytes(static_cast<size_t>(local)) + kBeside <= traits.local_memory)
      space.push_back({{{"LOCAL", local}}});
  return space;
}

TuningPoint list_heuristic(const OpDesc& desc, const DeviceTraits& traits) {
  TuningPoint chosen;
  for (const TuningPoint& point : list_space(desc, traits))
    if (static_cast<size_t>(point["LOCAL"]) <= kMostLocal) chosen = point;
  return chosen;
}

void set_lists(KernelSpec& spec, int64_t groups, const DeviceTraits& traits,
               const TuningPoint& point, size_t words, int64_t listed) {
  const auto local = static_cast<size_t>(point["LOCAL"]);
  spec.defines.emplace_back("LOCAL", std::to_string(local));
  spec.defines.emplace_back("PART", std::to_string(part(traits)));
  const auto room = static_cast<size_t>(list_room(listed));
  const bool is_short = listed > 0 && short_bytes(local, room) <= space_bytes(traits, local);
  spec.defines.emplace_back("SHORT", std::to_string(is_short ? room : 0));
  spec.defines.emplace_back("WORDS", std::to_string(words));
  // The shared memory is laid out as FN(List) in common/boxes.cl expects it.
  spec.shared = (space_bytes(traits, local) + 4 * (4 + words) + 15) / 16 * 16;
  spec.local = {local, 1, 1};
  spec.global = {static_cast<size_t>(groups) * local, 1, 1};
}

}  // namespace clinfer
