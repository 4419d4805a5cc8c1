// Classifying outputs: a vector of probabilities or logits each; one answer, or several where the
// labels do not exclude each other. Labels may come in groups, "type: car", one group an output.
#include <algorithm>

#include "engine/heads/common.h"
#include "engine/heads/heads.h"

namespace clinfer {
namespace {

enum class VectorKind { one_of, any_of, tensor };

struct VectorOutput {
  std::string name;
  size_t elements = 0;
  VectorKind kind = VectorKind::tensor;
  bool normalised = false;  // the graph ends in a softmax
  std::vector<std::string> labels;
};

// Number of elements when at most one dimension is not 1, else 0.
size_t vector_size(const Shape& shape) {
  size_t size = 1;
  for (int64_t dimension : shape) {
    if (dimension < 1 || (dimension != 1 && size != 1)) return 0;
    if (dimension != 1) size = static_cast<size_t>(dimension);
  }
  return size;
}

bool answers_to(const OutputFacts& output, const std::string& group) {
  const std::string wanted = lower(group);
  return lower(output.name) == wanted ||
         std::any_of(output.aliases.begin(), output.aliases.end(),
                     [&](const std::string& alias) { return lower(alias) == wanted; });
}

// Splits labels at the lines "group: label" whose group is an output's name.
std::vector<std::pair<size_t, std::vector<std::string>>> label_groups(const ModelFacts& facts) {
  std::vector<std::pair<size_t, std::vector<std::string>>> groups;
  for (const std::string& label : facts.labels) {
    const size_t colon = label.find(':');
    bool starts = false;
    for (size_t i = 0; colon != std::string::npos && i < facts.outputs.size() && !starts; ++i) {
      if (!answers_to(facts.outputs[i], label.substr(0, colon))) continue;
      size_t from = colon + 1;
      while (from < label.size() && label[from] == ' ') ++from;
      groups.push_back({i, {label.substr(from)}});
      starts = true;
    }
    if (!starts && !groups.empty()) groups.back().second.push_back(label);
  }
  return groups;
}

// Probabilities from what the output holds.
std::vector<float> probabilities(const Tensor& tensor, const VectorOutput& output) {
  Floats values(tensor);
  std::vector<float> p(values.data(), values.data() + values.size());
  for (float& v : p)
    if (!std::isfinite(v)) v = v > 0 ? 1e30f : -1e30f;
  if (tensor.type() == ElementType::u8)
    for (float& v : p) v /= 255.0f;
  if (output.normalised || !is_float(tensor.type())) return p;
  const bool in_range =
      std::all_of(p.begin(), p.end(), [](float v) { return v >= -0.001f && v <= 1.001f; });
  if (output.kind == VectorKind::any_of) {
    if (!in_range)
      for (float& v : p) v = sigmoid(v);
    return p;
  }
  double sum = 0;
  for (float v : p) sum += v;
  if (in_range && std::fabs(sum - 1) < 0.05) return p;
  const float top = *std::max_element(p.begin(), p.end());
  sum = 0;
  for (float& v : p) sum += v = std::exp(v - top);
  for (float& v : p) v = static_cast<float>(v / sum);
  return p;
}

void classify(const VectorOutput& output, const Tensor& tensor, const DecodeSettings& settings,
              Results& results) {
  const std::vector<float> p = probabilities(tensor, output);
  auto add = [&](size_t i) {
    results.classifications.push_back({output.name, static_cast<int>(i),
                                       i < output.labels.size() ? output.labels[i] : "",
                                       std::clamp(p[i], 0.0f, 1.0f)});
  };
  if (output.kind == VectorKind::one_of) {
    add(static_cast<size_t>(std::max_element(p.begin(), p.end()) - p.begin()));
    return;
  }
  for (size_t i = 0; i < p.size(); ++i)
    if (p[i] >= settings.threshold) add(i);
}

// A copy of its own; floats are f32, whatever the device computes in.
void keep_tensor(const std::string& name, const Tensor& tensor, Results& results) {
  const ElementType type = is_float(tensor.type()) ? ElementType::f32 : tensor.type();
  results.tensors.push_back({name, tensor.convert(type)});
}

}  // namespace

Match match_classification(const ModelFacts& facts) {
  constexpr size_t kMostClasses = 100000;
  const auto groups = label_groups(facts);
  const bool multilabel = lower(info(facts, "multilabel")) == "true";
  std::vector<VectorOutput> outputs;
  Fit fit = Fit::no;
  for (size_t i = 0; i < facts.outputs.size(); ++i) {
    const OutputFacts& facts_of = facts.outputs[i];
    VectorOutput output;
    output.name = facts_of.name;
    output.elements = vector_size(facts_of.shape);
    if (output.elements == 0 || output.elements > kMostClasses)
      return {Fit::no, "needs outputs that are vectors ([1,C])", {}};
    for (const auto& [index, labels] : groups)
      if (index == i && labels.size() == output.elements) output.labels = labels;
    if (groups.empty() && facts.labels.size() == output.elements) output.labels = facts.labels;
    output.normalised = facts_of.op == "SoftMax" || facts_of.op == "Softmax";
    const bool known = output.elements == 1000 || output.elements == 1001;
    if (output.elements >= 2 && (output.normalised || !output.labels.empty() || known)) {
      const bool several = multilabel || (facts_of.op == "Sigmoid" && !output.labels.empty());
      output.kind = several ? VectorKind::any_of : VectorKind::one_of;
      fit = Fit::certain;
    }
    outputs.push_back(std::move(output));
  }
  if (fit == Fit::no) {
    // Nothing says that a vector is a set of classes; it can be asked for.
    for (size_t i = 0; i < outputs.size(); ++i) {
      if (outputs[i].elements < 2) continue;
      outputs[i].kind =
          facts.outputs[i].op == "Sigmoid" || multilabel ? VectorKind::any_of : VectorKind::one_of;
      fit = Fit::possible;
    }
  }
  if (fit == Fit::no) return {Fit::no, "needs an output of two or more classes", {}};
  auto decode = [outputs](std::span<const Tensor> tensors, const DecodeSettings& settings,
                          Results& results) {
    for (size_t i = 0; i < outputs.size(); ++i) {
      const Tensor& tensor = output_of(tensors, i, outputs[i].elements);
      if (outputs[i].kind == VectorKind::tensor)
        keep_tensor(outputs[i].name, tensor, results);
      else
        classify(outputs[i], tensor, settings, results);
    }
  };
  return {fit, "vectors of class scores", decode};
}

Match match_tensors(const ModelFacts& facts) {
  std::vector<std::string> names;
  for (const OutputFacts& output : facts.outputs) names.push_back(output.name);
  auto decode = [names](std::span<const Tensor> outputs, const DecodeSettings&, Results& results) {
    for (size_t i = 0; i < outputs.size(); ++i)
      if (!outputs[i].empty())
        keep_tensor(i < names.size() ? names[i] : std::to_string(i), outputs[i], results);
  };
  return {Fit::possible, "raw tensors", decode};
}

}  // namespace clinfer
