// Implements inference-when=motion: decides which frames the network need not see, because nothing
// in them has changed.
#pragma once

#include <gst/video/video.h>

#include <memory>
#include <vector>

#include "gst/infer/motion/motion_detector.h"
#include "gst/infer/settings/object_rules.h"
#include "gst/infer/settings/settings.h"

namespace clinfer {

// The gate of one stream. To be used by its streaming thread.
class MotionGate {
 public:
  // Everything besides the picture that a result depends on.
  struct Context {
    std::shared_ptr<const ObjectRules> rules;
    std::weak_ptr<const void> network;
    std::vector<InferenceRegion> regions;  // for inference-region=roi-list
  };

  // Returns whether a frame has to be inferred: it, or one after the last inferred frame, has
  // changed, or `context` has, or earlier results do not hold any more (`renewed`). To be called
  // for each frame.
  bool opens(GstBuffer* buffer, const GstVideoInfo& info, const Settings& settings, Context context,
             bool renewed);
  // Notes that the frame that opens() saw last is inferred.
  void pass();

 private:
  MotionDetector detector_;
  double threshold_ = 0;
  Rect visible_;
  Context context_, inferred_;    // of the last frame, and of the last inferred one
  bool pending_ = true;           // a change was seen, and no frame was inferred since
  unsigned hold_ = 0, left_ = 0;  // motion-hold, and what is left of it
};

// Returns whether two regions hold the same object, which has not moved.
bool are_alike(const Rect& a, const Rect& b);

}  // namespace clinfer
