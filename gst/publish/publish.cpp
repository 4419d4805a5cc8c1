// clpublish: one JSON line a frame, written and flushed at once, so that the file can be followed
// while it grows.
#include "gst/publish/publish.h"

#include <gst/base/gstbasetransform.h>
#include <gst/video/video.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>

#include "gst/base/guard.h"
#include "gst/base/properties.h"
#include "gst/meta/meta.h"
#include "gst/publish/result_line.h"

GST_DEBUG_CATEGORY_STATIC(clpublish_debug);
#define GST_CAT_DEFAULT clpublish_debug

namespace {

enum class Method { file };

struct PublishSettings {
  Method method = Method::file;
  std::string file_path = "-";
};

struct PublishState {
  PublishSettings settings;  // under the object lock
  GstVideoInfo info;
  std::FILE* file = nullptr;
  uint64_t frames = 0;
};

}  // namespace

struct GstClpublish {
  GstBaseTransform parent;
  PublishState* state;
};

struct GstClpublishClass {
  GstBaseTransformClass parent_class;
};

G_DEFINE_TYPE(GstClpublish, gst_clpublish, GST_TYPE_BASE_TRANSFORM)
GST_ELEMENT_REGISTER_DEFINE(clpublish, "clpublish", GST_RANK_NONE, gst_clpublish_get_type())

#define CLPUBLISH(object) (reinterpret_cast<GstClpublish*>(object))

namespace {

using clinfer::Property;

GstStaticPadTemplate sink_template = GST_STATIC_PAD_TEMPLATE("sink", GST_PAD_SINK, GST_PAD_ALWAYS,
                                                             GST_STATIC_CAPS("video/x-raw(ANY)"));
GstStaticPadTemplate src_template = GST_STATIC_PAD_TEMPLATE("src", GST_PAD_SRC, GST_PAD_ALWAYS,
                                                            GST_STATIC_CAPS("video/x-raw(ANY)"));

const std::vector<Property<PublishSettings>>& properties() {
  static const std::vector<Property<PublishSettings>> rows = {
      clinfer::choice<&PublishSettings::method>("method", "Method", "Where the results go",
                                                "GstClpublishMethod",
                                                {{Method::file, "JSON lines to a file", "file"}}),
      clinfer::text<&PublishSettings::file_path>(
          "file-path", "File path",
          "File for the JSON lines, overwritten at start (\"-\": standard output)")};
  return rows;
}

void set_property(GObject* object, guint id, const GValue* value, GParamSpec*) {
  PublishSettings& settings = CLPUBLISH(object)->state->settings;
  GST_OBJECT_LOCK(object);
  clinfer::property_of(properties(), id).set(settings, value);
  if (settings.file_path.empty()) settings.file_path = PublishSettings{}.file_path;
  GST_OBJECT_UNLOCK(object);
}

void get_property(GObject* object, guint id, GValue* value, GParamSpec*) {
  GST_OBJECT_LOCK(object);
  clinfer::property_of(properties(), id).get(CLPUBLISH(object)->state->settings, value);
  GST_OBJECT_UNLOCK(object);
}

void close_file(PublishState& state) {
  if (state.file != nullptr && state.file != stdout) std::fclose(state.file);
  state.file = nullptr;
}

void finalize(GObject* object) {
  close_file(*CLPUBLISH(object)->state);
  delete CLPUBLISH(object)->state;
  G_OBJECT_CLASS(gst_clpublish_parent_class)->finalize(object);
}

gboolean start(GstBaseTransform* transform) {
  return clinfer::guard(GST_ELEMENT(transform), FALSE, [&]() -> gboolean {
    PublishState& state = *CLPUBLISH(transform)->state;
    GST_OBJECT_LOCK(transform);
    const std::string path = state.settings.file_path;
    GST_OBJECT_UNLOCK(transform);
    state.frames = 0;
    state.file = path == "-" ? stdout : std::fopen(path.c_str(), "we");
    if (state.file == nullptr) {
      const std::string reason = std::strerror(errno);
      GST_ELEMENT_ERROR(transform, RESOURCE, OPEN_WRITE,
                        ("file-path %s cannot be written: %s", path.c_str(), reason.c_str()),
                        (nullptr));
      return FALSE;
    }
    return TRUE;
  });
}

gboolean stop(GstBaseTransform* transform) {
  close_file(*CLPUBLISH(transform)->state);
  return TRUE;
}

gboolean set_caps(GstBaseTransform* transform, GstCaps* in, GstCaps*) {
  GstVideoInfo& info = CLPUBLISH(transform)->state->info;
  if (gst_video_info_from_caps(&info, in)) return TRUE;
  // Formats that only a memory feature knows (DMA_DRM) still say their size.
  gint width = 0, height = 0;
  const GstStructure* structure = gst_caps_get_structure(in, 0);
  gst_video_info_init(&info);
  if (!gst_structure_get_int(structure, "width", &width) ||
      !gst_structure_get_int(structure, "height", &height))
    return FALSE;
  info.width = width;
  info.height = height;
  return TRUE;
}

GstFlowReturn transform_ip(GstBaseTransform* transform, GstBuffer* buffer) {
  return clinfer::guard(GST_ELEMENT(transform), GST_FLOW_ERROR, [&] {
    PublishState& state = *CLPUBLISH(transform)->state;
    clinfer::FrameFacts facts;
    facts.number = state.frames++;
    facts.width = GST_VIDEO_INFO_WIDTH(&state.info);
    facts.height = GST_VIDEO_INFO_HEIGHT(&state.info);
    if (const GstVideoCropMeta* crop = gst_buffer_get_video_crop_meta(buffer)) {
      facts.width = static_cast<int>(crop->width);
      facts.height = static_cast<int>(crop->height);
    }
    if (GST_BUFFER_PTS_IS_VALID(buffer)) {
      const guint64 time =
          gst_segment_to_stream_time(&transform->segment, GST_FORMAT_TIME, GST_BUFFER_PTS(buffer));
      facts.timestamp = GST_CLOCK_TIME_IS_VALID(time) ? time : GST_BUFFER_PTS(buffer);
    }
    const std::string line =
        clinfer::result_line(facts, clinfer::read_frame(buffer, facts.width, facts.height)) + '\n';
    if (std::fwrite(line.data(), 1, line.size(), state.file) != line.size() ||
        std::fflush(state.file) != 0) {
      const int code = errno;
      if (code == ENOSPC)
        GST_ELEMENT_ERROR(transform, RESOURCE, NO_SPACE_LEFT, ("no space left for the results"),
                          ("%s", std::strerror(code)));
      else
        GST_ELEMENT_ERROR(transform, RESOURCE, WRITE,
                          ("the results cannot be written: %s", std::strerror(code)), (nullptr));
      return GST_FLOW_ERROR;
    }
    return GST_FLOW_OK;
  });
}

}  // namespace

static void gst_clpublish_class_init(GstClpublishClass* klass) {
  GST_DEBUG_CATEGORY_INIT(clpublish_debug, "clpublish", 0, "publishing of inference results");
  auto* object = G_OBJECT_CLASS(klass);
  auto* element = GST_ELEMENT_CLASS(klass);
  auto* transform = GST_BASE_TRANSFORM_CLASS(klass);
  clinfer::register_result_meta();
  object->set_property = set_property;
  object->get_property = get_property;
  object->finalize = finalize;
  clinfer::install_properties(object, properties());
  gst_element_class_set_static_metadata(
      element, "Inference result publisher", "Filter/Analyzer/Video",
      "Writes the results on each frame as a line of JSON", "clinfer developers");
  gst_element_class_add_static_pad_template(element, &sink_template);
  gst_element_class_add_static_pad_template(element, &src_template);
  transform->start = start;
  transform->stop = stop;
  transform->set_caps = set_caps;
  transform->transform_ip = transform_ip;
}

static void gst_clpublish_init(GstClpublish* self) {
  self->state = new PublishState;
  gst_video_info_init(&self->state->info);
  gst_base_transform_set_passthrough(GST_BASE_TRANSFORM(self), TRUE);
}
