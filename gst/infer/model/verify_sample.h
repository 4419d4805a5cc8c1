// An inference that is computed again on the host: what the network got, and what the device made
// of it.
#pragma once

#include <gst/gst.h>

#include <atomic>
#include <memory>
#include <vector>

#include "gst/frames/clip.h"
#include "gst/infer/model/model_loader.h"
#include "gst/meta/meta.h"

namespace clinfer {

struct VerifySample {
  // `busy` is true while the sample lives, so that there is one at a time.
  explicit VerifySample(std::shared_ptr<std::atomic<bool>> busy) : busy_(std::move(busy)) {}
  ~VerifySample() { *busy_ = false; }
  VerifySample(const VerifySample&) = delete;
  VerifySample& operator=(const VerifySample&) = delete;

  size_t inference = 0;  // its number among those of the frame
  GstClockTime timestamp = GST_CLOCK_TIME_NONE;
  std::shared_ptr<const Session> session;
  Clip::Frames frames;  // copies
  Rect visible;
  InferenceRegion region;
  DecodeSettings decode;
  std::vector<Tensor> outputs;  // copies of the device's

 private:
  const std::shared_ptr<std::atomic<bool>> busy_;
};

}  // namespace clinfer
