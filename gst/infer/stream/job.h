// The items that pass through the element: frames with their inferences, events and queries.
#pragma once

#include <chrono>
#include <condition_variable>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "gst/base/handle.h"
#include "gst/frames/frame_input.h"
#include "gst/infer/model/model_loader.h"
#include "gst/infer/model/verify_sample.h"
#include "gst/infer/settings/object_rules.h"
#include "gst/meta/meta.h"

namespace clinfer {

// A frame on its way through the element. Its destructor waits for the device (by the tickets),
// then unmaps the buffer and releases it.
struct Job {
  using Clock = std::chrono::steady_clock;
  struct Inference {
    InferenceRegion region;
    std::shared_ptr<const Session> session;  // the job's session, or that of another width
    Placement placement;                     // set when it is launched
    Clock::time_point begun;                 // when it was launched
    ModelBatcher::Ticket ticket;
  };
  Handle<GstBuffer> buffer;
  std::shared_ptr<const Session> session;  // null: the frame passes while the model is not ready
  std::shared_ptr<FrameInput> input;       // the batcher keeps it as long as the device needs it
  // Inputs for sessions of other widths, by model.
  std::map<const CompiledModel*, std::shared_ptr<FrameInput>> inputs_of_widths;
  std::list<Inference> inferences;             // one for the whole frame, or one per region
  std::vector<InferenceRegion> known_regions;  // tracked objects that already have a result
  bool still = false;  // true if nothing has changed since the last inference
  // If `still`: the regions, which were inferred before.
  std::vector<InferenceRegion> still_regions;
  bool copied_on_device = false;         // true if `input` is a copy that never left the device
  std::unique_ptr<VerifySample> sample;  // if an inference of the frame is verified
  // The properties at the time when the frame came.
  DecodeSettings decode;
  std::shared_ptr<const ObjectRules> rules;
  unsigned hold_results = 0;
  Outcome outcome = Outcome::run;
  Rect visible;
  bool has_target = false;              // an inference for target-latency
  bool discont = false;                 // frames were dropped before this one
  Clock::time_point arrived, admitted;  // when it came to the pad, and when there was room
};

// The answer to a query in the queue. (The destructor of a std::promise allocates memory.)
class QueryAnswer {
 public:
  // Gives the answer; later ones are ignored.
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

// A query in the queue. One that is dropped by a flush gets the answer no.
struct QueryTicket {
  explicit QueryTicket(GstQuery* asked) : query(asked) {}
  ~QueryTicket() { answer->give(false); }
  GstQuery* query;
  std::shared_ptr<QueryAnswer> answer = std::make_shared<QueryAnswer>();
};

// Exactly one of the three is set.
struct QueueItem {
  std::unique_ptr<Job> job;
  Handle<GstEvent> event;
  std::unique_ptr<QueryTicket> query;
};

}  // namespace clinfer
