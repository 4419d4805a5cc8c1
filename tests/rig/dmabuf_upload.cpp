// dmabuftestupload: turns NV12 frames in system memory into memory:DMABuf, as a decoder gives them:
// from a pool, with padding, and if wanted each plane in a memory of its own, or behind a gap. The
// descriptors are of memfds, which a GstDmaBufAllocator takes for what they are called. It writes
// by the descriptor, so that every map is somebody else's; they are counted.
#include "tests/rig/dmabuf_upload.h"

#include <gst/allocators/gstdmabuf.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>

#include "tests/rig/uploading.h"

namespace {

struct Allocator {
  GstDmaBufAllocator parent;
};
struct AllocatorClass {
  GstDmaBufAllocatorClass parent_class;
};
G_DEFINE_TYPE(Allocator, allocator, GST_TYPE_DMABUF_ALLOCATOR)

std::atomic<guint> maps{0};
GstMemoryMapFullFunction map_before;

GstMemory* allocate(GstAllocator* self, gsize size, GstAllocationParams*) {
  const int fd = memfd_create("dmabuf", MFD_CLOEXEC);
  if (fd < 0 || ftruncate(fd, static_cast<off_t>(size)) != 0) return nullptr;
  return gst_dmabuf_allocator_alloc(self, fd, size);  // owns fd
}

void allocator_class_init(AllocatorClass* klass) { GST_ALLOCATOR_CLASS(klass)->alloc = allocate; }

void allocator_init(Allocator* self) {
  GstAllocator* base = GST_ALLOCATOR(self);
  GST_OBJECT_FLAG_UNSET(base, GST_ALLOCATOR_FLAG_CUSTOM_ALLOC);
  map_before = base->mem_map_full;
  base->mem_map_full = [](GstMemory* memory, GstMapInfo* info, gsize size) {
    ++maps;
    return map_before(memory, info, size);
  };
}

struct Upload {
  GstBaseTransform parent;
  GstVideoInfo in;
  guint padding, gap;
  gboolean split;
};
struct UploadClass {
  GstBaseTransformClass parent_class;
};
G_DEFINE_TYPE(Upload, upload, GST_TYPE_BASE_TRANSFORM)

#define UPLOAD(object) (reinterpret_cast<Upload*>(object))

enum { kPropPadding = 1, kPropGap, kPropSplit, kPropMaps };

GstStaticPadTemplate sink_template = GST_STATIC_PAD_TEMPLATE(
    "sink", GST_PAD_SINK, GST_PAD_ALWAYS, GST_STATIC_CAPS(GST_VIDEO_CAPS_MAKE("{ NV12, BGRx }")));
GstStaticPadTemplate src_template = GST_STATIC_PAD_TEMPLATE(
    "src", GST_PAD_SRC, GST_PAD_ALWAYS,
    GST_STATIC_CAPS(GST_VIDEO_CAPS_MAKE_WITH_FEATURES("memory:DMABuf", "{ NV12, BGRx }")));

GstCaps* transform_caps(GstBaseTransform*, GstPadDirection direction, GstCaps* caps,
                        GstCaps* filter) {
  return clinfer::upload_caps(direction, caps, filter, "memory:DMABuf");
}

gboolean set_caps(GstBaseTransform* transform, GstCaps* in, GstCaps*) {
  return gst_video_info_from_caps(&UPLOAD(transform)->in, in);
}

gboolean decide_allocation(GstBaseTransform* transform, GstQuery* query) {
  Upload* self = UPLOAD(transform);
  GstCaps* caps = nullptr;
  gst_query_parse_allocation(query, &caps, nullptr);
  while (gst_query_get_n_allocation_pools(query) > 0)
    gst_query_remove_nth_allocation_pool(query, 0);
  auto* source = static_cast<GstAllocator*>(g_object_new(allocator_get_type(), nullptr));
  gst_object_ref_sink(source);
  GstBufferPool* pool = gst_video_buffer_pool_new();
  GstStructure* config = gst_buffer_pool_get_config(pool);
  const auto size = static_cast<guint>(GST_VIDEO_INFO_SIZE(&self->in));
  gst_buffer_pool_config_set_params(config, caps, size, 2, 0);
  gst_buffer_pool_config_set_allocator(config, source, nullptr);
  gst_buffer_pool_config_add_option(config, GST_BUFFER_POOL_OPTION_VIDEO_META);
  if (self->padding > 1) {
    GstVideoAlignment alignment = clinfer::padding_to(self->padding, self->in);
    gst_buffer_pool_config_add_option(config, GST_BUFFER_POOL_OPTION_VIDEO_ALIGNMENT);
    gst_buffer_pool_config_set_video_alignment(config, &alignment);
  }
  const bool ready = gst_buffer_pool_set_config(pool, config);
  gst_query_add_allocation_pool(query, pool, size, 2, 0);
  gst_object_unref(source);
  gst_object_unref(pool);
  return ready;  // not the parent's: it would configure the pool anew
}

// Gives a buffer memories of its own, of one plane or of all, each behind the gap.
void replace_memory(const Upload* self, GstBuffer* buffer) {
  const GstVideoMeta* meta = gst_buffer_get_video_meta(buffer);
  auto* allocator = GST_ALLOCATOR(gst_object_ref(gst_buffer_peek_memory(buffer, 0)->allocator));
  const gsize size = gst_buffer_get_size(buffer);
  gst_buffer_remove_all_memory(buffer);
  const guint parts = self->split ? meta->n_planes : 1;
  for (guint p = 0; p < parts; ++p) {
    const gsize bytes =
        (p + 1 < parts ? meta->offset[p + 1] : size) - (p > 0 ? meta->offset[p] : 0);
    GstMemory* larger = gst_allocator_alloc(allocator, self->gap + bytes, nullptr);
    gst_buffer_append_memory(buffer,
                             gst_memory_share(larger, self->gap, static_cast<gssize>(bytes)));
    gst_memory_unref(larger);
  }
  gst_object_unref(allocator);
}

GstFlowReturn transform(GstBaseTransform* transform, GstBuffer* in, GstBuffer* out) {
  Upload* self = UPLOAD(transform);
  GstVideoFrame frame;
  if (!gst_video_frame_map(&frame, &self->in, in, GST_MAP_READ)) return GST_FLOW_ERROR;
  GstVideoMeta* meta = gst_buffer_get_video_meta(out);
  bool written = true;
  if (self->gap > 0 || self->split) replace_memory(self, out);
  for (guint p = 0; p < GST_VIDEO_FRAME_N_PLANES(&frame); ++p) {
    guint at = 0, count = 0;
    gsize begin = 0;
    gst_buffer_find_memory(out, meta->offset[p], 1, &at, &count, &begin);
    GstMemory* memory = gst_buffer_peek_memory(out, at);
    const int target = gst_dmabuf_memory_get_fd(memory);
    const int rows = GST_VIDEO_FRAME_COMP_HEIGHT(&frame, p);
    const auto bytes = static_cast<size_t>(GST_VIDEO_FRAME_COMP_WIDTH(&frame, p) *
                                           GST_VIDEO_FRAME_COMP_PSTRIDE(&frame, p));
    for (int row = 0; row < rows; ++row)
      written &=
          pwrite(target,
                 static_cast<guint8*>(GST_VIDEO_FRAME_PLANE_DATA(&frame, p)) +
                     row * GST_VIDEO_FRAME_PLANE_STRIDE(&frame, p),
                 bytes, static_cast<off_t>(memory->offset + begin) + row * meta->stride[p]) ==
          static_cast<ssize_t>(bytes);
  }
  gst_video_frame_unmap(&frame);
  if (written) return GST_FLOW_OK;
  GST_ELEMENT_ERROR(self, RESOURCE, WRITE, ("the frame does not fit its memory"), (nullptr));
  return GST_FLOW_ERROR;
}

void set_property(GObject* object, guint id, const GValue* value, GParamSpec*) {
  Upload* self = UPLOAD(object);
  if (id == kPropSplit)
    self->split = g_value_get_boolean(value);
  else
    (id == kPropPadding ? self->padding : self->gap) = g_value_get_uint(value);
}

void get_property(GObject* object, guint id, GValue* value, GParamSpec*) {
  const Upload* self = UPLOAD(object);
  if (id == kPropSplit)
    g_value_set_boolean(value, self->split);
  else
    g_value_set_uint(value, id == kPropMaps      ? maps.load()
                            : id == kPropPadding ? self->padding
                                                 : self->gap);
}

void upload_class_init(UploadClass* klass) {
  auto* object = G_OBJECT_CLASS(klass);
  auto* element = GST_ELEMENT_CLASS(klass);
  auto* transform_class = GST_BASE_TRANSFORM_CLASS(klass);
  object->set_property = set_property;
  object->get_property = get_property;
  const auto flags = static_cast<GParamFlags>(G_PARAM_READWRITE | G_PARAM_STATIC_STRINGS);
  g_object_class_install_property(
      object, kPropPadding,
      g_param_spec_uint("padding", "Padding", "Planes have sides that are multiples of this", 1,
                        256, 1, flags));
  g_object_class_install_property(
      object, kPropGap,
      g_param_spec_uint("gap", "Gap", "Bytes before the frame in its memory, which is a new one", 0,
                        1 << 20, 0, flags));
  g_object_class_install_property(
      object, kPropSplit,
      g_param_spec_boolean("split", "Split", "Each plane is in a memory of its own, a new one",
                           FALSE, flags));
  g_object_class_install_property(
      object, kPropMaps,
      g_param_spec_uint("maps", "Maps", "How often frames of this process were mapped", 0,
                        G_MAXUINT, 0,
                        static_cast<GParamFlags>(G_PARAM_READABLE | G_PARAM_STATIC_STRINGS)));
  gst_element_class_set_static_metadata(element, "Test DMA-BUFs", "Filter/Video",
                                        "Frames to memory:DMABuf", "clinfer developers");
  gst_element_class_add_static_pad_template(element, &sink_template);
  gst_element_class_add_static_pad_template(element, &src_template);
  transform_class->transform_caps = transform_caps;
  transform_class->set_caps = set_caps;
  transform_class->get_unit_size = clinfer::unit_size;
  transform_class->transform_size = clinfer::transform_size;
  transform_class->decide_allocation = decide_allocation;
  transform_class->transform = transform;
}

void upload_init(Upload* self) { self->padding = 1; }

}  // namespace

gboolean rig_register_dmabuf_upload(GstPlugin* plugin) {
  return gst_element_register(plugin, "dmabuftestupload", GST_RANK_NONE, upload_get_type());
}
