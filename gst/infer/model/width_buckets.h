// Compiles a text recogniser whose width is open for a few widths. Each line of text goes to the
// narrowest network that holds it.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "gst/infer/model/interruption.h"
#include "gst/infer/model/model_loader.h"
#include "kernels/base/system/task.h"

namespace clinfer {

// The streaming thread and state changes call session_for() and clear(); any thread may call the
// others. Each width is compiled at most once, when a line first needs it.
class WidthBuckets {
 public:
  explicit WidthBuckets(GstElement* element) : element_(element) {}
  ~WidthBuckets() { stop(); }

  // Returns the session for a line of `width` x `height` pixels; `base` if its width fits or the
  // width is not open. While the right one is being compiled, blocks if `waits`, or else returns
  // the next best one.
  std::shared_ptr<const Session> session_for(const std::shared_ptr<const Session>& base, int width,
                                             int height, bool waits);
  void flush_partial_batches(const ModelBatcher::Stream& stream) const;
  void interrupt(ModelBatcher::Stream& stream) const;
  // While interrupted, session_for() does not block.
  void set_interrupted(bool interrupted) { interruption_.set(interrupted); }
  // Returns the widths that are ready in addition to the base's: "160,640".
  std::string ready_widths() const;
  // Cancels what is being compiled, in less than a second, and keeps the widths that are ready.
  void stop();
  void clear();  // does what stop() does, and drops everything

 private:
  // Null if the width was refused, or nobody wants it any more.
  using Building = Task<std::shared_ptr<const Session>>;
  std::vector<std::shared_ptr<const Session>> sessions() const;
  Building& bucket(const std::shared_ptr<const Session>& base, int width);
  std::shared_ptr<const Session> build(const Session& base, int width, Building& task);
  std::shared_ptr<const Session> compile(const Session& base, int width, Building& task) const;

  GstElement* const element_;
  Interruption interruption_;
  std::timed_mutex building_;  // held while a width is compiled, so that one is compiled at a time
  std::shared_ptr<const Model> model_;  // from which the widths are compiled

  mutable std::mutex mutex_;  // guards the members below
  std::map<int, std::unique_ptr<Building>> buckets_;
};

}  // namespace clinfer
