// Tells users once that objects come in metadata that will not be read for ever.
#pragma once

#include <gst/gst.h>

#include <atomic>

#include "gst/meta/views.h"

namespace clinfer {

// Any thread may call it.
class RoiNotice {
 public:
  // Posts one INFO message if objects of another element are regions of interest only.
  void look(GstElement* element, const FrameView& frame);
  // Lets the next such frame be told again.
  void clear() { told_ = false; }

 private:
  std::atomic<bool> told_{false};
};

}  // namespace clinfer
