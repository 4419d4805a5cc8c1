// Runs the checks of one element on a thread of lowest priority.
#include "gst/infer/stream/verification.h"

#include <pthread.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cmath>

#include "gst/base/handle.h"
#include "gst/base/log.h"
#include "gst/infer/model/shared_model.h"
#include "kernels/base/default_floats.h"
#include "kernels/base/system/threads.h"

#define GST_CAT_DEFAULT clinfer_debug

namespace clinfer {
namespace {

constexpr size_t kMostNews = 16;

}  // namespace

std::unique_ptr<VerifySample> Verification::begin(unsigned interval, const Session& session,
                                                  size_t inferences) {
  if (interval == 0 || inferences == 0 || session.shared->compiled->tier() == Tier::first ||
      gave_up_)
    return nullptr;
  const uint64_t number = frames_++;
  if (number % interval != 0) return nullptr;
  if (busy_->exchange(true)) {
    const std::lock_guard lock(mutex_);
    ++skipped_;
    return nullptr;
  }
  auto sample = std::make_unique<VerifySample>(busy_);
  sample->inference = number / interval % inferences;  // another one each time
  return sample;
}

void Verification::verify(std::unique_ptr<VerifySample> sample) {
  // Copies, since the device's requests want the memory back.
  for (Tensor& output : sample->outputs) output = output.convert(output.type());
  if (!thread_.joinable())
    thread_ = start_thread<std::jthread>([this](const std::stop_token& stop) { work(stop); });
  {
    const std::lock_guard lock(mutex_);
    next_.swap(sample);
  }
  changed_.notify_one();
}

void Verification::work(const std::stop_token& stop) {
  const DefaultFloats floats;
  pthread_setname_np(pthread_self(), "clinfer:verify");  // shown by top and gdb
  // The lowest that still gets a share: a thread that is never run could hold a lock of malloc.
  setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()), 19);
  for (;;) {
    std::unique_ptr<VerifySample> sample;
    {
      std::unique_lock lock(mutex_);
      if (!changed_.wait(lock, stop, [this] { return next_ != nullptr; })) return;
      sample.swap(next_);
    }
    check(*sample, stop);
  }
}

void Verification::check(const VerifySample& sample, const std::stop_token& stop) {
  std::optional<VerifyFinding> finding;
  std::string problem;
  try {
    finding = sample.session->shared->check->check(sample, stop);
  } catch (const Error& error) {
    if (error.code() == ErrorCode::cancelled) return;
    problem = error.what();
  } catch (const std::exception& error) {
    problem = error.what();
  }
  const std::lock_guard lock(mutex_);
  if (!finding) {
    problem_ = problem;
    gave_up_ = has_news_ = true;
    return;
  }
  ++checked_;
  if (finding->differs) ++differing_;
  if (finding->layer && !finding->layer->layer.empty())
    layer_ = finding->layer->in_frame ? "conversion of the frame" : finding->layer->layer;
  if (!finding->differs && !finding->layer) return;
  if (news_.size() < kMostNews) news_.push_back(std::move(*finding));
  has_news_ = true;
}

void Verification::report() {
  if (!has_news_.exchange(false)) return;
  std::vector<VerifyFinding> news;
  std::string problem;
  {
    const std::lock_guard lock(mutex_);
    news.swap(news_);
    if (!told_problem_) problem = problem_;
    told_problem_ = told_problem_ || !problem_.empty();
  }
  for (const VerifyFinding& finding : news) post(finding);
  if (!problem.empty())
    GST_ELEMENT_WARNING(element_, STREAM, NOT_IMPLEMENTED,
                        ("verify: results are not verified any more: %s", problem.c_str()),
                        (nullptr));
}

void Verification::post(const VerifyFinding& finding) {
  Handle<GstStructure> message(gst_structure_new(
      "clinfer-verify", "differs", G_TYPE_BOOLEAN, finding.differs, "timestamp", G_TYPE_UINT64,
      finding.timestamp, "what", G_TYPE_STRING, finding.what.c_str(), "output", G_TYPE_STRING,
      finding.output.c_str(), "difference", G_TYPE_DOUBLE, finding.difference, "explained",
      G_TYPE_DOUBLE, finding.explained, "objects-lost", G_TYPE_UINT64,
      static_cast<guint64>(finding.lost), "objects-added", G_TYPE_UINT64,
      static_cast<guint64>(finding.added), nullptr));
  if (finding.layer)
    gst_structure_set(message.get(), "layer", G_TYPE_STRING, finding.layer->layer.c_str(),
                      "layer-type", G_TYPE_STRING, finding.layer->type.c_str(), "layer-difference",
                      G_TYPE_DOUBLE, finding.layer->difference, "layer-largest-value",
                      G_TYPE_DOUBLE, finding.layer->largest_value, "in-frame", G_TYPE_BOOLEAN,
                      finding.layer->in_frame, nullptr);
  gst_element_post_message(element_,
                           gst_message_new_element(GST_OBJECT(element_), message.release()));
  if (finding.differs && !std::exchange(warned_, true))
    GST_ELEMENT_WARNING(
        element_, STREAM, DECODE,
        ("verify: the device's results differ from those of the host: %s", finding.what.c_str()),
        ("the layer at which it begins is looked for on the next frame that is "
         "verified; see docs/verify.md"));
}

void Verification::stop() {
  if (thread_.joinable()) {
    thread_.request_stop();
    thread_.join();
    thread_ = {};
  }
  next_.reset();
}

void Verification::clear() {
  frames_ = 0;
  warned_ = gave_up_ = has_news_ = false;
  const std::lock_guard lock(mutex_);
  news_.clear();
  problem_.clear();
  layer_.clear();
  told_problem_ = false;
  checked_ = skipped_ = differing_ = 0;
}

void Verification::add_to(GstStructure* stats) const {
  const std::lock_guard lock(mutex_);
  gst_structure_set(stats, "verify-checked", G_TYPE_UINT64, checked_, "verify-skipped",
                    G_TYPE_UINT64, skipped_, "verify-differing", G_TYPE_UINT64, differing_,
                    "verify-layer", G_TYPE_STRING, layer_.c_str(), "verify-problem", G_TYPE_STRING,
                    problem_.c_str(), nullptr);
}

}  // namespace clinfer
