// Offers frame memory as GstMemory.
#include "gst/frames/frame_memory.h"

#include <gst/video/gstvideopool.h>

#include <atomic>
#include <cstring>
#include <new>

#include "gst/base/handle.h"
#include "gst/base/instance.h"
#include "gst/base/log.h"

namespace {

using clinfer::FrameMemory;

constexpr const char* kMemoryType = "clinfer-frame-memory";

// Limits pinned memory, which cannot be swapped out: a queue of raw frames, or a growing pool, must
// not use up the host's memory.
constexpr gsize kMostBytes = gsize{1} << 29;

struct Memory {
  GstMemory base;  // first, because GStreamer uses this address
  std::shared_ptr<FrameMemory> frames;
  std::byte* data = nullptr;  // aligned
};

struct State {
  std::weak_ptr<clinfer::CompiledModel> model;
  std::atomic<gsize> bytes{0};  // of all memories that exist
};

}  // namespace

struct GstClinferAllocator {
  GstAllocator parent;
  State* state;  // null if there was no memory for it
};

struct GstClinferAllocatorClass {
  GstAllocatorClass parent_class;
};

G_DEFINE_TYPE(GstClinferAllocator, gst_clinfer_allocator, GST_TYPE_ALLOCATOR)

namespace {

Memory* memory_of(GstMemory* memory) { return reinterpret_cast<Memory*>(memory); }
State& state_of(GstAllocator* allocator) {
  return clinfer::state_of(reinterpret_cast<GstClinferAllocator*>(allocator)->state);
}

Memory* make_memory(GstAllocator* allocator, gsize size, const GstAllocationParams& params) {
  State& state = state_of(allocator);
  const std::shared_ptr<clinfer::CompiledModel> model = state.model.lock();
  if (model == nullptr) return nullptr;
  const gsize align = params.align | gst_memory_alignment;
  const gsize bytes = params.prefix + size + params.padding;
  if (state.bytes + bytes + align > kMostBytes) return nullptr;
  auto memory = std::make_unique<Memory>();
  memory->frames = model->allocate_frame_memory(bytes + align);
  state.bytes += memory->frames->bytes();
  const auto address = reinterpret_cast<guintptr>(memory->frames->data());
  memory->data = memory->frames->data() + ((0 - address) & align);
  gst_memory_init(&memory->base, params.flags, allocator, nullptr, bytes, align, params.prefix,
                  size);
  if ((params.flags & GST_MEMORY_FLAG_ZERO_PREFIXED) != 0)
    std::memset(memory->data, 0, params.prefix);
  if ((params.flags & GST_MEMORY_FLAG_ZERO_PADDED) != 0)
    std::memset(memory->data + params.prefix + size, 0, params.padding);
  return memory.release();
}

GstMemory* allocate(GstAllocator* allocator, gsize size, GstAllocationParams* params) {
  try {
    if (Memory* memory = make_memory(allocator, size, *params)) return &memory->base;
  } catch (const std::exception& error) {
    GST_CAT_INFO_OBJECT(clinfer_frames_debug, allocator, "system memory instead: %s", error.what());
  }
  return gst_allocator_alloc(nullptr, size, params);
}

void release(GstAllocator* allocator, GstMemory* memory) {
  if (memory->parent == nullptr) state_of(allocator).bytes -= memory_of(memory)->frames->bytes();
  delete memory_of(memory);
}

gpointer map(GstMemory* memory, gsize, GstMapFlags) { return memory_of(memory)->data; }
void unmap(GstMemory*) {}

GstMemory* share(GstMemory* memory, gssize offset, gssize size) {
  auto* part = new (std::nothrow) Memory{{}, memory_of(memory)->frames, memory_of(memory)->data};
  if (part == nullptr) return nullptr;  // GStreamer then copies instead
  GstMemory* whole = memory->parent != nullptr ? memory->parent : memory;
  const gsize rest = memory->size - static_cast<gsize>(offset);
  gst_memory_init(&part->base,
                  static_cast<GstMemoryFlags>(GST_MINI_OBJECT_FLAGS(whole) |
                                              GST_MINI_OBJECT_FLAG_LOCK_READONLY),
                  memory->allocator, whole, memory->maxsize, memory->align,
                  memory->offset + static_cast<gsize>(offset),
                  size == -1 ? rest : static_cast<gsize>(size));
  return &part->base;
}

// Copies to plain memory. Other elements, and not the device, read copies, so that they need no
// pinned memory, whose allocation is slow.
GstMemory* copy(GstMemory* memory, gssize offset, gssize size) {
  const gsize bytes =
      size == -1 ? memory->size - static_cast<gsize>(offset) : static_cast<gsize>(size);
  GstMemory* plain = gst_allocator_alloc(nullptr, bytes, nullptr);
  GstMapInfo mapped;
  if (!gst_memory_map(plain, &mapped, GST_MAP_WRITE)) {
    gst_memory_unref(plain);
    return nullptr;
  }
  std::memcpy(mapped.data, memory_of(memory)->data + memory->offset + offset, bytes);
  gst_memory_unmap(plain, &mapped);
  return plain;
}

// Returns whether an allocator is for plain memory. Allocators of elements may leave out the type
// (shmsink's does).
bool is_plain(GstAllocator* allocator) {
  return allocator == nullptr || g_strcmp0(allocator->mem_type, GST_ALLOCATOR_SYSMEM) == 0;
}

}  // namespace

static void gst_clinfer_allocator_init(GstClinferAllocator* self) {
  self->state = clinfer::make_state<State>();
  GstAllocator* allocator = GST_ALLOCATOR_CAST(self);
  allocator->mem_type = kMemoryType;
  allocator->mem_map = map;
  allocator->mem_unmap = unmap;
  allocator->mem_share = share;
  allocator->mem_copy = copy;
}

static void gst_clinfer_allocator_class_init(GstClinferAllocatorClass* klass) {
  auto* allocators = reinterpret_cast<GstAllocatorClass*>(klass);
  allocators->alloc = allocate;
  allocators->free = release;
  G_OBJECT_CLASS(klass)->finalize = [](GObject* object) {
    delete reinterpret_cast<GstClinferAllocator*>(object)->state;
    G_OBJECT_CLASS(gst_clinfer_allocator_parent_class)->finalize(object);
  };
}

namespace clinfer {

GstAllocator* new_frame_allocator(const std::shared_ptr<CompiledModel>& model) {
  Handle<GstAllocator> allocator(
      GST_ALLOCATOR_CAST(g_object_new(gst_clinfer_allocator_get_type(), nullptr)));
  gst_object_ref_sink(allocator.get());
  ::state_of(allocator.get()).model = model;
  return allocator.release();
}

const FrameMemory* frame_memory_of(GstBuffer* buffer) {
  if (gst_buffer_n_memory(buffer) != 1) return nullptr;
  GstMemory* memory = gst_buffer_peek_memory(buffer, 0);
  return gst_memory_is_type(memory, kMemoryType) ? memory_of(memory)->frames.get() : nullptr;
}

bool takes_any_memory(GstQuery* query) {
  for (guint i = 0; i < gst_query_get_n_allocation_params(query); ++i) {
    GstAllocator* allocator = nullptr;
    gst_query_parse_nth_allocation_param(query, i, &allocator, nullptr);
    const bool plain = is_plain(allocator);
    if (allocator != nullptr) gst_object_unref(allocator);
    if (!plain) return false;
  }
  for (guint i = 0; i < gst_query_get_n_allocation_pools(query); ++i) {
    GstBufferPool* pool = nullptr;
    gst_query_parse_nth_allocation_pool(query, i, &pool, nullptr, nullptr, nullptr);
    if (pool == nullptr) continue;
    // Accepts pools of exactly these types, which take any allocator.
    const GType type = G_OBJECT_TYPE(pool);
    gst_object_unref(pool);
    if (type != GST_TYPE_VIDEO_BUFFER_POOL && type != GST_TYPE_BUFFER_POOL) return false;
  }
  return true;
}

void propose_allocator(GstQuery* query, GstAllocator* allocator) {
  if (gst_query_get_n_allocation_params(query) == 0)
    return gst_query_add_allocation_param(query, allocator, nullptr);
  GstAllocationParams params;
  gst_query_parse_nth_allocation_param(query, 0, nullptr, &params);
  gst_query_set_nth_allocation_param(query, 0, allocator, &params);
}

}  // namespace clinfer
