// The part of the element that the streaming thread runs: frames, events and queries come in at the
// sink pad.
#pragma once

#include <gst/video/video.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "gst/frames/clip.h"
#include "gst/frames/cuda_memory.h"
#include "gst/frames/orientation.h"
#include "gst/infer/model/width_buckets.h"
#include "gst/infer/motion/motion_gate.h"
#include "gst/infer/stream/element_model.h"
#include "gst/infer/stream/element_shared.h"
#include "gst/infer/stream/verification.h"
#include "gst/meta/notice.h"

namespace clinfer {

// Hands frames to idle requests and queues them for the delivery. The streaming thread calls these
// functions; state changes and flushes call them while that thread is stopped. Functions that any
// thread may call say so.
class Intake {
 public:
  Intake(ElementShared& shared, ElementModel& model, Verification& verification);

  GstFlowReturn chain(Handle<GstBuffer> buffer);
  // Takes all events except those of a flush.
  GstFlowReturn take_event(Handle<GstEvent> event);
  bool take_query(GstQuery* query);

  void restart();       // called before a stream begins
  void stop();          // cancels what is compiled for other widths; keeps what is ready
  void clear();         // cancels it and drops everything
  void begin_stream();  // the sink pad becomes active
  void flush();         // the queue is empty, and frames of another position follow

  // Any thread may call these. While interrupted, no call blocks.
  void interrupt();
  void go_on();
  // Any thread may call this: frames go to another session from now on.
  void leave(const Session& previous);
  // Any thread may call this: according to an event from downstream, frames before `earliest` come
  // too late.
  void note_quality(double proportion, GstClockTime earliest);
  // Returns whether no more frames are due. Any thread may call this.
  bool is_at_end() const { return at_end_; }
  // Returns the widths of a text recogniser that are ready: "160,640". Any thread may call this.
  std::string ready_widths() const { return widths_.ready_widths(); }

 private:
  struct Quality {
    GstClockTime earliest = GST_CLOCK_TIME_NONE;
    double proportion = 1;
    guint64 processed = 0, dropped = 0;
  };

  bool set_caps(const GstEvent* event);
  void read_tags(const GstEvent* event);
  Orientation orientation_for(const Settings& settings, GstBuffer* buffer);
  void tell_of_turning(const char* why);
  bool fed_live();
  Outcome wanted_outcome(GstBuffer* buffer, const Settings& settings);
  bool too_late(GstBuffer* buffer);
  void report_quality(GstBuffer* buffer);
  std::optional<std::chrono::nanoseconds> frame_interval() const;
  ModelBatcher::BatchWait batch_wait(const Settings& settings,
                                     const TargetStream::Orders& orders) const;
  bool add_to_clip(GstBuffer* buffer, const Session& session, const Settings& settings);
  bool is_still(Job& job, GstBuffer* buffer, const Settings& settings);
  double pixel_aspect() const;
  std::vector<InferenceRegion> listed_regions(GstBuffer* buffer, const Rect& visible,
                                              const Settings& settings, const ObjectRules& rules);
  std::vector<InferenceRegion> regions_of(Job& job, const Settings& settings);
  void take_turn(Job& job, const Settings& settings);
  void take_sample(Job& job, const Clip::Frames& frames, const Orientation& orientation);
  bool submit(Job& job, const Settings& settings, bool waits);
  void flush_partial_batch();
  std::unique_ptr<FrameInput> make_input(Job& job, SharedModel& shared);
  std::unique_ptr<FrameInput> import_frame(Job& job, SharedModel& shared, const MemoryKind& kind);
  void tell_of_device_copies();
  std::shared_ptr<FrameInput> input_for(Job& job, const Session& session,
                                        const Orientation& orientation);

  ElementShared& shared_;
  ElementModel& model_;
  Verification& verification_;
  GstElement* const self_;
  GstPad* const sink_;

  GstVideoInfo info_;
  bool has_caps_ = false;
  bool has_surfaces_ = false;  // the frames are VA surfaces
  GstSegment segment_;
  uint64_t frame_number_ = 0;
  bool dropped_ = false;  // frames were dropped after the last one that was passed on
  bool asked_live_ = false;
  bool resets_states_ = true;  // another sequence begins with the next frame that is inferred
  GstVideoOrientationMethod tagged_ = GST_VIDEO_ORIENTATION_IDENTITY;  // from the stream's tags
  bool warned_of_fields_ = false, warned_of_transformation_ = false;
  bool told_of_turning_ = false, told_of_device_copies_ = false;
  // The rules that were checked against frames of these caps.
  std::shared_ptr<const ObjectRules> looked_at_rules_;
  std::weak_ptr<const Session> classified_with_;  // the session from which track_results come
  CudaCopier cuda_copier_;
  ModelBatcher::Stream stream_;
  MotionGate motion_;
  Clip clip_;  // for a network that takes several frames
  WidthBuckets widths_;
  RoiNotice roi_notice_;

  std::atomic<bool> at_end_{false};
  mutable std::mutex mutex_;  // guards the members below
  Quality quality_;
};

}  // namespace clinfer
