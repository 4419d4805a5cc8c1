// A compilation whose first tier and other models on the way are looked at.
#pragma once

#include <functional>
#include <memory>

#include "engine/engine.h"

namespace clinfer::test {

// Waits for the model that was asked for, and gives `take` each that computes before it.
inline std::shared_ptr<CompiledModel> compile_watched(
    std::shared_ptr<const Model> model, const Config& config,
    const std::function<void(const std::shared_ptr<CompiledModel>&)>& take) {
  const auto task = CompiledModel::begin(std::move(model), config);
  for (std::shared_ptr<CompiledModel> known;;) {
    const auto newest = task->newest();
    if (task->is_over()) return task->wait();
    if (newest != known) take(known = newest);
    task->wait_for_change(known);
  }
}

}  // namespace clinfer::test
