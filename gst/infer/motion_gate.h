// inference-when=motion: which frames the network need not see, because nothing in them has changed.
#pragma once

#include <gst/video/video.h>

#include <memory>
#include <vector>

#include "gst/infer/motion_detector.h"
#include "gst/infer/object_rules.h"
#include "gst/infer/settings.h"

namespace clinfer {

// Of one stream. For its streaming thread.
class MotionGate {
 public:
  // The conditions of a result besides the picture.
  struct Context {
    std::shared_ptr<const ObjectRules> rules;
    std::weak_ptr<const void> network;
    std::vector<InferenceRegion> regions;  // of inference-region=roi-list
  };

  // Whether a frame is to be inferred: it, or one since the last inferred frame, has changed, or `context` has, or
  // earlier results no longer hold (`renewed`). To be called for each frame.
  bool opens(GstBuffer* buffer, const GstVideoInfo& info, const Settings& settings, Context context,
             bool renewed);
  // The frame that opens() saw last is inferred.
  void pass();

 private:
  MotionDetector detector_;
  double threshold_ = 0;
  Rect visible_;
  Context context_, inferred_;    // of the last frame, and of the last inferred one
  bool pending_ = true;           // a change was seen, and no frame inferred since
  unsigned hold_ = 0, left_ = 0;  // motion-hold, and what is left of it
};

// Whether two regions hold the same object, which has not moved.
bool are_alike(const Rect& a, const Rect& b);

}  // namespace clinfer
