// Makes the first tier of a model beside its compilation, once it is clear that kernels have to be
// compiled.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <thread>

#include "engine/engine.h"

namespace clinfer {

namespace host {
class HostModel;
}

// A first tier that no other tier follows, where no device can be had; `warning` says why.
std::shared_ptr<CompiledModel> compile_for_host(const std::shared_ptr<const Model>& model,
                                                const Config& config, std::string warning);

// Thread-safe. Shared with the compiling threads, which may outlive its creator.
class FirstTierMaker {
 public:
  // `ready` may be empty: then nothing is made.
  FirstTierMaker(std::shared_ptr<const Model> model, const Config& config, FirstTier ready);
  ~FirstTierMaker() { stop(); }
  FirstTierMaker(const FirstTierMaker&) = delete;
  FirstTierMaker& operator=(const FirstTierMaker&) = delete;

  // Begins to make it, on a thread of its own. The first call counts.
  void begin();

  // Ends what is under way, which takes milliseconds; `ready` is not called any more afterwards.
  void stop();

  // The first tier, once it is made; else null.
  std::shared_ptr<const host::HostModel> made();

  // While what is returned lives, the first tier computes nothing: for measurements. Waits for the
  // inference under way. To be released by the calling thread. Throws Error{cancelled} where `go_on`
  // says no.
  std::shared_ptr<void> pause(const std::function<bool()>& go_on);

 private:
  void make();

  const std::shared_ptr<const Model> model_;
  const Config config_;
  const FirstTier ready_;
  std::atomic<bool> begun_{false}, stopped_{false};
  std::mutex mutex_;  // guards what follows
  std::shared_ptr<host::HostModel> made_;
  std::thread thread_;
};

}  // namespace clinfer
