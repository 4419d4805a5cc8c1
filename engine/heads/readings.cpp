// Makes readings: selections of a model's outputs.
#include "engine/heads/readings.h"

#include <algorithm>
#include <set>

#include "engine/heads/base/common.h"
#include "engine/heads/pictures/masks.h"

namespace clinfer {
namespace {

// Adds the batch axis that heads expect to outputs without one, since some exporters squeeze them.
// Returns false if no output lacks it.
bool add_batch(ModelFacts& facts) {
  const auto lacks = [](const OutputFacts& output) {
    return output.shape.size() >= 2 && output.shape[0] != 1;
  };
  if (std::none_of(facts.outputs.begin(), facts.outputs.end(), lacks)) return false;
  const bool all =
      std::none_of(facts.outputs.begin(), facts.outputs.end(),
                   [&](const auto& output) { return output.shape.size() >= 2 && !lacks(output); });
  for (OutputFacts& output : facts.outputs)
    if (all || lacks(output)) output.shape.insert(output.shape.begin(), 1);
  return true;
}

// Returns whether the output is a map of many channels, as backbones make them: [1,C,h,w].
bool is_feature_map(const OutputFacts& output) {
  return output.shape.size() == 4 && output.shape[1] >= 16 && output.shape[2] > 1 &&
         output.shape[3] > 1 && is_float_output(output);
}

// Returns whether the output belongs to an auxiliary head, which only training needs.
bool is_auxiliary(const OutputFacts& output) { return has_word(output, {"aux", "auxiliary"}); }

Reading with_outputs(const Reading& reading, const std::vector<size_t>& wanted) {
  Reading part{{}, with_outputs(reading.facts, wanted)};
  for (const size_t i : wanted) part.outputs.push_back(reading.outputs[i]);
  return part;
}

// Splits a name such as "output1" or "Identity_3" into the text before its number, and the number;
// 0 without one.
std::pair<std::string, uint64_t> stem_and_number(const std::string& name) {
  const size_t last = name.find_last_not_of("0123456789");
  const size_t at = last == std::string::npos ? 0 : last + 1;
  const auto number = number_of(name.substr(at));
  std::string stem = name.substr(0, at);
  while (!stem.empty() && (stem.back() == '_' || stem.back() == ':')) stem.pop_back();
  return {number ? stem : name, number.value_or(0)};
}

// Sorts outputs of one kind whose names differ only in a number by that number: exporters number
// outputs in their order, and converters may list them in another.
void sort_by_number(const ModelFacts& facts, std::vector<size_t>& outputs) {
  if (outputs.size() > kMostCompared) return;
  const auto named = [&](size_t k) { return stem_and_number(facts.outputs[outputs[k]].name); };
  for (size_t a = 0; a < outputs.size(); ++a)
    for (size_t b = a + 1; b < outputs.size(); ++b) {
      const OutputFacts &first = facts.outputs[outputs[a]], &second = facts.outputs[outputs[b]];
      if (first.type != second.type || first.shape != second.shape) continue;
      const auto [stem, number] = named(a);
      const auto [other_stem, other_number] = named(b);
      if (stem == other_stem && other_number < number) std::swap(outputs[a], outputs[b]);
    }
}

// Adds readings without outputs that explain the others, and without the feature maps beside rows,
// or beside a vector where they are of several sizes, the picture's among them, as those that a
// network makes one after another.
void add_fewer(const Reading& whole, std::vector<Reading>& readings) {
  const ModelFacts& facts = whole.facts;
  std::vector<size_t> answers, no_maps;
  bool rows = false, vectors = false, whole_size = false;
  std::set<Shape> maps;
  const auto prototypes = find_prototypes(facts);
  for (size_t i = 0; i < facts.outputs.size(); ++i) {
    const OutputFacts& output = facts.outputs[i];
    if (explains(output)) continue;
    answers.push_back(i);
    if (is_feature_map(output)) {
      maps.insert(output.shape);
      whole_size |= output.shape[2] == facts.height && output.shape[3] == facts.width;
    }
    if (is_feature_map(output) && !(prototypes && prototypes->output == i)) continue;
    no_maps.push_back(i);
    vectors = vectors || vector_size(output.shape) >= 2;
    rows = rows || (output.shape.size() <= 3 && vector_size(output.shape) == 0);
  }
  if (!answers.empty() && answers.size() < facts.outputs.size())
    readings.push_back(with_outputs(whole, answers));
  const bool on_the_way = !rows && vectors && whole_size && maps.size() >= 3;
  if (on_the_way)
    std::erase_if(no_maps, [&](size_t i) { return is_feature_map(facts.outputs[i]); });
  if ((rows || on_the_way) && no_maps.size() < answers.size())
    readings.push_back(with_outputs(whole, no_maps));
}

}  // namespace

ModelFacts with_outputs(const ModelFacts& facts, const std::vector<size_t>& wanted) {
  ModelFacts part = facts;
  part.outputs.clear();
  for (const size_t i : wanted) part.outputs.push_back(facts.outputs[i]);
  return part;
}

std::vector<Reading> readings_of(const ModelFacts& facts) {
  std::vector<size_t> main;
  for (size_t i = 0; i < facts.outputs.size(); ++i)
    if (!is_auxiliary(facts.outputs[i])) main.push_back(i);
  if (main.empty())
    for (size_t i = 0; i < facts.outputs.size(); ++i) main.push_back(i);
  sort_by_number(facts, main);
  Reading whole{main, with_outputs(facts, main)};
  std::vector<Reading> readings{whole};
  add_fewer(whole, readings);
  if (!add_batch(whole.facts)) return readings;
  readings.push_back(whole);
  add_fewer(whole, readings);
  return readings;
}

std::vector<Reading> readings_without_one(const Reading& reading) {
  constexpr size_t kMost = 16;
  std::vector<Reading> readings;
  const size_t n = reading.outputs.size();
  for (size_t left_out = 0; left_out < n && n >= 2 && n <= kMost; ++left_out) {
    const Shape& shape = reading.facts.outputs[left_out].shape;
    // A map or a vector may be left out; tables distinguish the heads.
    if (shape.size() != 4 && vector_size(shape) == 0) continue;
    std::vector<size_t> kept;
    for (size_t i = 0; i < n; ++i)
      if (i != left_out) kept.push_back(i);
    readings.push_back(with_outputs(reading, kept));
  }
  return readings;
}

Reading reading_of(const ModelFacts& facts, const std::vector<std::string>& names) {
  Reading reading;
  for (const std::string& name : names) {
    const auto found =
        std::find_if(facts.outputs.begin(), facts.outputs.end(), [&](const OutputFacts& output) {
          return output.name == name ||
                 std::count(output.aliases.begin(), output.aliases.end(), name) != 0;
        });
    if (found == facts.outputs.end())
      throw Error{ErrorCode::bad_argument, "outputs: the model has no output " + name +
                                               "; its outputs are " + describe(facts)};
    reading.outputs.push_back(static_cast<size_t>(found - facts.outputs.begin()));
  }
  std::sort(reading.outputs.begin(), reading.outputs.end());
  reading.outputs.erase(std::unique(reading.outputs.begin(), reading.outputs.end()),
                        reading.outputs.end());
  reading.facts = with_outputs(facts, reading.outputs);
  return reading;
}

bool explains(const OutputFacts& output) {
  return name_has(output, {"saliency_map", "feature_vector", "embedding"}) ||
         has_word(output, {"feat", "feats", "feature", "features"});
}

bool is_called_a_step(const OutputFacts& output) {
  return has_word(output, {"raw", "aux", "auxiliary", "enc", "encoder", "intermediate", "hidden",
                           "world"}) ||
         name_has(output, {"anchor", "multiclass_score"});
}

Decode decode_of(const Reading& reading, size_t all, Decode decode) {
  const bool as_stated = reading.outputs.size() == all &&
                         std::is_sorted(reading.outputs.begin(), reading.outputs.end());
  if (as_stated) return decode;
  return [outputs = reading.outputs, decode = std::move(decode)](
             std::span<const Tensor> tensors, const DecodeSettings& settings, Results& results) {
    std::vector<Tensor> own;
    for (const size_t i : outputs)
      if (i < tensors.size()) own.push_back(tensors[i]);
    decode(own, settings, results);
  };
}

}  // namespace clinfer
