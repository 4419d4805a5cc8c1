// The working part of the clinfer element, behind its GObject shell (clinfer.cpp).
//
// Threads: the streaming thread (chain, serialised events and queries) hands frames to idle
// requests and queues them; the source pad's task waits for the oldest, decodes and pushes; the
// loader's thread compiles; any thread reads statistics. The model's batcher (batcher.h) may be
// shared with other elements. The GstObject lock guards `settings_` and `qos_`. No lock is held
// over a push, a wait for the device or an engine call.
#pragma once

#include <gst/video/video.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "gst/base/guard.h"
#include "gst/base/handle.h"
#include "gst/base/unreadable_frame.h"
#include "gst/frames/cuda_memory.h"
#include "gst/frames/frame_input.h"
#include "gst/infer/clip.h"
#include "gst/infer/frame_queue.h"
#include "gst/infer/model_loader.h"
#include "gst/infer/object_rules.h"
#include "gst/infer/properties.h"
#include "gst/infer/settings.h"
#include "gst/infer/statistics.h"
#include "gst/infer/ticker.h"
#include "gst/infer/track_results.h"
#include "gst/infer/width_buckets.h"
#include "gst/meta/meta.h"

namespace clinfer {

using Clock = std::chrono::steady_clock;

// A frame on its way through the element. Its destructor waits for the device (the tickets do),
// then unmaps the buffer and releases it.
struct Job {
  struct Inference {
    InferenceRegion region;
    std::shared_ptr<const Session> session;  // the job's, or of another width
    Placement placement;                     // set when it is launched
    Clock::time_point begun;                 // when it was launched
    ModelBatcher::Ticket ticket;
  };
  Handle<GstBuffer> buffer;
  std::shared_ptr<const Session> session;  // null: passes while the model is not ready
  std::shared_ptr<FrameInput> input;  // the batcher keeps it for as long as the device needs it
  // For sessions of other widths, by their model.
  std::map<const CompiledModel*, std::shared_ptr<FrameInput>> inputs_of_widths;
  std::list<Inference> inferences;             // one for the whole frame, or one per region
  std::vector<InferenceRegion> known_regions;  // tracked objects that have a result already
  bool copied_on_device = false;               // `input` is a copy that never left the device
  // As the properties were when the frame came.
  DecodeSettings decode;
  std::shared_ptr<const ObjectRules> rules;
  unsigned hold_results = 0;
  Outcome outcome = Outcome::run;
  Rect visible;
  bool discont = false;                 // frames were dropped before this one
  Clock::time_point arrived, admitted;  // at the pad, and when there was room
};

class Element final : public Readings {
 public:
  Element(GstElement* self, GstPad* sink, GstPad* src);
  ~Element();

  // Properties; the object lock is taken inside.
  void set_property(guint id, const GValue* value);
  Settings settings() const;
  DecodeSettings decode_settings_in_force() const override;
  GstStructure* stats() const override;

  // State changes; they throw Error.
  void open();     // NULL to READY: reads and checks the model
  void prepare();  // READY to PAUSED: starts compiling
  void finish();   // PAUSED to READY, pads inactive: stops compiling, waits for what is in flight
  void close();    // READY to NULL: releases everything
  void play(bool plays);  // PAUSED to PLAYING, and back: messages come while it plays
  void post_stats();
  void look_for_frames();  // says when the source is frozen

  // Pads.
  void activate(bool sink, bool active);
  GstFlowReturn chain(Handle<GstBuffer> buffer);
  GstFlowReturn sink_event(Handle<GstEvent> event);
  bool sink_query(GstQuery* query);
  bool src_event(Handle<GstEvent> event);
  bool src_query(GstQuery* query);
  void task();  // one round of the source pad's task
  // Reports an exception of chain() or task().
  void fail(const Failure& failure);
  GstFlowReturn failed_flow() const;  // what chain() returns after a failure

 private:
  // The answer to a query in the queue. Not a std::promise, whose destructor takes memory.
  class Answer {
   public:
    void give(bool answer) {
      {
        const std::lock_guard lock(mutex_);
        if (!answer_) answer_ = answer;
      }
      given_.notify_all();
    }
    bool wait() {
      std::unique_lock lock(mutex_);
      given_.wait(lock, [this] { return answer_.has_value(); });
      return *answer_;
    }

   private:
    std::mutex mutex_;
    std::condition_variable given_;
    std::optional<bool> answer_;
  };
  // A ticket that a flush drops answers no.
  struct QueryTicket {
    explicit QueryTicket(GstQuery* asked) : query(asked) {}
    ~QueryTicket() { answer->give(false); }
    GstQuery* query;
    std::shared_ptr<Answer> answer = std::make_shared<Answer>();
  };
  // Exactly one of the three is set.
  struct Item {
    std::unique_ptr<Job> job;
    Handle<GstEvent> event;
    std::unique_ptr<QueryTicket> query;
  };

  // Posts at most one error per failure, before upstream sees the flow return (else upstream would
  // post a second one). Silent while flushing and after EOS.
  template <typename Tell>
  void fail_once(Tell&& tell) {
    const std::lock_guard lock(failing_);
    if (flow_.load() != GST_FLOW_OK) return;
    tell();
    flow_reported_ = true;
    GstFlowReturn fine = GST_FLOW_OK;
    flow_.compare_exchange_strong(fine, GST_FLOW_ERROR);
  }
  void start_tickers();
  void start_flush();
  void stop_flush();
  void start_task();
  bool set_caps(const GstEvent* event);
  Orientation orientation_for(const Settings& settings, GstBuffer* buffer);
  void tell_of_turning(const char* why);
  void read_tags(const GstEvent* event);
  void compile_for(std::shared_ptr<const SurfaceDisplay> display);
  void follow_frame();
  void change_model(Settings settings);
  void change_rules(const Settings& settings);
  Settings checked_settings() const;
  Settings settings_with_model();
  void warn_of_unknown_classes(const Network& network, const ObjectRules& rules);
  void decode(Job& job, FrameResult& result,
              const std::vector<std::pair<Job::Inference*, std::vector<Tensor>>>& finished);
  void repeat_results(const Job& job, FrameResult& result);
  void warn_of_copies(const std::string& why);
  size_t frames_in_flight_for(const Settings& settings, const Session* session) const;
  bool fed_live();
  Outcome wanted_outcome(GstBuffer* buffer);
  bool too_late(GstBuffer* buffer);
  void report_quality(GstBuffer* buffer);
  std::optional<std::chrono::nanoseconds> frame_interval() const;
  ModelBatcher::BatchWait batch_wait(const Settings& settings) const;
  void hold_results(FrameResult& result, unsigned most);
  bool goes_on_without(const Job& job, const std::exception& error);
  bool add_to_clip(GstBuffer* buffer, const Session& session, const Settings& settings);
  bool submit(Job& job, const Settings& settings, bool waits);
  // False for a frame that cannot be read: it goes on without inference.
  template <typename Read>
  bool reads(Read&& read) {
    try {
      read();
      return true;
    } catch (const UnreadableFrame& frame) {
      unreadable_.lose(self_, frame);
      return false;
    }
  }
  void flush_partial_batch();
  std::unique_ptr<FrameInput> make_input(Job& job, SharedModel& shared);
  std::unique_ptr<FrameInput> import_frame(Job& job, SharedModel& shared, const MemoryKind& kind);
  void tell_of_device_copies();
  std::shared_ptr<FrameInput> input_for(Job& job, const Session& session,
                                        const Orientation& orientation);
  void finish_frame(std::unique_ptr<Job> job, uint64_t generation);
  void forward_event(Handle<GstEvent> event);
  bool answer_allocation(GstQuery* query);
  void propose_memory(GstQuery* query, GstCaps& caps);
  void propose_exportable_memory(GstQuery* query, GstCaps& caps);
  bool answer_latency(GstQuery* query);

  GstElement* self_;
  GstPad* sink_;
  GstPad* src_;
  // Object lock.
  Settings settings_;
  LostProperties lost_properties_;
  std::shared_ptr<const ObjectRules> rules_ = std::make_shared<const ObjectRules>();
  std::optional<Settings> in_force_;  // from READY to PAUSED on: those that do not change meanwhile

  // Set by state changes.
  std::shared_ptr<const Model> model_;
  std::string model_path_, model_reshape_;
  Settings compile_settings_;
  Network network_;
  bool follows_frame_ = false;  // reshape=frame
  bool take_surfaces_ = false;  // read VA surfaces on the device, as the properties say
  bool take_imports_ = false;   // read DMA-BUFs and memory of CUDA there, as the properties say
  ModelLoader loader_;
  WidthBuckets widths_;

  // Used by the streaming thread only.
  GstVideoInfo info_;
  bool has_caps_ = false;
  bool has_surfaces_ = false;  // the frames are VA surfaces
  GstSegment segment_;
  uint64_t frame_number_ = 0;
  bool dropped_ = false;  // frames were dropped since the last one that was passed on
  bool asked_live_ = false;
  bool warned_of_fields_ = false;
  GstVideoOrientationMethod tagged_ = GST_VIDEO_ORIENTATION_IDENTITY;  // by the stream's tags
  bool told_of_turning_ = false, warned_of_transformation_ = false;
  bool told_of_device_copies_ = false;
  std::shared_ptr<const ObjectRules> looked_at_rules_;  // with a frame of these caps
  CudaCopier cuda_copier_;
  ModelBatcher::Stream stream_;
  Clip clip_;  // of a network that takes several frames

  FrameQueue<Item> queue_;
  std::mutex failing_;  // held while a failure is posted
  std::atomic<GstFlowReturn> flow_{GST_FLOW_FLUSHING};
  std::atomic<bool> flow_reported_{false};   // upstream or the application knows of flow_
  std::atomic<unsigned> pending_starts_{0};  // SEGMENT and STREAM_START events in the queue
  std::atomic<bool> warned_of_copies_{false};
  std::atomic<bool> unanswered_{false};   // the device, and the application was told
  std::atomic<bool> asked_early_{false};  // upstream asked for memory before the device was known
  std::atomic<const MemoryKind*> kind_{nullptr};  // of the caps; null: system memory or VA surfaces
  std::atomic<bool> relinked_{false};             // downstream, since follow_results() looked there
  // Used by the task only.
  bool dropping_ = false;  // downstream is at EOS
  struct Held {
    FrameResult result;
    unsigned remaining = 0;
  };
  bool warned_of_tiles_ = false;
  std::optional<Held> held_;  // results of the last inferred frame

  // Quality of service; object lock.
  struct Qos {
    GstClockTime earliest = GST_CLOCK_TIME_NONE;
    double proportion = 1;
    guint64 processed = 0, dropped = 0;
  } qos_;

  // For reclassify-interval.
  TrackResults track_results_;
  std::weak_ptr<const Session> classified_with_;  // used by the streaming thread only

  std::atomic<bool> live_{false};
  std::mutex ticking_;  // guards the next three
  bool plays_ = false;
  Ticker stats_ticker_, frozen_ticker_;
  std::atomic<bool> at_end_{false};  // no more frames are due
  ServiceTime service_time_;
  UnreadableFrames unreadable_;
  mutable Statistics statistics_;
};

}  // namespace clinfer
