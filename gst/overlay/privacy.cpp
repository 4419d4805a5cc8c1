// Remembers where objects were.
#include "gst/overlay/privacy.h"

#include <algorithm>

namespace clinfer {

bool is_private(const RegionView& region, const std::vector<std::string>& labels) {
  const std::string& label = region.label.empty() ? region.roi_type : region.label;
  return labels.empty() || std::find(labels.begin(), labels.end(), label) != labels.end();
}

std::vector<PictureBox> HiddenParts::update(const FrameView& frame,
                                            const std::vector<std::string>& labels,
                                            std::optional<uint64_t> time) {
  constexpr uint64_t kLongest = 1'000'000'000, kUnknownInterval = 40'000'000;
  // The distance that an object may have moved since it was seen, as a share of its size: at once,
  // and per second.
  constexpr float kAround = 0.25f, kAroundInASecond = 2.5f;
  const uint64_t now = time.value_or(frames_ * kUnknownInterval);
  ++frames_;
  std::vector<PictureBox> hidden;
  for (const ResultView& result : frame.results) {
    if (result.outcome == Outcome::run) {
      Seen& seen = by_model_[result.model];
      seen = {{}, now};
      for (const RegionView& region : frame.regions)
        if (region.model == result.model && is_private(region, labels))
          seen.boxes.push_back(region.box);
      continue;
    }
    const auto seen = by_model_.find(result.model);
    if (seen == by_model_.end() || now < seen->second.time || now - seen->second.time > kLongest)
      return {{0, 0, 1, 1}};
    const float around =
        kAround + kAroundInASecond * static_cast<float>(now - seen->second.time) * 1e-9f;
    for (const PictureBox& box : seen->second.boxes) {
      const float x = (box.x_max - box.x_min) * around, y = (box.y_max - box.y_min) * around;
      hidden.push_back({std::max(box.x_min - x, 0.0f), std::max(box.y_min - y, 0.0f),
                        std::min(box.x_max + x, 1.0f), std::min(box.y_max + y, 1.0f)});
    }
  }
  return hidden;
}

}  // namespace clinfer
