// The working part of the clinfer element, behind its GObject shell (clinfer.cpp).
//
// Each thread has a class that owns what it writes: the streaming thread an Intake, which hands frames to
// idle requests and queues them; the source pad's task a Delivery, which waits for the oldest, decodes and
// pushes. The loader's thread compiles (ElementModel). The element itself has what state changes write; any
// thread reads statistics. The model's batcher (batcher.h) may be shared with other elements. No lock is
// held over a push, a wait for the device or an engine call.
#pragma once

#include <mutex>
#include <optional>

#include "gst/infer/delivery.h"
#include "gst/infer/element_model.h"
#include "gst/infer/element_shared.h"
#include "gst/infer/intake.h"
#include "gst/infer/ticker.h"

namespace clinfer {

class Element final : public Readings {
 public:
  Element(GstElement* self, GstPad* sink, GstPad* src);
  ~Element();

  // Properties; any thread.
  void set_property(guint id, const GValue* value);
  std::shared_ptr<const Settings> settings() const { return shared_.settings.now(); }
  DecodeSettings decode_settings_in_force() const override;
  GstStructure* stats() const override;

  // State changes; they throw Error.
  void open();     // NULL to READY: reads and checks the model
  void prepare();  // READY to PAUSED: starts compiling
  void finish();   // PAUSED to READY, pads inactive: stops compiling, waits for what is in flight
  void close();    // READY to NULL: releases everything
  void play(bool plays);  // PAUSED to PLAYING, and back: messages come while it plays

  // Pads.
  void activate(bool sink, bool active);
  GstFlowReturn chain(Handle<GstBuffer> buffer) { return intake_.chain(std::move(buffer)); }
  GstFlowReturn sink_event(Handle<GstEvent> event);
  bool sink_query(GstQuery* query) { return intake_.take_query(query); }
  bool src_event(Handle<GstEvent> event);
  bool src_query(GstQuery* query);
  // Reports an exception of the streaming thread or of the task.
  void fail(const Failure& failure);
  // The flow return of chain() after a failure.
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
  ElementModel model_;
  Intake intake_;
  Delivery delivery_;
  // From READY to PAUSED on: the settings that do not change meanwhile. The object lock guards them.
  std::optional<Settings> in_force_;

  std::mutex ticking_;  // guards what follows
  bool plays_ = false;
  Ticker stats_ticker_, frozen_ticker_;
};

}  // namespace clinfer
