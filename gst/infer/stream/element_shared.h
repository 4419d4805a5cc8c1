// The state that the threads of an element share.
#pragma once

#include <atomic>
#include <string>

#include "gst/base/unreadable_frame.h"
#include "gst/frames/memory_import.h"
#include "gst/infer/settings/live_settings.h"
#include "gst/infer/stream/flow.h"
#include "gst/infer/stream/frame_queue.h"
#include "gst/infer/stream/job.h"
#include "gst/infer/stream/statistics.h"
#include "gst/infer/stream/track_results.h"
#include "gst/infer/targets/target_stream.h"

namespace clinfer {

// The members are thread-safe.
struct ElementShared {
  ElementShared(GstElement* self, GstPad* sink, GstPad* src)
      : element(self), sink_pad(sink), src_pad(src), settings(self) {}

  // Warns once why frames are copied through system memory.
  void warn_of_copies(const std::string& why);
  // Calls `read`. Returns false for a frame that cannot be read, which then passes without
  // inference.
  template <typename Read>
  bool reads(Read&& read) {
    try {
      read();
      return true;
    } catch (const UnreadableFrame& frame) {
      unreadable.lose(element, frame);
      return false;
    }
  }
  // Forgets the last stream. To be called before a stream begins.
  void restart();

  GstElement* const element;
  GstPad* const sink_pad;
  GstPad* const src_pad;
  LiveSettings settings;
  FrameQueue<QueueItem> queue;  // from Intake to Delivery
  Flow flow;
  Statistics statistics;
  UnreadableFrames unreadable;
  TrackResults track_results;  // for reclassify-interval
  const std::shared_ptr<TargetStream> target = std::make_shared<TargetStream>();
  std::atomic<bool> live{false};  // true if the source is live
  // Number of SEGMENT and STREAM_START events in the queue.
  std::atomic<unsigned> pending_starts{0};
  // For inference-when=motion: earlier results are not valid any more.
  std::atomic<bool> renewed{true};
  std::atomic<bool> asked_early{false};  // upstream queried memory before the device was known
  // The kind in the caps; null: system memory or VA surfaces.
  std::atomic<const MemoryKind*> kind{nullptr};

 private:
  std::atomic<bool> warned_of_copies_{false};
};

}  // namespace clinfer
