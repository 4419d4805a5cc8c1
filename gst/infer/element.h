// The working part of the clinfer element, behind its GObject shell (clinfer.cpp).
//
// Each thread has a class that owns the data which the thread writes: the streaming thread an
// Intake, which hands frames to idle requests and queues them; the source pad's task a Delivery,
// which waits for the oldest frame, decodes and pushes. The loader's thread compiles
// (ElementModel). The element itself owns what state changes write; any thread reads statistics.
// The model's batcher (batcher.h) may be shared with other elements. No lock is held over a push, a
// wait for the device or an engine call.
#pragma once

#include <mutex>
#include <optional>

#include "gst/infer/element_targets.h"
#include "gst/infer/stream/delivery.h"
#include "gst/infer/stream/element_model.h"
#include "gst/infer/stream/element_shared.h"
#include "gst/infer/stream/intake.h"
#include "gst/infer/ticker.h"

namespace clinfer {

class Element final : public Readings {
 public:
  Element(GstElement* self, GstPad* sink, GstPad* src);
  ~Element();

  // Handle properties. Any thread may call these.
  void set_property(guint id, const GValue* value);
  std::shared_ptr<const Settings> settings() const { return shared_.settings.now(); }
  DecodeSettings decode_settings_in_force() const override;
  GstStructure* stats() const override;

  // Change the state. They throw Error.
  void open();     // NULL to READY: reads and checks the model
  void prepare();  // READY to PAUSED: starts compiling
  // PAUSED to READY, with inactive pads: stops compiling, waits for inferences in flight.
  void finish();
  void close();  // READY to NULL: releases everything
  // PAUSED to PLAYING, and back: periodic messages are posted while it plays.
  void play(bool plays);

  // Serve the pads.
  void activate(bool sink, bool active);
  GstFlowReturn chain(Handle<GstBuffer> buffer) { return intake_.chain(std::move(buffer)); }
  GstFlowReturn sink_event(Handle<GstEvent> event);
  bool sink_query(GstQuery* query) { return intake_.take_query(query); }
  bool src_event(Handle<GstEvent> event);
  bool src_query(GstQuery* query);
  // Reports an exception of the streaming thread or of the task.
  void fail(const Failure& failure);
  // Returns the flow return of chain() after a failure.
  GstFlowReturn failed_flow() const { return shared_.flow.after_failure(); }

 private:
  void take_over(const Session& session, const Session* previous);
  void change_rules(const Settings& settings);
  void start_tickers();
  void look_for_frames();
  void start_flush();
  void stop_flush();
  void start_task();

  ElementShared shared_;
  Verification verification_;
  ElementTargets targets_;
  ElementModel model_;
  Intake intake_;
  Delivery delivery_;
  // Set from READY to PAUSED on: the settings that do not change meanwhile. Guarded by the object
  // lock.
  std::optional<Settings> in_force_;

  std::mutex ticking_;  // guards the members below
  bool plays_ = false;
  Ticker stats_ticker_, frozen_ticker_, targets_ticker_;
};

}  // namespace clinfer
