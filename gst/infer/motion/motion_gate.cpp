// Finds frames without motion.
#include "gst/infer/motion/motion_gate.h"

#include <algorithm>
#include <utility>

#include "gst/base/unreadable_frame.h"
#include "gst/frames/mapped_frame.h"

namespace clinfer {

bool are_alike(const Rect& a, const Rect& b) {
  // A network's boxes vary by this much while nothing moves.
  constexpr double kAlike = 0.8;
  const double width = std::min(a.x + a.width, b.x + b.width) - std::max(a.x, b.x);
  const double height = std::min(a.y + a.height, b.y + b.height) - std::max(a.y, b.y);
  if (width <= 0 || height <= 0) return false;
  const double both = width * height;
  const double all =
      static_cast<double>(a.width) * a.height + static_cast<double>(b.width) * b.height - both;
  return both >= kAlike * all;
}

static bool same_results(const MotionGate::Context& a, const MotionGate::Context& b) {
  if (a.rules != b.rules || a.network.owner_before(b.network) || b.network.owner_before(a.network))
    return false;
  return std::all_of(a.regions.begin(), a.regions.end(), [&](const InferenceRegion& region) {
    return std::any_of(b.regions.begin(), b.regions.end(), [&](const InferenceRegion& known) {
      return are_alike(region.rect, known.rect);
    });
  });
}

bool MotionGate::opens(GstBuffer* buffer, const GstVideoInfo& info, const Settings& settings,
                       Context context, bool renewed) {
  bool changed = true;
  try {
    const MappedFrame mapped(buffer, info);
    const Rect& visible = mapped.visible();
    if (settings.motion_threshold != threshold_ || context.rules != context_.rules ||
        visible.width != visible_.width || visible.height != visible_.height) {
      threshold_ = settings.motion_threshold;
      visible_ = visible;
      detector_.set(threshold_, context.rules->motion_regions(visible));
    }
    changed = detector_.look(mapped.frame(), visible);
  } catch (const UnreadableFrame&) {
    detector_.reset();  // the error is reported when the frame is read for the network
  }
  context_ = std::move(context);
  hold_ = settings.motion_hold;
  if (changed || renewed || !same_results(context_, inferred_)) pending_ = true;
  return pending_ || left_ != 0;
}

void MotionGate::pass() {
  detector_.take_as_reference();
  left_ = pending_ ? hold_ : left_ - std::min(left_, 1u);
  pending_ = false;
  inferred_ = context_;
}

}  // namespace clinfer
