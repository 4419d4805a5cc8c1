// Makes periodic calls from the thread of GStreamer's system clock, because a stream that stands
// still has no thread that could report it.
#pragma once

#include <gst/gst.h>

#include <chrono>

namespace clinfer {

// Not thread-safe.
class Ticker {
 public:
  using Tick = void (*)(GstElement*);

  Ticker() = default;
  ~Ticker() { stop(); }
  Ticker(const Ticker&) = delete;
  Ticker& operator=(const Ticker&) = delete;

  // Calls `tick` every `interval` (above 0), for the first time after one interval. Keeps `owner`
  // alive for each call.
  void start(GstElement* owner, std::chrono::milliseconds interval, Tick tick) {
    stop();
    GstClock* clock = gst_system_clock_obtain();
    const auto period = static_cast<GstClockTime>(interval.count()) * GST_MSECOND;
    id_ = gst_clock_new_periodic_id(clock, gst_clock_get_time(clock) + period, period);
    gst_object_unref(clock);
    const auto call = [](GstClock*, GstClockTime, GstClockID, gpointer data) -> gboolean {
      auto* self = static_cast<Call*>(data);
      self->tick(self->owner);
      return TRUE;
    };
    const auto forget = [](gpointer data) {
      auto* self = static_cast<Call*>(data);
      gst_object_unref(self->owner);
      delete self;
    };
    gst_clock_id_wait_async(id_, call, new Call{GST_ELEMENT(gst_object_ref(owner)), tick}, forget);
  }
  // Stops. A call that has begun may continue.
  void stop() {
    if (id_ == nullptr) return;
    gst_clock_id_unschedule(id_);
    gst_clock_id_unref(id_);
    id_ = nullptr;
  }

 private:
  struct Call {
    GstElement* owner;
    Tick tick;
  };
  GstClockID id_ = nullptr;
};

}  // namespace clinfer
