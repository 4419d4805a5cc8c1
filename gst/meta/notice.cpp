// Posts the message about regions of interest.
#include "gst/meta/notice.h"

namespace clinfer {

void RoiNotice::look(GstElement* element, const FrameView& frame) {
  if (!frame.has_roi_only || told_.exchange(true)) return;
  GST_ELEMENT_INFO(element, STREAM, FORMAT,
                   ("objects of another element are GstVideoRegionOfInterestMeta only, which is "
                    "read as long as Debian 12 is supported"),
                   ("elements of GStreamer 1.24 or newer write GstAnalyticsRelationMeta"));
}

}  // namespace clinfer
