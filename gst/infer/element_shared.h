// The state that the threads of an element share.
#pragma once

#include <atomic>
#include <string>

#include "gst/base/unreadable_frame.h"
#include "gst/frames/memory_import.h"
#include "gst/infer/flow.h"
#include "gst/infer/frame_queue.h"
#include "gst/infer/job.h"
#include "gst/infer/live_settings.h"
#include "gst/infer/statistics.h"
#include "gst/infer/track_results.h"

namespace clinfer {

// Any thread may use each member.
struct ElementShared {
  ElementShared(GstElement* self, GstPad* sink, GstPad* src)
      : element(self), sink_pad(sink), src_pad(src), settings(self) {}

  // Says once why frames are copied through system memory.
  void warn_of_copies(const std::string& why);
  // False for a frame that cannot be read: it goes on without inference.
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
  // Before a stream begins: forgets the last one.
  void restart();

  GstElement* const element;
  GstPad* const sink_pad;
  GstPad* const src_pad;
  LiveSettings settings;
  FrameQueue<QueueItem> queue;  // from the intake to the delivery
  Flow flow;
  Statistics statistics;
  UnreadableFrames unreadable;
  TrackResults track_results;               // for reclassify-interval
  std::atomic<bool> live{false};            // the source is
  std::atomic<unsigned> pending_starts{0};  // SEGMENT and STREAM_START events in the queue
  std::atomic<bool> renewed{true};  // for inference-when=motion: earlier results no longer hold
  std::atomic<bool> asked_early{false};  // upstream asked for memory before the device was known
  std::atomic<const MemoryKind*> kind{nullptr};  // of the caps; null: system memory or VA surfaces

 private:
  std::atomic<bool> warned_of_copies_{false};
};

}  // namespace clinfer
