// Keeps the flow return of the element's sink pad.
#pragma once

#include <gst/gst.h>

#include <atomic>
#include <mutex>
#include <optional>

#include "gst/base/guard.h"

namespace clinfer {

// The flow return of the chain function. Failures of both threads and refusals by downstream end
// it; the first one stays until a flush. Thread-safe.
class Flow {
 public:
  GstFlowReturn now() const { return flow_.load(); }
  bool is_fine() const { return now() == GST_FLOW_OK; }
  // Returns what now() does, for a caller that returns it upstream.
  GstFlowReturn tell_upstream() {
    const GstFlowReturn flow = now();
    if (flow != GST_FLOW_OK) reported_ = true;
    return flow;
  }
  // Returns the flow return after a failure, which another thread may not have noted yet.
  GstFlowReturn after_failure() const { return is_fine() ? GST_FLOW_ERROR : now(); }

  // Ends the flow, unless it has ended.
  void end(GstFlowReturn flow) {
    GstFlowReturn fine = GST_FLOW_OK;
    flow_.compare_exchange_strong(fine, flow);
  }
  // Calls `tell` at most once for each failure, before upstream sees the flow return (otherwise
  // upstream would post a second error). Does nothing while flushing and after EOS.
  template <typename Tell>
  void fail_once(Tell&& tell) {
    const std::lock_guard lock(failing_);
    if (!is_fine()) return;
    tell();
    reported_ = true;
    end(GST_FLOW_ERROR);
  }
  // Makes the flow fine again if `reason`, by which it ended, does not hold any more.
  void go_on_after(GstFlowReturn reason) {
    if (flow_.compare_exchange_strong(reason, GST_FLOW_OK)) reported_ = false;
  }
  // Returns, once, the failure of which the application must be told at EOS, because no later frame
  // returns it upstream.
  std::optional<GstFlowReturn> claim_report() {
    const GstFlowReturn flow = now();
    if (flow != GST_FLOW_NOT_LINKED && flow >= GST_FLOW_EOS) return std::nullopt;
    return reported_.exchange(true) ? std::nullopt : std::optional(flow);
  }

  void start_flush() { flow_ = GST_FLOW_FLUSHING; }
  void stop_flush() {
    reported_ = false;
    flow_ = GST_FLOW_OK;
  }

 private:
  std::mutex failing_;  // held while a failure is posted
  std::atomic<GstFlowReturn> flow_{GST_FLOW_FLUSHING};
  std::atomic<bool> reported_{false};  // true if upstream or the application knows of flow_
};

}  // namespace clinfer
