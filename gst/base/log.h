// Debug categories: one for each area of the elements and of the engine, so that GST_DEBUG can
// choose.
#pragma once

#include <gst/gst.h>

GST_DEBUG_CATEGORY_EXTERN(clinfer_debug);
GST_DEBUG_CATEGORY_EXTERN(clinfer_loader_debug);
GST_DEBUG_CATEGORY_EXTERN(clinfer_streaming_debug);
GST_DEBUG_CATEGORY_EXTERN(clinfer_frames_debug);
GST_DEBUG_CATEGORY_EXTERN(clinfer_meta_debug);
GST_DEBUG_CATEGORY_EXTERN(clinfer_follow_debug);
GST_DEBUG_CATEGORY_EXTERN(clinferfilter_debug);
GST_DEBUG_CATEGORY_EXTERN(cloverlay_debug);
GST_DEBUG_CATEGORY_EXTERN(clpublish_debug);
GST_DEBUG_CATEGORY_EXTERN(clcrop_debug);
GST_DEBUG_CATEGORY_EXTERN(clcamera_debug);
GST_DEBUG_CATEGORY_EXTERN(cltrack_debug);
GST_DEBUG_CATEGORY_EXTERN(clzones_debug);

namespace clinfer {

// Registers the categories, and receives the engine's log from then on. May be called several
// times.
void init_log();

}  // namespace clinfer
