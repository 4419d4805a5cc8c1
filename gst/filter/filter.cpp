// Implements clinferfilter: takes frames and sends the network's pictures (RGB), in the size that
// the network makes.
#include "gst/filter/filter.h"

#include <gst/base/gstbasetransform.h>
#include <gst/video/video.h>

#include <atomic>
#include <memory>

#include "gst/base/element_class.h"
#include "gst/base/guard.h"
#include "gst/base/handle.h"
#include "gst/base/instance.h"
#include "gst/base/log.h"
#include "gst/base/unreadable_frame.h"
#include "gst/base/video_mapping.h"
#include "gst/filter/picture_model.h"
#include "gst/frames/mapped_frame.h"
#include "gst/infer/model/model_loader.h"

#define GST_CAT_DEFAULT clinferfilter_debug

namespace {

struct FilterState {
  FilterState() {
    gst_video_info_init(&in);
    gst_video_info_init(&out);
  }
  // Members that the object lock guards:
  clinfer::FilterSettings settings;
  std::optional<clinfer::FilterSettings> in_force;  // set from start to stop
  clinfer::LostProperties lost;
  // The model that was read last, because negotiation asks many times.
  std::shared_ptr<const clinfer::Model> read;
  // Members that only the streaming thread uses:
  std::unique_ptr<clinfer::PictureModel> model;
  GstVideoInfo in, out;
  clinfer::UnreadableFrames unreadable;
  // True from the start of a change to READY, which waits for the streaming thread, so that
  // compiling and inference give up.
  std::atomic<bool> stopping{false};
};

}  // namespace

using GstClinferFilter = clinfer::Instance<GstBaseTransform, FilterState>;
using GstClinferFilterClass = GstBaseTransformClass;

G_DEFINE_TYPE(GstClinferFilter, gst_clinfer_filter, GST_TYPE_BASE_TRANSFORM)

namespace {

using clinfer::FilterSettings;
using clinfer::PictureModel;
using clinfer::PictureSize;
using clinfer::Property;

constexpr const char* kSinkCaps = GST_VIDEO_CAPS_MAKE(CLINFER_VIDEO_FORMATS);

const std::vector<Property<FilterSettings>>& properties() {
  using S = FilterSettings;
  using clinfer::choice, clinfer::ColorArithmetic, clinfer::ColorChoice, clinfer::OutputRange,
      clinfer::ResizeChoice, clinfer::text;
  static const auto& rows = *new std::vector<Property<S>>{
      text<&S::model>("model", "Model",
                      "Model whose output is a picture (.onnx, .xml, or a folder that holds one)"),
      text<&S::device>("device", "Device",
                       "GPU (the first GPU, else a CPU), GPU.N or CPU, by the names that `clinfer "
                       "devices` lists"),
      text<&S::reshape>(
          "reshape", "Reshape",
          "Size of the picture that the network gets: WIDTHxHEIGHT, or frame for that "
          "of the frames (unset: as the model states)"),
      choice<&S::color_format>("color-format", "Colour format",
                               "Order of the channels that the network takes and gives",
                               "GstClinferFilterColorFormat",
                               {{ColorChoice::automatic, "As the model says, else BGR", "auto"},
                                {ColorChoice::bgr, "BGR", "bgr"},
                                {ColorChoice::rgb, "RGB", "rgb"},
                                {ColorChoice::gray, "Grey, of one channel", "gray"}}),
      choice<&S::color_arithmetic>(
          "color-arithmetic", "Colour arithmetic", "How Y'CbCr frames become RGB",
          "GstClinferFilterColorArithmetic",
          {{ColorArithmetic::exact, "By the matrix and range of the caps, rounded once", "exact"},
           {ColorArithmetic::videoconvert,
            "To the bit as GStreamer's videoconvert, whose coefficients have 8 bits",
            "videoconvert"}}),
      text<&S::mean>("mean", "Mean",
                     "Subtracted from pixel values 0..255: a number, or one per channel"),
      text<&S::scale>("scale", "Scale",
                      "Pixel values minus mean are divided by this: a number, or one per channel"),
      choice<&S::output_range>(
          "output-range", "Output range", "What the numbers of the network's picture mean",
          "GstClinferFilterOutputRange",
          {{OutputRange::automatic, "By the values of the first picture", "auto"},
           {OutputRange::byte, "0 to 255", "byte"},
           {OutputRange::unit, "0 to 1", "unit"},
           {OutputRange::signed_unit, "-1 to 1", "signed"}}),
      text<&S::config_file>("config-file", "Custom layers",
                            "XML files that describe operations with OpenCL kernels of your own, "
                            "as the GPU plug-in's CONFIG_FILE"),
      text<&S::config>("config", "Configuration", clinfer::config_blurb()),
      text<&S::cache_dir>(
          "cache-dir", "Cache folder",
          "Folder for built OpenCL programs (unset: the user's cache folder; empty: "
          "no cache)")};
  return rows;
}

using Class = clinfer::ElementClass<GstClinferFilter, properties>;

// Returns the settings with which the element was started, or nothing before that.
std::optional<FilterSettings> settings_in_force(GstBaseTransform* transform) {
  const clinfer::ObjectLock lock(transform);
  return Class::state(transform).in_force;
}

// Returns the settings in force, or else those that were set.
FilterSettings settings_of(GstBaseTransform* transform) {
  const std::optional<FilterSettings> in_force = settings_in_force(transform);
  return in_force ? *in_force : Class::settings(transform);
}

void remember(GstBaseTransform* transform, const PictureModel& model) {
  const clinfer::ObjectLock lock(transform);
  Class::state(transform).read = model.model();
}

// Returns the output's size for frames of this size; nullopt while it is open.
std::optional<PictureSize> output_size(GstBaseTransform* transform, const GstStructure* in) {
  const FilterSettings settings = settings_of(transform);
  if (settings.model.empty()) return {};
  PictureSize frame;
  const bool known = gst_structure_get_int(in, "width", &frame.width) &&
                     gst_structure_get_int(in, "height", &frame.height);
  if (!known && clinfer::follows_frame(settings)) return {};
  try {
    const PictureModel model(settings, frame);
    remember(transform, model);
    return model.output();
  } catch (const clinfer::Error&) {
    // Ignores errors while a pipeline is built, when nobody reads messages; start() meets them
    // again.
    if (settings_in_force(transform)) throw;
    return {};
  }
}

// Returns the fields that the caps of both pads share, for building the caps of the other pad.
GstStructure* other_side(const GstStructure* one) {
  GstStructure* other = gst_structure_new_empty("video/x-raw");
  for (const char* field : {"framerate", "pixel-aspect-ratio", "interlace-mode"})
    if (const GValue* value = gst_structure_get_value(one, field))
      gst_structure_set_value(other, field, value);
  return other;
}

GstCaps* transform_caps(GstBaseTransform* transform, GstPadDirection direction, GstCaps* caps,
                        GstCaps* filter) {
  GstCaps* made = gst_caps_new_empty();
  clinfer::guard(GST_ELEMENT(transform), [&] {
    for (guint i = 0; i < gst_caps_get_size(caps); ++i) {
      clinfer::Handle<GstStructure> other(other_side(gst_caps_get_structure(caps, i)));
      if (direction == GST_PAD_SINK) {
        gst_structure_set(other.get(), "format", G_TYPE_STRING, "RGB", nullptr);
        if (const auto size = output_size(transform, gst_caps_get_structure(caps, i)))
          gst_structure_set(other.get(), "width", G_TYPE_INT, size->width, "height", G_TYPE_INT,
                            size->height, nullptr);
        gst_caps_append_structure(made, other.release());
      } else {
        GstCaps* any = gst_pad_get_pad_template_caps(GST_BASE_TRANSFORM_SINK_PAD(transform));
        GstCaps* limits = gst_caps_new_full(other.release(), nullptr);
        gst_caps_append(made, gst_caps_intersect(any, limits));
        gst_caps_unref(any);
        gst_caps_unref(limits);
      }
    }
  });
  made = gst_caps_simplify(made);
  if (filter == nullptr) return made;
  GstCaps* filtered = gst_caps_intersect_full(filter, made, GST_CAPS_INTERSECT_FIRST);
  gst_caps_unref(made);
  return filtered;
}

void post_progress(GstBaseTransform* transform, GstProgressType type, const std::string& text) {
  gst_element_post_message(
      GST_ELEMENT(transform),
      gst_message_new_progress(GST_OBJECT(transform), type, "compile", text.c_str()));
}

// Reports each change of the tier that computes.
void tell_who_computes(GstBaseTransform* transform, const PictureModel& model) {
  post_progress(transform, GST_PROGRESS_TYPE_COMPLETE,
                clinfer::text_of_tier(model.running(), model.name(), model.is_compiled()));
}

void tell(GstBaseTransform* transform, PictureModel& model) {
  for (const std::string& notice : model.take_notices())
    GST_ELEMENT_WARNING(transform, STREAM, FORMAT, ("%s", notice.c_str()), (nullptr));
}

// Guards as guard() does, except that ending because the element stops is no error.
template <typename Result, typename Body>
Result guard_unless_stopping(GstBaseTransform* transform, Result failed, Result stopped,
                             Body&& body) {
  return clinfer::guard(GST_ELEMENT(transform), failed, [&] {
    try {
      return body();
    } catch (const clinfer::Error& error) {
      if (error.code() != clinfer::ErrorCode::cancelled || !Class::state(transform).stopping) throw;
      return stopped;
    }
  });
}

gboolean set_caps(GstBaseTransform* transform, GstCaps* in, GstCaps* out) {
  return guard_unless_stopping(transform, FALSE, FALSE, [&]() -> gboolean {
    FilterState& state = Class::state(transform);
    if (!clinfer::read_caps(in, state.in) || !gst_video_info_from_caps(&state.out, out))
      return FALSE;
    const FilterSettings settings = settings_of(transform);
    auto model = std::make_unique<PictureModel>(
        settings, PictureSize{GST_VIDEO_INFO_WIDTH(&state.in), GST_VIDEO_INFO_HEIGHT(&state.in)});
    // Frames of another format do not need another model.
    if (state.model == nullptr || clinfer::follows_frame(settings)) {
      post_progress(transform, GST_PROGRESS_TYPE_START, "Compiling " + model->name());
      try {
        model->compile([&] { return !state.stopping; });
      } catch (const clinfer::Error& error) {
        post_progress(transform,
                      error.code() == clinfer::ErrorCode::cancelled ? GST_PROGRESS_TYPE_CANCELED
                                                                    : GST_PROGRESS_TYPE_ERROR,
                      error.what());
        throw;
      }
      tell_who_computes(transform, *model);
      tell(transform, *model);
      state.model = std::move(model);
    }
    return TRUE;
  });
}

// Stops without waiting until a model is compiled or a frame is computed.
GstStateChangeReturn change_state(GstElement* element, GstStateChange change) {
  FilterState* const state = Class::find_state(element);
  if (state != nullptr) state->stopping = change == GST_STATE_CHANGE_PAUSED_TO_READY;
  return GST_ELEMENT_CLASS(gst_clinfer_filter_parent_class)->change_state(element, change);
}

gboolean start(GstBaseTransform* transform) {
  return clinfer::guard(GST_ELEMENT(transform), gboolean{FALSE}, [&]() -> gboolean {
    const FilterSettings settings = Class::settings(transform);
    if (settings.model.empty())
      throw clinfer::Error{clinfer::ErrorCode::bad_argument,
                           "no model: set model=FILE (.onnx or .xml)"};
    // Reports errors before data flow, except those that depend on the frame's size.
    if (clinfer::follows_frame(settings)) {
      clinfer::ModelOptions options = settings;
      clinfer::settle_config_file(settings.config, options);
      clinfer::model_file(settings.model);
    } else {
      remember(transform, PictureModel(settings, {}));
    }
    const clinfer::ObjectLock lock(transform);
    Class::state(transform).in_force = settings;
    return TRUE;
  });
}

gboolean stop(GstBaseTransform* transform) {
  FilterState* const state = Class::find_state(transform);
  if (state == nullptr) return TRUE;
  state->model.reset();
  const clinfer::ObjectLock lock(transform);
  state->read.reset();
  state->in_force.reset();
  return TRUE;
}

// Computes the size from the caps, because the planes of the other side's buffers may be padded.
gboolean transform_size(GstBaseTransform*, GstPadDirection, GstCaps*, gsize, GstCaps* other,
                        gsize* size) {
  GstVideoInfo info;
  if (!gst_video_info_from_caps(&info, other)) return FALSE;
  *size = info.size;
  return TRUE;
}

gboolean get_unit_size(GstBaseTransform*, GstCaps* caps, gsize* size) {
  GstVideoInfo info;
  if (!gst_video_info_from_caps(&info, caps)) return FALSE;
  *size = info.size;
  return TRUE;
}

GstFlowReturn transform_frame(GstBaseTransform* transform, GstBuffer* in, GstBuffer* out) {
  return guard_unless_stopping(transform, GST_FLOW_ERROR, GST_FLOW_FLUSHING, [&] {
    FilterState& state = Class::state(transform);
    if (state.model->take_newest()) tell_who_computes(transform, *state.model);
    try {
      const clinfer::MappedFrame mapped(in, state.in);
      state.unreadable.count_readable();
      clinfer::VideoMapping to(out, state.out, GST_MAP_WRITE, "a picture cannot be mapped");
      state.model->run(
          mapped.frame(), static_cast<uint8_t*>(GST_VIDEO_FRAME_PLANE_DATA(to.frame(), 0)),
          GST_VIDEO_FRAME_PLANE_STRIDE(to.frame(), 0), [&] { return !state.stopping; });
    } catch (const clinfer::UnreadableFrame& frame) {
      state.unreadable.lose(GST_ELEMENT(transform), frame);
      return GST_BASE_TRANSFORM_FLOW_DROPPED;
    }
    tell(transform, *state.model);
    return GST_FLOW_OK;
  });
}

}  // namespace

static void gst_clinfer_filter_class_init(GstClinferFilterClass* klass) {
  auto* element = GST_ELEMENT_CLASS(klass);
  auto* transform = GST_BASE_TRANSFORM_CLASS(klass);
  Class::set_up(
      klass,
      {"Neural picture filter", "Filter/Effect/Video/Hardware",
       "Runs a network whose output is a picture (super-resolution, denoising, style) on video",
       CLINFER_DOCS "README.md", kSinkCaps, GST_VIDEO_CAPS_MAKE("RGB")});
  element->change_state = change_state;
  transform->transform_caps = transform_caps;
  transform->set_caps = set_caps;
  transform->start = start;
  transform->stop = stop;
  transform->get_unit_size = get_unit_size;
  transform->transform_size = transform_size;
  transform->transform = transform_frame;
}

static void gst_clinfer_filter_init(GstClinferFilter* self) { Class::make_state(self); }

static gboolean register_clinferfilter(GstPlugin* plugin) {
  return clinfer::register_element(plugin, "clinferfilter", gst_clinfer_filter_get_type(),
                                   properties);
}
GST_ELEMENT_REGISTER_DEFINE_CUSTOM(clinferfilter, register_clinferfilter)
