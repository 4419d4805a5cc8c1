// The part of the element that the source pad's task runs: frames, events and queries leave in the
// order in which they came.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "gst/infer/stream/element_model.h"
#include "gst/infer/stream/element_shared.h"
#include "gst/infer/stream/verification.h"

namespace clinfer {

// Waits for the oldest frame, decodes its results and pushes it. The task calls these functions;
// state changes and flushes call them while the task is stopped. Functions that any thread may call
// say so.
class Delivery {
 public:
  Delivery(ElementShared& shared, ElementModel& model, Verification& verification,
           const Readings& readings)
      : shared_(shared),
        model_(model),
        verification_(verification),
        readings_(readings),
        self_(shared.element) {}

  void round();    // one round of the task
  void restart();  // called before a stream begins
  void flush();    // the queue is empty, and frames of another position follow

  // Any thread may call these.
  bool answer_latency(GstQuery* query);
  void note_link();  // downstream may have other elements from now on

 private:
  using Finished = std::vector<std::pair<Job::Inference*, std::vector<Tensor>>>;
  struct Held {
    FrameResult result;
    std::map<size_t, RegionPlace> regions;  // of the parts, by InferenceRegion::index
    unsigned remaining = 0;
  };

  void finish_frame(std::unique_ptr<Job> job, uint64_t generation);
  // Returns the outputs of all inferences of a frame; no outputs if the frame passes without them.
  // Returns nothing for a frame that is dropped.
  std::optional<Finished> wait_for(Job& job, uint64_t generation);
  void decode(Job& job, FrameResult& result, const Finished& finished);
  void verify(Job& job, const Finished& finished);
  void repeat_results(const Job& job, FrameResult& result);
  bool goes_on_without(const Job& job, const std::exception& error);
  void hold_results(FrameResult& result, const Job& job);
  void repeat_still(const Job& job, FrameResult& result);
  void count_input(const Job& job);
  void push(Handle<GstBuffer> buffer, uint64_t generation);
  void forward_event(Handle<GstEvent> event);
  bool answer_allocation(GstQuery* query);
  void propose_memory(GstQuery* query, GstCaps& caps);
  void propose_exportable_memory(GstQuery* query, GstCaps& caps);

  ElementShared& shared_;
  ElementModel& model_;
  Verification& verification_;
  const Readings& readings_;
  GstElement* const self_;

  bool dropping_ = false;    // downstream is at EOS
  bool unanswered_ = false;  // the device did not answer, and the application was told
  bool warned_of_tiles_ = false;
  std::optional<Held> held_;  // of the last inferred frame

  // Downstream was relinked after the last call of follow_results().
  std::atomic<bool> relinked_{false};
  ServiceTime service_time_;
};

// Posts the element's statistics. Any thread may call this.
void post_stats(GstElement* element, const Readings& readings);

}  // namespace clinfer
