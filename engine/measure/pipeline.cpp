// Stores the best streams, requests and batch of a model as records of a tuning file.
#include "engine/measure/pipeline.h"

#include "engine/graph/graph.h"
#include "kernels/base/hash.h"
#include "tuning/op_key.h"
#include "tuning/tuning_cache.h"

namespace clinfer {

namespace {

constexpr const char* kFamily = "pipeline";
constexpr int kVersion = 1;
constexpr unsigned kMost = 1024;  // limit for streams, requests and images in a record

// Returns "Pipeline model=NAME/HASH f32 batch=8". The hash covers what the graph computes, but no
// weights.
std::string pipeline_key(const Model& model, const Config& config, const DeviceInfo& device,
                         unsigned batch) {
  uint64_t hash = fnv1a("");
  for (const auto& node : model.graph().nodes()) {
    hash = fnv1a(node->type, hash);
    for (const auto& [name, value] : node->attributes.all())
      hash = fnv1a(name + "=" + value + ";", hash);
    for (const NodeOutput& output : node->outputs) hash = fnv1a(to_string(output.shape), hash);
  }
  const bool half = config.precision == Precision::f16 ||
                    (config.precision == Precision::automatic && device.fp16);
  const Precision precision = half                                  ? Precision::f16
                              : config.precision == Precision::bf16 ? Precision::bf16
                                                                    : Precision::f32;
  return "Pipeline model=" + model.name() + "/" + hex(hash) + " " + name_of(precision) +
         " batch=" + (batch ? std::to_string(batch) : "auto");
}

}  // namespace

std::optional<PipelineChoice> find_pipeline(const Model& model, const Config& config,
                                            const DeviceInfo& device, unsigned batch) {
  const TuningMode mode = config.tuning_mode_in_force();
  if (mode == TuningMode::disabled || mode == TuningMode::retune) return {};
  const TuningCache cache = mode == TuningMode::create
                                ? TuningCache::read_or_empty(config.tuning_file)
                                : TuningCache::read(config.tuning_file);
  const std::string op = pipeline_key(model, config, device, batch);
  const TuningRecord* record = cache.find(device.compute_units, record_hash(op, device.name));
  if (!record || record->family != kFamily || record->op != op || record->driver != device.driver ||
      record->family_version != kVersion || !record->point)
    return {};
  PipelineChoice choice;
  for (const auto& [name, value] : record->point->values) {
    const bool sane = value > 0 && static_cast<unsigned>(value) <= kMost;
    unsigned* member = name == "STREAMS" ? &choice.streams
                       : name == "NIREQ" ? &choice.requests
                       : name == "BATCH" ? &choice.batch
                                         : nullptr;
    if (member && sane) *member = static_cast<unsigned>(value);
  }
  if (record->ns > 0) choice.images_per_second = 1e9 / record->ns;
  if (!choice.streams || !choice.requests || !choice.batch) return {};
  return choice;
}

void store_pipeline(const Model& model, const Config& config, const DeviceInfo& device,
                    const PipelineChoice& choice, bool best) {
  TuningRecord record;
  record.family = kFamily;
  record.index = 0;
  record.point = TuningPoint{{{"STREAMS", static_cast<int>(choice.streams)},
                              {"NIREQ", static_cast<int>(choice.requests)},
                              {"BATCH", static_cast<int>(choice.batch)}}};
  record.family_version = kVersion;
  record.device = device.name;
  record.driver = device.driver;
  record.ns = choice.images_per_second > 0 ? 1e9 / choice.images_per_second : 0;
  update_tuning_file(config.tuning_file, [&](TuningCache& cache) {
    for (const unsigned batch : {choice.batch, 0u}) {
      if (batch == 0 && !best) continue;
      record.op = pipeline_key(model, config, device, batch);
      cache.set(device.compute_units, record_hash(record.op, device.name), record);
    }
  });
}

}  // namespace clinfer
