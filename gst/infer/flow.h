// The flow return of the element's sink pad.
#pragma once

#include <gst/gst.h>

#include <atomic>
#include <mutex>
#include <optional>

#include "gst/base/guard.h"

namespace clinfer {

// The flow return of the chain function. Failures of both threads and downstream's refusals end it, and
// the first of them stays until a flush. Any thread may call each function.
class Flow {
 public:
  GstFlowReturn now() const { return flow_.load(); }
  bool is_fine() const { return now() == GST_FLOW_OK; }
  // As now(), for a caller that returns it upstream.
  GstFlowReturn tell_upstream() {
    const GstFlowReturn flow = now();
    if (flow != GST_FLOW_OK) reported_ = true;
    return flow;
  }
  // The flow return after a failure, which another thread may not have noted yet.
  GstFlowReturn after_failure() const { return is_fine() ? GST_FLOW_ERROR : now(); }

  // Ends the flow, unless it has ended.
  void end(GstFlowReturn flow) {
    GstFlowReturn fine = GST_FLOW_OK;
    flow_.compare_exchange_strong(fine, flow);
  }
  // Posts at most one error per failure, before upstream sees the flow return (else upstream would
  // post a second one). Silent while flushing and after EOS.
  template <typename Tell>
  void fail_once(Tell&& tell) {
    const std::lock_guard lock(failing_);
    if (!is_fine()) return;
    tell();
    reported_ = true;
    end(GST_FLOW_ERROR);
  }
  // Goes on if it ended by `reason`, which no longer holds.
  void go_on_after(GstFlowReturn reason) {
    if (flow_.compare_exchange_strong(reason, GST_FLOW_OK)) reported_ = false;
  }
  // The failure that the application is to be told of at EOS, since no later frame returns it
  // upstream; once.
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
  std::atomic<bool> reported_{false};  // upstream or the application knows of flow_
};

}  // namespace clinfer
