// Makes the first tier of a model beside its compilation, once it is clear that kernels have to be
// compiled.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "engine/engine.h"
#include "kernels/base/system/task.h"

namespace clinfer {

namespace host {
class HostModel;
}

// Makes a first tier that no other tier follows, for a system without a usable device; `warning`
// tells why.
std::shared_ptr<CompiledModel> compile_for_host(const std::shared_ptr<const Model>& model,
                                                const Config& config, std::string warning);

// Makes the network on the host; with Config::partial_batches for one image, if the model allows
// that. `longest`: of an inference, in seconds.
std::shared_ptr<host::HostModel> make_first_tier(const std::shared_ptr<const Model>& model,
                                                 const Config& config,
                                                 const std::function<void()>& may_go_on,
                                                 double longest);

// Receives models that compute until the wanted one is compiled; null means that there will be no
// first tier. Called on any thread, but one call at a time.
using Offer = std::function<void(std::shared_ptr<CompiledModel>)>;

// Makes the first tier. To be used by the thread that compiles.
class FirstTierMaker {
 public:
  // Makes nothing if `offer` is empty.
  FirstTierMaker(std::shared_ptr<const Model> model, const Config& config, Offer offer);

  // Starts making the tier on a thread of its own. Later calls do nothing.
  void begin();

  // Stops making it, which takes milliseconds. Nothing is offered afterwards.
  void stop();

  // Returns the first tier once it is made; else null.
  std::shared_ptr<const host::HostModel> made() const { return made_so_far(); }

  // Pauses the first tier for measurements until the returned object is released, which the calling
  // thread has to do. Waits for the inference under way. Throws Error{cancelled} if `go_on` returns
  // false.
  std::shared_ptr<void> pause(const std::function<bool()>& go_on);

 private:
  using Making = Task<std::shared_ptr<host::HostModel>>;
  std::shared_ptr<host::HostModel> make(const Making& task) const;
  std::shared_ptr<host::HostModel> made_so_far() const;

  const std::shared_ptr<const Model> model_;
  const Config config_;
  const Offer offer_;
  bool may_begin_;
  std::unique_ptr<Making> making_;
};

}  // namespace clinfer
