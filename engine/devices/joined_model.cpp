// Combines what several compiled models tell about themselves.
#include "engine/devices/joined_model.h"

#include <algorithm>

namespace clinfer {

namespace {

void add(TuningReport& all, const TuningReport& one, const std::string& device) {
  all.mode = one.mode;
  all.file = one.file;
  all.hits += one.hits;
  all.misses += one.misses;
  all.lapsed += one.lapsed;
  all.shipped += one.shipped;
  all.modelled += one.modelled;
  for (LayerTuning layer : one.layers) {
    layer.layer = device + ": " + layer.layer;
    all.layers.push_back(std::move(layer));
  }
}

}  // namespace

JoinedModel::JoinedModel(std::shared_ptr<const Model> model, std::string list,
                         std::vector<std::shared_ptr<CompiledModel>> parts, const Config& config,
                         std::vector<std::string> warnings)
    : model_(std::move(model)), parts_(std::move(parts)), warnings_(std::move(warnings)) {
  device_ = parts_[0]->device();
  device_.id = list;
  std::vector<std::string> seen;
  for (const auto& part : parts_) {
    const DeviceInfo& one = part->device();
    load_ms_ = std::max(load_ms_, part->load_ms());
    add(tuning_, part->tuning(), one.id);
    for (const std::string& warning : part->warnings())
      if (std::find(warnings_.begin(), warnings_.end(), one.id + ": " + warning) == warnings_.end())
        warnings_.push_back(one.id + ": " + warning);
    if (std::find(seen.begin(), seen.end(), one.id) != seen.end()) continue;
    if (!seen.empty()) {
      device_.name += " + " + one.name;
      device_.compute_units += one.compute_units;
      device_.is_cpu = device_.is_cpu && one.is_cpu;
      device_.is_integrated = device_.is_integrated && one.is_integrated;
      device_.fp16 = device_.fp16 && one.fp16;
      device_.memory = std::min(device_.memory, one.memory);
    }
    seen.push_back(one.id);
  }
  import_problem_ = list + ": several devices read frames from system memory";
  if (config.va_display.handle != nullptr) sharing_problem_ = import_problem_;
}

std::vector<DeviceUse> JoinedModel::devices() const {
  std::vector<DeviceUse> all;
  for (const auto& part : parts_)
    for (DeviceUse& use : part->devices()) all.push_back(std::move(use));
  return all;
}

size_t JoinedModel::cached_programs() const {
  size_t count = 0;
  for (const auto& part : parts_) count += part->cached_programs();
  return count;
}

size_t JoinedModel::built_programs() const {
  size_t count = 0;
  for (const auto& part : parts_) count += part->built_programs();
  return count;
}

void JoinedModel::refuse_import(SourcePlace place) const {
  throw Error(ErrorCode::unsupported, import_problem_, place);
}

std::shared_ptr<ImportedSurface> JoinedModel::import_surface(unsigned) { refuse_import(); }

std::string JoinedModel::check_surface(const std::shared_ptr<ImportedSurface>&, const Frame&) {
  refuse_import();
}

std::shared_ptr<ImportedMemory> JoinedModel::import_memory(MemoryHandle, int, size_t) {
  refuse_import();
}

std::string JoinedModel::check_memory(const ImportedPlanes&, const Frame&, const Frame&) {
  refuse_import();
}

}  // namespace clinfer
