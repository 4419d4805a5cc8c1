// Compiles the model of an element on a thread of its own, and reports progress to the application.
#pragma once

#include <gst/gst.h>

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "gst/infer/model/interruption.h"
#include "gst/infer/model/shared_model.h"
#include "gst/infer/settings/network.h"
#include "gst/infer/settings/settings.h"
#include "kernels/base/system/task.h"

namespace clinfer {

// A compiled model, which other elements may share, and how this element uses it. Immutable, except
// for the state of the batcher.
struct Session {
  Network network;
  std::shared_ptr<SharedModel> shared;
  Settings settings;  // from which both were made
};

// Warns of guesses about a model, and if no head was found for it; the reasons are logged.
void say_what_was_settled(GstElement* element, const Network& network, const Settings& settings);

// Returns the text of a progress message: what computes the network from now on, until it is
// compiled or permanently.
std::string text_of_tier(const CompiledModel& running, const std::string& network, bool for_good);

// Warns of those of several devices that have failed since the last call. Cheap if none has.
void say_problems(GstElement* element, CompiledModel& compiled);

// One thread at a time calls start(), use(), stop() and reset(); any thread may call the others. No
// lock is held while a model compiles or a message is posted.
class ModelLoader {
 public:
  // A model to compile. `display`: that of the frames' VA surfaces, or null. An empty network is
  // read and described first.
  struct Wanted {
    Settings settings;
    Network network;
    std::shared_ptr<const SurfaceDisplay> display;
  };
  // `previous`: the session that is replaced, or null.
  using Loaded = std::function<void(const Session& session, const Session* previous)>;

  // Posts messages for `element`. Calls `loaded` on the loader's thread, after session() has
  // changed and before the application is told.
  ModelLoader(GstElement* element, Loaded loaded);
  ~ModelLoader();  // does what stop() does

  // Cancels a compilation under way, drops the session, and begins to compile.
  void start(Wanted wanted);
  // Compiles another model while session() stays the same; the new session replaces it when it is
  // ready. A failure is then only a warning, and the old session stays. Does not block. Returns
  // false if nothing was started. Any thread may call this, also from a handler of messages.
  bool replace(const Settings& settings);
  // Makes `variant` compute from now on, if the session's model is another variant of the same
  // network once earlier loadings and calls of this are over. Does not block.
  void adopt(std::shared_ptr<SharedModel> variant);
  // Takes a session that needs no compiling.
  void use(std::shared_ptr<const Session> session);
  // Cancels the compilation under way and waits for its end, which takes less than a second.
  void stop();
  // Does what stop() does, and drops the session without starting anything.
  void reset();

  // Return whether start() or use() was called after the last reset(), and for which display.
  bool is_started() const;
  std::shared_ptr<const SurfaceDisplay> display() const;

  // Returns the session; null before the model or its first tier is ready, and if it failed.
  std::shared_ptr<const Session> session() const;
  // Blocks until the first tier is ready, or the model is ready or has failed and all messages
  // about that are posted. Returns null if it failed, and at once while interrupted.
  std::shared_ptr<const Session> wait() const;
  // Returns whether there is a session or compiling has failed, so that wait() would not block.
  bool is_over() const;
  // Interrupts, while the pads flush: wait() then does not block.
  void set_interrupted(bool interrupted) { interruption_.set(interrupted); }

 private:
  using Loading = Task<std::shared_ptr<const Session>>;
  class Watch;

  // ---- need the lock
  void begin(Loading::Work work);
  void begin(Wanted wanted);
  std::vector<std::shared_ptr<Loading>> take_ended();

  void forget_first();
  std::shared_ptr<const Session> load(Wanted wanted, Loading& task);
  std::shared_ptr<const Session> compile(const Wanted& wanted, Loading& task);
  void take_over(const std::shared_ptr<const Session>& session);
  void report(const Session& session);
  void post_progress(GstProgressType type, const char* text) const;

  GstElement* const element_;
  const Loaded loaded_;
  Interruption interruption_;

  mutable std::mutex mutex_;  // guards the members below
  bool started_ = false, stopping_ = false;
  bool has_full_ =
      false;  // true if, after start() or use(), there was a session that is not of the first tier
  std::shared_ptr<const SurfaceDisplay> display_;
  std::shared_ptr<const Session> session_;
  // The loading of start(), until another one follows; null after use().
  std::shared_ptr<const Loading> first_;
  // Loadings under way, in order: each waits for the end of the one before it.
  std::vector<std::shared_ptr<Loading>> loadings_;
};

}  // namespace clinfer
