// Registers debug categories, and passes the engine's log on to GStreamer.
#include "gst/base/log.h"

#include <array>

#include "kernels/base/log.h"

GST_DEBUG_CATEGORY(clinfer_debug);
GST_DEBUG_CATEGORY(clinfer_loader_debug);
GST_DEBUG_CATEGORY(clinfer_streaming_debug);
GST_DEBUG_CATEGORY(clinfer_frames_debug);
GST_DEBUG_CATEGORY(clinfer_meta_debug);
GST_DEBUG_CATEGORY(clinfer_follow_debug);
GST_DEBUG_CATEGORY(clinferfilter_debug);
GST_DEBUG_CATEGORY(cloverlay_debug);
GST_DEBUG_CATEGORY(clpublish_debug);
GST_DEBUG_CATEGORY(clcrop_debug);
GST_DEBUG_CATEGORY(clcamera_debug);
GST_DEBUG_CATEGORY(cltrack_debug);
GST_DEBUG_CATEGORY(clzones_debug);

namespace clinfer {
namespace {

struct Category {
  GstDebugCategory** category;
  const char* name;
  const char* description;
};

constexpr Category kElements[] = {
    {&clinfer_debug, "clinfer", "clinfer: states, properties, events and queries"},
    {&clinfer_loader_debug, "clinfer-loader", "clinfer: compiling and exchanging models"},
    {&clinfer_streaming_debug, "clinfer-streaming",
     "clinfer: each frame in, out, skipped, dropped"},
    {&clinfer_frames_debug, "clinfer-frames", "memory of frames: VA surfaces, DMA-BUFs, copies"},
    {&clinfer_meta_debug, "clinfer-meta", "results on buffers"},
    {&clinfer_follow_debug, "clinfer-follow", "results carried past elements that drop them"},
    {&clinferfilter_debug, "clinferfilter", "pictures out of networks"},
    {&cloverlay_debug, "cloverlay", "drawing of inference results"},
    {&clpublish_debug, "clpublish", "publishing of inference results"},
    {&clcrop_debug, "clcrop", "regions as buffers"},
    {&clcamera_debug, "clcamera", "cameras that come back"},
    {&cltrack_debug, "cltrack", "tracking of objects"},
    {&clzones_debug, "clzones", "counting at lines and in zones"},
};

// Names and descriptions of the engine's areas, in the order of LogArea.
constexpr std::array<std::array<const char*, 2>, kLogAreas> kEngine = {{
    {"clinfer-model", "engine: reading model files"},
    {"clinfer-heads", "engine: how outputs are read"},
    {"clinfer-graph", "engine: passes over the graph"},
    {"clinfer-plan", "engine: the kernel of each layer"},
    {"clinfer-device", "engine: devices, contexts and queues"},
    {"clinfer-programs", "engine: compiling kernels, and their cache"},
    {"clinfer-tuning", "engine: tuning files and measurements"},
}};

GstDebugLevel level_of(LogLevel level) {
  switch (level) {
    case LogLevel::warning:
      return GST_LEVEL_WARNING;
    case LogLevel::info:
      return GST_LEVEL_INFO;
    case LogLevel::debug:
      break;
  }
  return GST_LEVEL_DEBUG;
}

class GstLog final : public LogReceiver {
 public:
  GstLog() {
    for (size_t i = 0; i < kEngine.size(); ++i)
      GST_DEBUG_CATEGORY_INIT(categories_[i], kEngine[i][0], 0, kEngine[i][1]);
  }
  bool wants(LogArea area, LogLevel level) const noexcept override {
    return gst_debug_category_get_threshold(of(area)) >= level_of(level);
  }
  void take(LogArea area, LogLevel level, const SourcePlace& place,
            const std::string& text) noexcept override {
    gst_debug_log(of(area), level_of(level), place.file, place.function, place.line, nullptr, "%s",
                  text.c_str());
  }

 private:
  GstDebugCategory* of(LogArea area) const { return categories_[static_cast<size_t>(area)]; }

  std::array<GstDebugCategory*, kLogAreas> categories_{};
};

}  // namespace

void init_log() {
  for (const Category& known : kElements)
    GST_DEBUG_CATEGORY_INIT(*known.category, known.name, 0, known.description);
  // Never destroyed, because threads of the engine may log until the process has ended.
  static GstLog* const log = new GstLog();
  receive_log(log);
}

}  // namespace clinfer
