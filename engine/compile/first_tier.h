// Makes the first tier of a model beside its compilation, once it is clear that kernels have to be
// compiled.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "engine/engine.h"
#include "kernels/base/task.h"

namespace clinfer {

namespace host {
class HostModel;
}

// A first tier that no other tier follows, where no device can be had; `warning` says why.
std::shared_ptr<CompiledModel> compile_for_host(const std::shared_ptr<const Model>& model,
                                                const Config& config, std::string warning);

// Takes models that compute until the one that was asked for is compiled; null: there will be no first
// tier. Called on any thread, at one time on one.
using Offer = std::function<void(std::shared_ptr<CompiledModel>)>;

// Used by the thread that compiles.
class FirstTierMaker {
 public:
  // Without an offer nothing is made.
  FirstTierMaker(std::shared_ptr<const Model> model, const Config& config, Offer offer);

  // Begins to make it, on a thread of its own. The first call counts.
  void begin();

  // Ends what is under way, which takes milliseconds; nothing is offered any more afterwards.
  void stop();

  // The first tier, once it is made; else null.
  std::shared_ptr<const host::HostModel> made() const { return made_so_far(); }

  // While what is returned lives, the first tier computes nothing: for measurements. Waits for the
  // inference under way. To be released by the calling thread. Throws Error{cancelled} where `go_on`
  // says no.
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
