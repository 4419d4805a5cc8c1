// The plug-in: registers the elements.
#include <gst/gst.h>

#include "gst/base/log.h"
#include "gst/camera/camera.h"
#include "gst/crop/crop.h"
#include "gst/filter/filter.h"
#include "gst/infer/clinfer.h"
#include "gst/infer/stream/latency_tracer.h"
#include "gst/overlay/overlay.h"
#include "gst/publish/publish.h"
#include "gst/track/track.h"
#include "gst/zones/zones.h"

static gboolean plugin_init(GstPlugin* plugin) {
  clinfer::init_log();
  gboolean registered = GST_ELEMENT_REGISTER(clinfer, plugin);
  registered |= GST_ELEMENT_REGISTER(clcamera, plugin);
  registered |= GST_ELEMENT_REGISTER(clcrop, plugin);
  registered |= GST_ELEMENT_REGISTER(clinferfilter, plugin);
  registered |= GST_ELEMENT_REGISTER(cloverlay, plugin);
  registered |= GST_ELEMENT_REGISTER(clpublish, plugin);
  registered |= GST_ELEMENT_REGISTER(cltrack, plugin);
  registered |= GST_ELEMENT_REGISTER(clzones, plugin);
  registered |= clinfer::register_latency_tracer(plugin);
  return registered;
}

#define PACKAGE "clinfer"
GST_PLUGIN_DEFINE(GST_VERSION_MAJOR, GST_VERSION_MINOR, clinfer,
                  "Neural network inference on video by OpenCL", plugin_init, CLINFER_VERSION,
                  "MIT", "clinfer", CLINFER_DOCS)
