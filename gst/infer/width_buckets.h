// A text recogniser whose width is open, compiled for few widths: each line of text goes to the
// narrowest network that holds it.
#pragma once

#include <atomic>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "gst/infer/model_loader.h"

namespace clinfer {

// session_for() and clear() are called by the streaming thread and by state changes; the others by
// any thread. Each width is compiled at most once, when a line first needs it, on a thread of its own.
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
  void set_interrupted(bool interrupted);
  // The widths that are ready besides the base's: "160,640".
  std::string ready_widths() const;
  // Cancels what is being compiled, in less than a second, and keeps the widths that are ready.
  void stop();
  void clear();  // as above, and drops everything

 private:
  struct Bucket {
    enum class State { wanted, ready, failed } state = State::wanted;
    std::shared_ptr<const Session> session;  // of the first tier already, while wanted
  };
  std::vector<std::shared_ptr<const Session>> sessions() const;
  void want(const std::shared_ptr<const Session>& base, int width);
  void loop();
  void compile(int width);

  GstElement* const element_;
  std::thread thread_;  // of the callers of session_for(), stop() and clear()
  std::atomic<bool> cancel_{false};

  mutable std::mutex mutex_;  // guards what follows
  mutable std::condition_variable changed_;
  std::shared_ptr<const Session> base_;  // what is compiled follows from it
  std::map<int, Bucket> buckets_;
  bool busy_ = false;  // the thread has work
  bool interrupted_ = true;
};

}  // namespace clinfer
