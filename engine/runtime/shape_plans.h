// Models compiled for other shapes of open inputs than those of the model that an application has
// compiled.
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <vector>

#include "engine/engine.h"

namespace clinfer {

// Thread-safe. Two requests that need the same shapes at a time compile them once.
class ShapePlans {
 public:
  using Shapes = std::vector<Shape>;  // of all inputs
  // Compiles on the calling thread.
  using Compile = std::function<std::shared_ptr<CompiledModel>(
      const std::shared_ptr<const Model>& model, const Progress& progress)>;
  struct Plan {
    Shapes shapes;
    std::shared_ptr<CompiledModel> model;
  };

  // Keeps at most `most` plans.
  ShapePlans(std::shared_ptr<const Model> model, Compile compile, size_t most)
      : model_(std::move(model)), compile_(std::move(compile)), most_(most) {}

  // Returns the plan, which it compiles if there is none; another plan, the one that was unused
  // longest, then goes. Throws what compiling throws, Error{unsupported} for shapes that the model
  // does not allow, and Error{cancelled} once `cancelled` is true.
  std::shared_ptr<const Plan> find_or_compile(const Shapes& shapes,
                                              const std::atomic<bool>& cancelled);
  // Returns whether the plan is still kept.
  bool has(const Plan& plan) const;
  // Returns the shapes of all plans, those used last first.
  std::vector<Shapes> all() const;

 private:
  std::shared_ptr<const Plan> use(const Shapes& shapes);

  const std::shared_ptr<const Model> model_;
  const Compile compile_;
  const size_t most_;
  mutable std::mutex mutex_;  // guards the members below
  std::condition_variable changed_;
  std::list<std::shared_ptr<const Plan>> plans_;  // those used last first
  std::list<Shapes> compiling_;
};

// Returns the plans for a model with open inputs; nullptr where none is open, or where something
// depends on the shapes for which it is compiled: planes of pictures (Config::nv12_two_inputs), and
// states.
std::shared_ptr<ShapePlans> plans_for(const std::shared_ptr<const Model>& model,
                                      const Config& config, ShapePlans::Compile compile);

// Returns the configuration for these plans.
Config config_of_plans(const Config& config);

}  // namespace clinfer
