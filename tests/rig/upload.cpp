// vatestupload: turns NV12 or P010 frames in system memory into surfaces of the rig's VA driver, as a
// decoder gives them: from a GstVaPool, with the display in a GstContext, and with the surface
// larger than the picture if wanted. It writes by a private way of the driver's, so that every map
// and vaGetImage that is counted is somebody else's.
#include <gst/va/gstva.h>
#include <gst/va/gstvadisplay_wrapped.h>

#include "tests/rig/display.h"
#include "tests/rig/dmabuf_upload.h"
#include "tests/rig/rig.h"
#include "tests/rig/uploading.h"

struct RigUpload {
  GstBaseTransform parent;
  GstVaDisplay* display;
  GstVideoInfo in;
  guint display_number, padding, border;
};

struct RigUploadClass {
  GstBaseTransformClass parent_class;
};

G_DEFINE_TYPE(RigUpload, rig_upload, GST_TYPE_BASE_TRANSFORM)

#define UPLOAD(object) (reinterpret_cast<RigUpload*>(object))

namespace {

enum { kPropDisplay = 1, kPropPadding, kPropBorder };

GstStaticPadTemplate sink_template =
    GST_STATIC_PAD_TEMPLATE("sink", GST_PAD_SINK, GST_PAD_ALWAYS,
                            GST_STATIC_CAPS(GST_VIDEO_CAPS_MAKE("{ NV12, P010_10LE }")));
GstStaticPadTemplate src_template =
    GST_STATIC_PAD_TEMPLATE("src", GST_PAD_SRC, GST_PAD_ALWAYS,
                            GST_STATIC_CAPS(GST_VIDEO_CAPS_MAKE_WITH_FEATURES(
                                GST_CAPS_FEATURE_MEMORY_VA, "{ NV12, P010_10LE }")));

gboolean start(GstBaseTransform* transform) {
  RigUpload* self = UPLOAD(transform);
  void* display = rig_va_display(self->display_number);
  if (display == nullptr) {
    GST_ELEMENT_ERROR(self, RESOURCE, NOT_FOUND, ("the rig's VA driver cannot be loaded"),
                      ("see LIBVA_DRIVERS_PATH"));
    return FALSE;
  }
  self->display = gst_va_display_wrapped_new(display);
  gst_va_element_propagate_display_context(GST_ELEMENT(self), self->display);
  return TRUE;
}

gboolean stop(GstBaseTransform* transform) {
  gst_clear_object(&UPLOAD(transform)->display);
  return TRUE;
}

GstCaps* transform_caps(GstBaseTransform*, GstPadDirection direction, GstCaps* caps,
                        GstCaps* filter) {
  return clinfer::upload_caps(direction, caps, filter, GST_CAPS_FEATURE_MEMORY_VA);
}

gboolean set_caps(GstBaseTransform* transform, GstCaps* in, GstCaps*) {
  return gst_video_info_from_caps(&UPLOAD(transform)->in, in);
}

gboolean decide_allocation(GstBaseTransform* transform, GstQuery* query) {
  RigUpload* self = UPLOAD(transform);
  GstCaps* caps = nullptr;
  gst_query_parse_allocation(query, &caps, nullptr);
  guint least = 2, most = 0;
  if (gst_query_get_n_allocation_pools(query) > 0)
    gst_query_parse_nth_allocation_pool(query, 0, nullptr, nullptr, &least, &most);
  while (gst_query_get_n_allocation_pools(query) > 0)
    gst_query_remove_nth_allocation_pool(query, 0);
  while (gst_query_get_n_allocation_params(query) > 0)
    gst_query_remove_nth_allocation_param(query, 0);

  // A border is part of the surface's picture, as it is of a stream that is cropped.
  GstCaps* coded = gst_caps_copy(caps);
  gst_caps_set_simple(
      coded, "width", G_TYPE_INT,
      GST_VIDEO_INFO_WIDTH(&self->in) + 2 * static_cast<int>(self->border), "height", G_TYPE_INT,
      GST_VIDEO_INFO_HEIGHT(&self->in) + 2 * static_cast<int>(self->border), nullptr);
  GstVideoInfo info;
  gst_video_info_from_caps(&info, coded);
  GArray* formats = g_array_new(FALSE, FALSE, sizeof(GstVideoFormat));
  const GstVideoFormat format = GST_VIDEO_INFO_FORMAT(&self->in);
  g_array_append_val(formats, format);
  GstAllocator* allocator = gst_va_allocator_new(self->display, formats);
  GstAllocationParams params;
  gst_allocation_params_init(&params);
  GstBufferPool* pool = gst_va_pool_new();
  GstStructure* config = gst_buffer_pool_get_config(pool);
  gst_buffer_pool_config_set_params(config, coded, static_cast<guint>(GST_VIDEO_INFO_SIZE(&info)),
                                    MAX(least, 2u), most);
  gst_buffer_pool_config_set_allocator(config, allocator, &params);
  gst_buffer_pool_config_add_option(config, GST_BUFFER_POOL_OPTION_VIDEO_META);
  gst_buffer_pool_config_set_va_allocation_params(config, 0, GST_VA_FEATURE_AUTO);
  if (self->padding > 1) {
    GstVideoAlignment alignment = clinfer::padding_to(self->padding, info);
    gst_buffer_pool_config_add_option(config, GST_BUFFER_POOL_OPTION_VIDEO_ALIGNMENT);
    gst_buffer_pool_config_set_va_alignment(config, &alignment);
  }
  gst_caps_unref(coded);
  const bool ready = gst_buffer_pool_set_config(pool, config);
  if (ready) {
    gst_query_add_allocation_param(query, allocator, &params);
    gst_query_add_allocation_pool(query, pool, static_cast<guint>(GST_VIDEO_INFO_SIZE(&info)),
                                  MAX(least, 2u), most);
  }
  gst_object_unref(allocator);
  gst_object_unref(pool);
  return ready;  // not the parent's: it would configure the pool for the caps' size
}

GstFlowReturn transform(GstBaseTransform* transform, GstBuffer* in, GstBuffer* out) {
  RigUpload* self = UPLOAD(transform);
  GstVideoFrame frame;
  if (!gst_video_frame_map(&frame, &self->in, in, GST_MAP_READ)) return GST_FLOW_ERROR;
  const RigPicture picture = {
      {static_cast<guint8*>(GST_VIDEO_FRAME_PLANE_DATA(&frame, 0)),
       static_cast<guint8*>(GST_VIDEO_FRAME_PLANE_DATA(&frame, 1))},
      {GST_VIDEO_FRAME_PLANE_STRIDE(&frame, 0), GST_VIDEO_FRAME_PLANE_STRIDE(&frame, 1)},
      self->border,
      self->border,
      static_cast<guint>(GST_VIDEO_FRAME_WIDTH(&frame)),
      static_cast<guint>(GST_VIDEO_FRAME_HEIGHT(&frame))};
  void* display = gst_va_display_get_va_dpy(self->display);
  const auto write = rig_function<RigWrite>(display, "rig_write");
  const bool written = write(display, gst_va_buffer_get_surface(out), &picture) == 0;
  gst_video_frame_unmap(&frame);
  if (!written) {
    GST_ELEMENT_ERROR(self, RESOURCE, WRITE, ("the frame does not fit the surface"), (nullptr));
    return GST_FLOW_ERROR;
  }
  if (self->border > 0) {
    GstVideoCropMeta* crop = gst_buffer_get_video_crop_meta(out);
    if (crop == nullptr) crop = gst_buffer_add_video_crop_meta(out);
    crop->x = crop->y = self->border;
    crop->width = picture.width;
    crop->height = picture.height;
  }
  return GST_FLOW_OK;
}

gboolean query(GstBaseTransform* transform, GstPadDirection direction, GstQuery* query) {
  RigUpload* self = UPLOAD(transform);
  if (GST_QUERY_TYPE(query) == GST_QUERY_CONTEXT && self->display != nullptr &&
      gst_va_handle_context_query(GST_ELEMENT(self), query, self->display))
    return TRUE;
  return GST_BASE_TRANSFORM_CLASS(rig_upload_parent_class)->query(transform, direction, query);
}

guint* number_of(RigUpload* self, guint id) {
  return id == kPropDisplay   ? &self->display_number
         : id == kPropPadding ? &self->padding
                              : &self->border;
}

void set_property(GObject* object, guint id, const GValue* value, GParamSpec*) {
  *number_of(UPLOAD(object), id) = g_value_get_uint(value);
}

void get_property(GObject* object, guint id, GValue* value, GParamSpec*) {
  g_value_set_uint(value, *number_of(UPLOAD(object), id));
}

}  // namespace

static void rig_upload_class_init(RigUploadClass* klass) {
  auto* object = G_OBJECT_CLASS(klass);
  auto* element = GST_ELEMENT_CLASS(klass);
  auto* transform_class = GST_BASE_TRANSFORM_CLASS(klass);
  object->set_property = set_property;
  object->get_property = get_property;
  const auto flags = static_cast<GParamFlags>(G_PARAM_READWRITE | G_PARAM_STATIC_STRINGS);
  g_object_class_install_property(
      object, kPropDisplay,
      g_param_spec_uint("display", "Display", "Which of the rig's VA displays", 0, 3, 0, flags));
  g_object_class_install_property(
      object, kPropPadding,
      g_param_spec_uint("padding", "Padding", "Surfaces have sides that are multiples of this", 1,
                        256, 1, flags));
  g_object_class_install_property(
      object, kPropBorder,
      g_param_spec_uint("border", "Border",
                        "Rows and columns around the picture that a crop meta takes away; even", 0,
                        256, 0, flags));
  gst_element_class_set_static_metadata(element, "Test surfaces", "Filter/Video",
                                        "NV12 and P010 frames to surfaces of the rig's VA driver",
                                        "clinfer developers");
  gst_element_class_add_static_pad_template(element, &sink_template);
  gst_element_class_add_static_pad_template(element, &src_template);
  transform_class->start = start;
  transform_class->stop = stop;
  transform_class->transform_caps = transform_caps;
  transform_class->set_caps = set_caps;
  transform_class->get_unit_size = clinfer::unit_size;
  transform_class->transform_size = clinfer::transform_size;
  transform_class->decide_allocation = decide_allocation;
  transform_class->transform = transform;
  transform_class->query = query;
}

static void rig_upload_init(RigUpload* self) { self->padding = 1; }

static gboolean plugin_init(GstPlugin* plugin) {
  return gst_element_register(plugin, "vatestupload", GST_RANK_NONE, rig_upload_get_type()) &&
         rig_register_dmabuf_upload(plugin);
}

#define PACKAGE "clinfer"
GST_PLUGIN_DEFINE(GST_VERSION_MAJOR, GST_VERSION_MINOR, clinferrig, "Elements of the test rig",
                  plugin_init, "1", "MIT", "clinfer", "clinfer")
