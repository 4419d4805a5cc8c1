// Implements the property verify: computes every Nth inference again on the host, in the
// background.
#pragma once

#include <gst/gst.h>

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "gst/infer/model/model_check.h"
#include "gst/infer/model/verify_sample.h"

namespace clinfer {

// The streaming thread calls begin(), the source pad's task verify() and report(); state changes
// call stop() while both are stopped. Any thread may call add_to(). No call waits for the
// background's work, except stop(), which takes milliseconds.
class Verification {
 public:
  explicit Verification(GstElement* element) : element_(element) {}
  ~Verification() { stop(); }

  // Called for each frame that is inferred, with the number of its inferences. Returns a sample if
  // one of them is to be verified: that of every `interval`th frame (0: of none), unless another
  // one is in work, or the host computes the frame itself.
  std::unique_ptr<VerifySample> begin(unsigned interval, const Session& session, size_t inferences);
  // Verifies a sample that has the device's outputs.
  void verify(std::unique_ptr<VerifySample> sample);
  // Posts what was found since the last call.
  void report();
  void stop();   // ends the work, without its result
  void clear();  // forgets what was counted

  // Adds verify-checked, verify-skipped, verify-differing, verify-layer and verify-problem.
  void add_to(GstStructure* stats) const;

 private:
  void work(const std::stop_token& stop);
  void check(const VerifySample& sample, const std::stop_token& stop);
  void post(const VerifyFinding& finding);

  GstElement* const element_;
  uint64_t frames_ = 0;  // that were inferred
  // True while there is a sample. It outlives this object where a sample does.
  const std::shared_ptr<std::atomic<bool>> busy_ = std::make_shared<std::atomic<bool>>(false);
  std::atomic<bool> gave_up_{false};  // the host cannot compute the network
  std::atomic<bool> has_news_{false};
  bool warned_ = false;

  mutable std::mutex mutex_;  // guards the members below
  std::condition_variable_any changed_;
  std::unique_ptr<VerifySample> next_;
  std::vector<VerifyFinding> news_;
  std::string problem_, layer_;
  bool told_problem_ = false;
  uint64_t checked_ = 0, skipped_ = 0, differing_ = 0;
  // Declared last, because the thread must stop before the other members go.
  std::jthread thread_;
};

}  // namespace clinfer
