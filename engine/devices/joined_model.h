// Implements what models on several devices have in common: combines the facts of their parts, and
// takes frames from system memory only.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "engine/engine.h"
#include "engine/runtime/network/problems.h"

namespace clinfer {

class JoinedModel : public CompiledModel {
 public:
  // `parts`: at least one, of the same or of different devices. `list`: the devices as the user
  // wrote them.
  JoinedModel(std::shared_ptr<const Model> model, std::string list,
              std::vector<std::shared_ptr<CompiledModel>> parts, const Config& config,
              std::vector<std::string> warnings);

  const Model& model() const override { return *model_; }
  const DeviceInfo& device() const override { return device_; }
  std::vector<DeviceUse> devices() const override;
  Precision precision() const override { return parts_[0]->precision(); }
  std::string launch() const override { return parts_[0]->launch(); }
  QueueHint priority() const override { return parts_[0]->priority(); }
  QueueHint throttle() const override { return parts_[0]->throttle(); }
  const std::vector<std::string>& warnings() const override { return warnings_; }
  std::vector<std::string> take_problems() override { return problems_.take(); }
  double load_ms() const override { return load_ms_; }
  const TuningReport& tuning() const override { return tuning_; }
  size_t cached_programs() const override;
  size_t built_programs() const override;
  const std::string& sharing_problem() const override { return sharing_problem_; }
  std::shared_ptr<ImportedSurface> import_surface(unsigned id) override;
  std::string check_surface(const std::shared_ptr<ImportedSurface>& surface,
                            const Frame& expected) override;
  const std::string& import_problem(MemoryHandle) const override { return import_problem_; }
  std::shared_ptr<ImportedMemory> import_memory(MemoryHandle kind, int fd, size_t bytes) override;
  std::string check_memory(const ImportedPlanes& planes, const Frame& picture,
                           const Frame& expected) override;

 protected:
  const std::vector<std::shared_ptr<CompiledModel>>& parts() const { return parts_; }
  void add_problem(std::string problem) { problems_.add(std::move(problem)); }

 private:
  [[noreturn]] void refuse_import(SourcePlace place = SourcePlace::here()) const;

  const std::shared_ptr<const Model> model_;
  const std::vector<std::shared_ptr<CompiledModel>> parts_;
  DeviceInfo device_;
  std::vector<std::string> warnings_;
  std::string sharing_problem_, import_problem_;
  TuningReport tuning_;
  double load_ms_ = 0;
  Problems problems_;
};

}  // namespace clinfer
