// The working part of the clinfer element, behind its GObject shell (clinfer.cpp).
//
// Threads: the streaming thread (chain, serialised events and queries) hands frames to idle
// requests and queues them; the source pad's task waits for the oldest, decodes and pushes; a
// worker compiles; any thread reads statistics. The model's batcher (batcher.h) may be shared with
// other elements. Locks: the GstObject lock guards `settings_` and
// `qos_`, `mutex_` the session; neither is held over a push, a wait for the device or an engine
// call.
#pragma once

#include <gst/video/video.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <future>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

#include "gst/frames/frame_input.h"
#include "gst/infer/frame_queue.h"
#include "gst/base/handle.h"
#include "gst/meta/meta.h"
#include "gst/infer/network.h"
#include "gst/infer/properties.h"
#include "gst/infer/settings.h"
#include "gst/infer/shared_model.h"
#include "gst/infer/statistics.h"

namespace clinfer {

using Clock = std::chrono::steady_clock;

// What this element makes of the model, and the compiled model, which it may share. Immutable but
// for the batcher's own state.
struct Session {
  Network network;
  std::shared_ptr<SharedModel> shared;
};

// A frame on its way through the element. Destroying it waits for the device (the tickets do), then
// gives mapping and buffer back.
struct Job {
  struct Inference {
    InferenceRegion region;
    Placement placement;      // set when it is launched
    Clock::time_point begun;  // the same
    ModelBatcher::Ticket ticket;
  };
  Handle<GstBuffer> buffer;
  std::shared_ptr<const Session> session;
  std::unique_ptr<FrameInput> input;
  std::list<Inference> inferences;  // one of the whole frame, or one a region
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
  template <typename Change>
  void change_settings(Change&& change) {
    GST_OBJECT_LOCK(self_);
    change(settings_);
    GST_OBJECT_UNLOCK(self_);
  }
  Settings settings() const;
  // Thresholds in force for `network`, or for the session's.
  DecodeSettings decode_settings_for(const Network& network) const;
  DecodeSettings decode_settings_in_force() const override;
  GstStructure* stats() const override;

  // State changes; they throw Error.
  void open();     // NULL to READY: reads and checks the model
  void prepare();  // READY to PAUSED: starts compiling
  void finish();   // PAUSED to READY, pads inactive: stops compiling, waits for what is in flight
  void close();    // READY to NULL: releases everything

  // Pads.
  void activate(bool sink, bool active);
  GstFlowReturn chain(Handle<GstBuffer> buffer);
  GstFlowReturn sink_event(Handle<GstEvent> event);
  bool sink_query(GstQuery* query);
  bool src_event(Handle<GstEvent> event);
  bool src_query(GstQuery* query);
  void task();  // one round of the source pad's task
  // Called with what chain() or task() failed with.
  void fail(ErrorCode code, const char* what);
  GstFlowReturn failed_flow() const;  // what chain() gives upstream then

 private:
  struct QueryTicket {
    GstQuery* query = nullptr;
    std::promise<bool> answer;
  };
  // One of the three.
  struct Item {
    std::unique_ptr<Job> job;
    Handle<GstEvent> event;
    std::unique_ptr<QueryTicket> query;
  };

  // What fails together, in either thread, is one error: the first is told, and only then does
  // upstream get to know, which would tell of it, too. None behind a flush or the stream's end.
  template <typename Tell>
  void fail_once(Tell&& tell) {
    const std::lock_guard lock(failing_);
    if (flow_.load() != GST_FLOW_OK) return;
    tell();
    flow_reported_ = true;
    GstFlowReturn fine = GST_FLOW_OK;
    flow_.compare_exchange_strong(fine, GST_FLOW_ERROR);
  }
  void start_flush();
  void stop_flush();
  void start_task();
  bool set_caps(const GstEvent* event);
  std::shared_ptr<const Session> current_session() const;
  std::shared_ptr<const Session> wait_for_session();
  void compile(const Settings& settings, const Network& network,
               std::shared_ptr<const SurfaceDisplay> display);
  void compile_for(std::shared_ptr<const SurfaceDisplay> display);
  void stop_compiling();
  void warn_of_copies(const std::string& why);
  void report_tuning(const TuningReport& report);
  void post_progress(GstProgressType type, const std::string& text);
  size_t frames_in_flight_for(const Settings& settings) const;
  bool fed_live();
  Outcome wanted_outcome(GstBuffer* buffer);
  bool too_late(GstBuffer* buffer);
  void report_quality(GstBuffer* buffer);
  ModelBatcher::Patience patience(const Settings& settings) const;
  bool submit(Job& job, const Settings& settings, bool waits);
  void hurry();
  std::unique_ptr<FrameInput> make_input(const Job& job) const;
  void finish_frame(std::unique_ptr<Job> job, uint64_t generation);
  void forward_event(Handle<GstEvent> event);
  bool answer_allocation(GstQuery* query);
  void propose_memory(GstQuery* query, const GstCaps& caps);
  bool answer_latency(GstQuery* query);

  GstElement* self_;
  GstPad* sink_;
  GstPad* src_;
  Settings settings_;  // object lock

  // Of the state changes.
  std::shared_ptr<const Model> model_;
  std::string model_path_;
  Settings compile_settings_;
  Network network_;
  bool compiling_ = false;      // or compiled
  bool take_surfaces_ = false;  // as the properties say
  bool take_dmabufs_ = false;   // the same
  std::thread worker_;
  std::atomic<bool> cancel_{false};

  // The session: set by the worker, which then says on the bus how the compiling ended.
  mutable std::mutex mutex_;
  std::condition_variable session_ready_;
  std::shared_ptr<const Session> session_;
  bool compile_over_ = false;  // and on the bus; without a session it failed
  bool flushing_ = true;

  // Of the streaming thread.
  GstVideoInfo info_;
  bool has_caps_ = false;
  bool has_surfaces_ = false;                      // the frames are VA surfaces
  std::shared_ptr<const SurfaceDisplay> display_;  // what the model is compiled for
  GstSegment segment_;
  uint64_t frame_number_ = 0;
  bool dropped_ = false;  // frames, since the last one that went on
  bool asked_live_ = false;
  ModelBatcher::Stream stream_;

  FrameQueue<Item> queue_;
  std::mutex failing_;  // held while a failure is posted
  std::atomic<GstFlowReturn> flow_{GST_FLOW_FLUSHING};
  std::atomic<bool> flow_reported_{false};   // upstream or the bus knows of flow_
  std::atomic<unsigned> pending_starts_{0};  // SEGMENT and STREAM_START events in the queue
  std::atomic<bool> warned_of_copies_{false};
  std::atomic<bool> asked_early_{false};  // what memory is best, when it was not known yet
  std::atomic<bool> has_dmabuf_{false};   // the frames are of memory:DMABuf
  bool dropping_ = false;                 // of the task: downstream is at EOS

  // Quality of service; object lock.
  struct Qos {
    GstClockTime earliest = GST_CLOCK_TIME_NONE;
    double proportion = 1;
    guint64 processed = 0, dropped = 0;
  } qos_;

  std::atomic<bool> live_{false};
  ServiceTime service_time_;
  mutable Statistics statistics_;
};

}  // namespace clinfer
