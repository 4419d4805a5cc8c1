// A text recogniser whose width is open, compiled for few widths: each line of text goes to the
// narrowest network that holds it.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "gst/infer/interruption.h"
#include "gst/infer/model_loader.h"
#include "kernels/base/task.h"

namespace clinfer {

// session_for() and clear() are called by the streaming thread and by state changes; the others by
// any thread. Each width is compiled at most once, when a line first needs it.
class WidthBuckets {
 public:
  explicit WidthBuckets(GstElement* element) : element_(element) {}
  ~WidthBuckets() { stop(); }

  // The session for a line of `width` x `height` pixels; `base` where its width fits or the width is
  // not open. While the right one is being compiled: blocks if `waits`, else the next best.
  std::shared_ptr<const Session> session_for(const std::shared_ptr<const Session>& base, int width,
                                             int height, bool waits);
  void flush_partial_batches(const ModelBatcher::Stream& stream) const;
  void interrupt(ModelBatcher::Stream& stream) const;
  // While interrupted, session_for() does not block.
  void set_interrupted(bool interrupted) { interruption_.set(interrupted); }
  // The widths that are ready besides the base's: "160,640".
  std::string ready_widths() const;
  // Cancels what is being compiled, in less than a second, and keeps the widths that are ready.
  void stop();
  void clear();  // as above, and drops everything

 private:
  // Null where the width was refused, or nobody wants it any more.
  using Building = Task<std::shared_ptr<const Session>>;
  std::vector<std::shared_ptr<const Session>> sessions() const;
  Building& bucket(const std::shared_ptr<const Session>& base, int width);
  std::shared_ptr<const Session> build(const Session& base, int width, Building& task);
  std::shared_ptr<const Session> compile(const Session& base, int width, Building& task) const;

  GstElement* const element_;
  Interruption interruption_;
  std::timed_mutex building_;           // held while a width is compiled: one after the other
  std::shared_ptr<const Model> model_;  // of the buckets

  mutable std::mutex mutex_;  // guards what follows
  std::map<int, std::unique_ptr<Building>> buckets_;
};

}  // namespace clinfer
