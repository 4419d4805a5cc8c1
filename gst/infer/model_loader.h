// Compiles the model of an element on a thread of its own, and reports the progress to the
// application.
#pragma once

#include <gst/gst.h>

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "gst/infer/interruption.h"
#include "gst/infer/network.h"
#include "gst/infer/settings.h"
#include "gst/infer/shared_model.h"
#include "kernels/base/task.h"

namespace clinfer {

// A compiled model, which other elements may share, and how this element uses it. Immutable but for
// the state of the batcher.
struct Session {
  Network network;
  std::shared_ptr<SharedModel> shared;
  Settings settings;  // from which both were made
};

// Warns of what was guessed about a model, and where no head was found for it; the reasons go to the
// log.
void say_what_was_settled(GstElement* element, const Network& network, const Settings& settings);

// The text of a progress message: what computes the network from now on, until it is compiled or for
// good.
std::string text_of_tier(const CompiledModel& running, const std::string& network, bool for_good);

// Warns of devices of several that have failed since the last call. Cheap where none has.
void say_problems(GstElement* element, CompiledModel& compiled);

// start(), use(), stop() and reset() are called by one thread at a time; the others by any thread.
// No lock is held while a model compiles or a message is posted.
class ModelLoader {
 public:
  // A model to compile; `display` is that of the frames' VA surfaces, or null. An empty network is
  // read and described first.
  struct Wanted {
    Settings settings;
    Network network;
    std::shared_ptr<const SurfaceDisplay> display;
  };
  // `previous`: the session that this one takes over from, or null.
  using Loaded = std::function<void(const Session& session, const Session* previous)>;

  // Messages are posted for `element`. `loaded` is called on the loader's thread, once session()
  // gives the new session and before the application is told.
  ModelLoader(GstElement* element, Loaded loaded);
  ~ModelLoader();  // as stop()

  // Stops what is under way, drops the session, and begins to compile.
  void start(Wanted wanted);
  // Compiles another model while session() stays what it is; the new session takes over when it is
  // ready. A failure is a warning then, and the old session stays. Any thread, also from a handler
  // of messages; does not block. False when nothing was started.
  bool replace(const Settings& settings);
  // Takes a session that needs no compiling.
  void use(std::shared_ptr<const Session> session);
  // Cancels the compilation under way and waits for its end, which takes less than a second.
  void stop();
  // As above, and drops the session; starts nothing.
  void reset();

  // Whether start() or use() was called since the last reset(), and for which display.
  bool is_started() const;
  std::shared_ptr<const SurfaceDisplay> display() const;

  // Null before the model or its first tier is ready, and where it failed.
  std::shared_ptr<const Session> session() const;
  // Blocks until the model is ready or has failed, and all messages about that are posted, or until
  // its first tier is ready. Null
  // when it failed, or at once while interrupted.
  std::shared_ptr<const Session> wait() const;
  // Whether there is a session, or compiling has failed; wait() would not block.
  bool is_over() const;
  // While interrupted, wait() does not block: the pads are flushing.
  void set_interrupted(bool interrupted) { interruption_.set(interrupted); }

 private:
  using Loading = Task<std::shared_ptr<const Session>>;
  class Watch;

  void begin(Wanted wanted);  // with the lock
  void forget_first();
  std::shared_ptr<const Session> load(Wanted wanted, Loading& task);
  std::shared_ptr<const Session> compile(const Wanted& wanted, Loading& task);
  void take_over(const std::shared_ptr<const Session>& session);
  void report(const Session& session);
  void post_progress(GstProgressType type, const char* text) const;

  GstElement* const element_;
  const Loaded loaded_;
  Interruption interruption_;

  mutable std::mutex mutex_;  // guards what follows
  bool started_ = false, stopping_ = false;
  bool has_full_ =
      false;  // since start() or use() there was a session that is not of the first tier
  std::shared_ptr<const SurfaceDisplay> display_;
  std::shared_ptr<const Session> session_;
  std::shared_ptr<const Loading> first_;  // of start(), until another follows; null after use()
  // Under way, in order: each waits for the end of the one before it.
  std::vector<std::shared_ptr<Loading>> loadings_;
};

}  // namespace clinfer
