// Reads classifying outputs: each is a vector of probabilities or logits, for one answer, or for
// several if the labels do not exclude each other. Labels may come in groups, "type: car", one
// group for each output.
#include <algorithm>
#include <charconv>

#include "engine/heads/base/common.h"
#include "engine/heads/base/conventions.h"
#include "engine/heads/base/heads.h"
#include "engine/heads/classes/hierarchy.h"
#include "engine/heads/pictures/maps.h"

namespace clinfer {
namespace {

// share: a probability of the second of two classes, or of the only one
enum class VectorKind { one_of, any_of, share, number, tensor };

struct VectorOutput {
  std::string name;
  size_t elements = 0;
  VectorKind kind = VectorKind::tensor;
  bool normalised = false;  // true if the graph ends in a softmax
  std::vector<std::string> labels;
  float scale = 1;  // factor for a number
};

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

// Returns probabilities from what the output holds. NaN stays NaN, and takes no share from the
// other classes.
std::vector<float> probabilities(const Tensor& tensor, const VectorOutput& output) {
  Floats values(tensor);
  std::vector<float> p(values.data(), values.data() + values.size());
  for (float& v : p)
    if (std::isinf(v)) v = v > 0 ? 1e30f : -1e30f;
  if (tensor.type() == ElementType::u8)
    for (float& v : p) v /= 255.0f;
  if (output.normalised || !is_float(tensor.type())) return p;
  const bool in_range =
      std::none_of(p.begin(), p.end(), [](float v) { return v < -0.001f || v > 1.001f; });
  if (output.kind == VectorKind::any_of) {
    if (!in_range)
      for (float& v : p) v = sigmoid(v);
    return p;
  }
  double sum = 0;
  float top = -1e30f;
  size_t numbers = 0;
  for (float v : p) {
    if (std::isnan(v)) continue;
    sum += v;
    top = std::max(top, v);
    ++numbers;
  }
  // The sum lacks the share of a class that is NaN.
  if (in_range && (std::fabs(sum - 1) < 0.05 || (sum < 1 && numbers < p.size()))) return p;
  sum = 0;
  for (float& v : p) {
    v = std::exp(v - top);
    if (!std::isnan(v)) sum += v;
  }
  for (float& v : p) v = static_cast<float>(v / sum);
  return p;
}

void classify(const VectorOutput& output, const Tensor& tensor, const DecodeSettings& settings,
              size_t top, Results& results) {
  const std::vector<float> p = probabilities(tensor, output);
  auto add = [&](size_t i) {
    results.classifications.push_back({output.name, static_cast<int>(i),
                                       i < output.labels.size() ? output.labels[i] : "",
                                       std::clamp(p[i], 0.0f, 1.0f)});
  };
  if (output.kind == VectorKind::one_of) {
    std::vector<size_t> order;
    for (size_t i = 0; i < p.size(); ++i)
      if (!std::isnan(p[i])) order.push_back(i);
    top = std::min(std::max<size_t>(top, 1), order.size());
    std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(top), order.end(),
                      [&](size_t a, size_t b) { return p[a] != p[b] ? p[a] > p[b] : a < b; });
    for (size_t i = 0; i < top; ++i) add(order[i]);
    return;
  }
  for (size_t i = 0; i < p.size(); ++i)
    if (p[i] >= settings.threshold) add(i);
}

// Adds the likelier one of two classes, of which the output tells the second's probability.
void add_share(const VectorOutput& output, const Tensor& tensor, const DecodeSettings& settings,
               Results& results) {
  const float share = Floats(tensor)[0];
  if (!(share >= -0.01f && share <= 1.01f)) {
    if (!std::isnan(share)) results.contradiction = output.name + " is not from 0 to 1";
    return;
  }
  const bool only = output.labels.size() == 1;  // its absence is no class
  const bool second = share >= 0.5f || only;
  const float p = std::clamp(second ? share : 1 - share, 0.0f, 1.0f);
  if (only && !(p >= settings.threshold)) return;
  const int label = second && !only ? 1 : 0;
  results.classifications.push_back(
      {output.name, label, output.labels.empty() ? "" : output.labels[static_cast<size_t>(label)],
       p});
}

// Adds a number as an answer, for example an age, like model-proc's converter "text": its text is
// the label.
void add_number(const VectorOutput& output, const Tensor& tensor, Results& results) {
  const float value = Floats(tensor)[0] * output.scale;
  if (!std::isfinite(value) || std::fabs(value) > 1e9f) {
    results.contradiction = output.name + " is not a finite number";
    return;
  }
  char text[32];
  const auto end = std::to_chars(text, text + sizeof text, value, std::chars_format::fixed, 1);
  results.classifications.push_back(
      {output.name, static_cast<int>(std::lround(value)), std::string(text, end.ptr), 1});
}

// Returns the factor by which model-proc multiplies an output that is a number.
std::optional<float> number_scale(const ModelFacts& facts, const OutputFacts& output) {
  if (vector_size(output.shape) != 1) return std::nullopt;
  std::vector<std::string> names = output.aliases;
  names.insert(names.begin(), output.name);
  names.emplace_back();  // a model-proc with one output need not name it
  for (const std::string& name : names)
    if (const auto scale = info_number(facts, "number_scale/" + name)) return scale;
  return std::nullopt;
}

// Returns whether the only output is one number with the name "age": years, as SSR-Net gives them.
bool is_lone_age(const ModelFacts& facts) {
  if (facts.outputs.size() != 1 || vector_size(facts.outputs[0].shape) != 1) return false;
  std::vector<std::string> names = facts.outputs[0].aliases;
  names.push_back(facts.outputs[0].name);
  return is_float_output(facts.outputs[0]) &&
         std::any_of(names.begin(), names.end(),
                     [](const std::string& name) { return lower(name) == "age"; });
}

// Returns whether the only output is one number that a sigmoid makes: the end of a network that
// tells two classes apart, as Keras builds it.
bool is_lone_share(const ModelFacts& facts) {
  return facts.outputs.size() == 1 && vector_size(facts.outputs[0].shape) == 1 &&
         facts.outputs[0].op == "Sigmoid" && is_float_output(facts.outputs[0]);
}

// Returns whether an output tells real faces from printed and replayed ones, as networks of
// Face-AntiSpoofing do, whose files have that name.
bool is_antispoof(const ModelFacts& facts, const OutputFacts& output) {
  const size_t classes = vector_size(output.shape);
  return facts.outputs.size() == 1 && facts.width == 128 && facts.height == 128 &&
         (classes == 2 || classes == 3) && is_called(facts, output, {"antispoof", "antispoofing"});
}

// Returns whether an output is of Silent-Face-Anti-Spoofing, whose files have the network's name.
bool is_minifasnet(const ModelFacts& facts, const OutputFacts& output) {
  return facts.outputs.size() == 1 && facts.width == 80 && facts.height == 80 &&
         vector_size(output.shape) == 3 && file_says(facts, "minifasnet");
}

// Returns whether the picture is one in colours, of a size of torchvision's classifiers, which people
// train for classes of their own.
bool is_like_torchvision(const ModelFacts& facts) {
  const bool usual = facts.width == 224 || facts.width == 256 || facts.width == 299;
  return usual && facts.width == facts.height && facts.channels == 3 && !facts.channels_last;
}

// Returns whether the only output is a vector that a fully connected layer makes.
bool is_connected_vector(const ModelFacts& facts) {
  const OutputFacts& output = facts.outputs[0];
  const size_t elements = vector_size(output.shape);
  return facts.outputs.size() == 1 && elements >= 2 && elements <= 1000 &&
         (output.op == "Add" || output.op == "MatMul" || output.op == "Multiply");
}

// Returns whether the model states that it classifies.
bool is_classifier(const ModelFacts& facts) {
  const std::string type = lower(info(facts, "model_type")), task = lower(info(facts, "task"));
  return type.find("classif") != std::string::npos || type == "label" ||
         task.find("classif") != std::string::npos;
}
bool is_explanation(const OutputFacts& output) { return name_has(output, {"saliency"}); }
bool is_feature_vector(const OutputFacts& output) {
  return name_has(output, {"feature_vector", "embedding"});
}

// Returns the names of `classes` classes. Either labels or classes may have a background as the
// first, which the other does not have (ImageNet's 1000 and 1001). Returns nothing if the numbers
// differ by more.
std::vector<std::string> labels_for(const std::vector<std::string>& labels, size_t classes) {
  if (labels.size() == classes) return labels;
  if (labels.size() == classes + 1 && is_background(labels[0]))
    return {labels.begin() + 1, labels.end()};
  if (labels.size() == 1000 && classes == 1001) {
    std::vector<std::string> names = labels;
    names.insert(names.begin(), "background");
    return names;
  }
  return {};
}

// Returns the attribute's name in model-proc, else the output's name.
std::string attribute_of(const ModelFacts& facts, const OutputFacts& output) {
  std::vector<std::string> names = output.aliases;
  names.insert(names.begin(), output.name);
  for (const std::string& name : names)
    if (std::string attribute = info(facts, "attribute_name/" + name); !attribute.empty())
      return attribute;
  const std::string general = info(facts, "attribute_name/");
  return general.empty() ? output.name : general;
}

// Returns how many answers an output gives: the best one, or model_info's topk.
size_t top_of(const ModelFacts& facts) {
  const auto stated = info_number(facts, "topk");
  return stated && *stated >= 1 && *stated <= 1000 ? static_cast<size_t>(*stated) : 1;
}

}  // namespace

namespace {

// Finds the output whose size is that of all groups of the tree together.
Match match_tree(const ModelFacts& facts, const ClassTree& tree) {
  for (size_t i = 0; i < facts.outputs.size(); ++i) {
    if (vector_size(facts.outputs[i].shape) != tree.logits || !is_float_output(facts.outputs[i]))
      continue;
    Match match;
    match.fit = Fit::certain;
    match.reason = std::to_string(tree.groups.size()) + " groups of classes in a tree";
    match.decode = [i, tree, attribute = attribute_of(facts, facts.outputs[i])](
                       std::span<const Tensor> outputs, const DecodeSettings& settings,
                       Results& results) {
      Floats values(output_of(outputs, i, tree.logits));
      classify_tree(tree, attribute, {values.data(), values.data() + tree.logits},
                    settings.threshold, results);
    };
    return match;
  }
  return {
      Fit::no,
      "hierarchical_config has " + std::to_string(tree.logits) + " classes, which no output has",
      {}};
}

}  // namespace

Match match_classification(const ModelFacts& facts) {
  if (const auto tree = class_tree(facts)) return match_tree(facts, *tree);
  constexpr size_t kMostClasses = 100000, kFewestOfSmall = 10;
  constexpr int kSmallPicture = 32;  // in pixels, of a side
  const auto groups = label_groups(facts);
  const bool multilabel = lower(info(facts, "multilabel")) == "true";
  const bool stated = is_classifier(facts);
  std::vector<VectorOutput> outputs;
  std::optional<size_t> sure, unsure;
  const bool age = is_lone_age(facts), share = is_lone_share(facts);
  Match match;
  for (size_t i = 0; i < facts.outputs.size(); ++i) {
    const OutputFacts& facts_of = facts.outputs[i];
    VectorOutput output;
    output.name = attribute_of(facts, facts_of);
    output.elements = vector_size(facts_of.shape);
    if (output.elements > kMostClasses) output.elements = 0;
    // A saliency map may accompany the scores; a model with other outputs is no classifier.
    if (output.elements == 0 && !stated && !is_explanation(facts_of))
      return {Fit::no, "needs outputs that are vectors ([1,C])", {}};
    for (const auto& [index, labels] : groups)
      if (index == i && labels.size() == output.elements) output.labels = labels;
    if (groups.empty()) output.labels = labels_for(facts.labels, output.elements);
    output.normalised = is_softmax(facts_of);
    const bool known = output.elements == 1000 || output.elements == 1001;
    const bool aside = is_explanation(facts_of) || is_feature_vector(facts_of);
    if (const auto scale = number_scale(facts, facts_of)) {
      output.kind = VectorKind::number;
      output.scale = *scale;
      sure = i;
    }
    if (age) {
      output.kind = VectorKind::number;
      sure = i;
    } else if (share && output.kind == VectorKind::tensor) {
      output.kind = VectorKind::share;
      if (facts.labels.size() <= 2) output.labels = facts.labels;
      sure = i;
    }
    const bool several = multilabel || (facts_of.op == "Sigmoid" && !output.labels.empty());
    const bool mini = is_minifasnet(facts, facts_of), spoof = mini || is_antispoof(facts, facts_of);
    if (mini && output.labels.empty()) output.labels = {"fake", "real", "fake"};
    if (spoof && output.labels.empty())
      output.labels = output.elements == 2 ? std::vector<std::string>{"real", "spoof"}
                                           : std::vector<std::string>{"real", "print", "replay"};
    if (spoof) match.picture = picture_of(mini ? Family::minifasnet : Family::antispoof);
    if (output.elements >= 2 && !aside &&
        (output.normalised || facts_of.op == "LogSoftmax" || spoof || !output.labels.empty() ||
         known || is_called_scores(facts_of) ||
         (stated && name_has(facts_of, {"logit", "prob", "score", "class"})))) {
      output.kind = several ? VectorKind::any_of : VectorKind::one_of;
      sure = i;
    } else if (output.elements >= 2 && !aside && !unsure) {
      unsure = i;
    }
    outputs.push_back(std::move(output));
  }
  match.fit = Fit::certain;
  match.reason = age ? "an age in years" : "vectors of class scores";
  if (age && facts.width == 64 && facts.height == 64) match.picture = picture_of(Family::age);
  if (share && outputs[0].kind == VectorKind::share) {
    // A number from 0 to 1 may be a measure, too, such as a quality.
    match.fit = stated || !outputs[0].labels.empty() ? Fit::certain : Fit::possible;
    match.reason = "the probability of the second of two classes";
  }
  // Data sets of small pictures (MNIST, CIFAR, SVHN) have ten classes or more, and their networks
  // often omit the softmax.
  const bool small = std::max(facts.width, facts.height) <= kSmallPicture;
  if (!sure && unsure && small && outputs.size() == 1 &&
      outputs[*unsure].elements >= kFewestOfSmall) {
    outputs[*unsure].kind = VectorKind::one_of;
    sure = unsure;
    match.fit = Fit::likely;
    if (!facts.channels_last && facts.width == kSmallPicture && facts.height == kSmallPicture)
      match.picture = picture_of(Family::small_pictures);
    match.assumptions.push_back("the " + std::to_string(outputs[*unsure].elements) +
                                " numbers are read as class scores, as usual for pictures of " +
                                std::to_string(facts.width) + "x" + std::to_string(facts.height) +
                                "; set post-process where they are something else");
  }
  if (!sure) {
    if (!unsure) return {Fit::no, "needs an output of two or more classes", {}};
    // Nothing says that the vector holds classes, so the head is used only on request, unless the
    // network looks like those that people train with torchvision.
    if (!stated && is_like_torchvision(facts) && is_connected_vector(facts)) {
      match.fit = Fit::possible;
      match.reason = "a vector of " + std::to_string(outputs[*unsure].elements) +
                     " numbers, in which classifiers of such pictures end";
    } else if (!stated) {
      match.fit = Fit::against;
      match.reason = "nothing says that they are class scores (labels, a softmax)";
    }
    for (size_t i = 0; i < outputs.size(); ++i)
      if (outputs[i].elements >= 2 && !is_feature_vector(facts.outputs[i]) &&
          !is_explanation(facts.outputs[i]))
        outputs[i].kind = facts.outputs[i].op == "Sigmoid" || multilabel ? VectorKind::any_of
                                                                         : VectorKind::one_of;
  }
  size_t scores = 0;
  for (const VectorOutput& output : outputs)
    if (output.kind == VectorKind::one_of || output.kind == VectorKind::any_of) {
      ++scores;
      if (groups.empty()) match.classes = output.elements;
    }
  if (scores != 1) match.classes = 0;  // labels belong to one of them
  if (share && outputs[0].kind == VectorKind::share) {
    match.classes = outputs[0].labels.size() == 1 ? 1 : 2;
    if (facts.channels_last) match.picture = picture_of(Family::keras_classes);
  }
  match.background = match.classes == 1001;
  if (scores == 1 && sure && from_paddle(facts, facts.outputs[*sure])) {
    const bool fifth = facts.width == 160 && facts.height == 80;
    const bool direction =
        match.classes == 2 && (fifth || (facts.width == 192 && facts.height == 48));
    if (direction) {
      match.picture = picture_of(fifth ? Family::text_line_direction : Family::text_direction);
      if (outputs[*sure].labels.empty()) outputs[*sure].labels = {"0", "180"};
    } else if (facts.width == 224 && facts.height == 224) {
      match.picture = picture_of(Family::paddle_clas);
    }
  }
  const bool softmax = scores == 1 && sure && outputs[*sure].normalised;
  if (softmax && match.classes == 2 && facts.width == 192 && facts.height == 32) {
    match.picture = picture_of(Family::text_line_side);
    if (outputs[*sure].labels.empty()) outputs[*sure].labels = {"180", "0"};
  }
  const bool all_softmax =
      sure && std::all_of(outputs.begin(), outputs.end(),
                          [](const VectorOutput& output) { return output.normalised; });
  if (softmax && match.classes == 2 && facts.width == 224 && facts.height == 224 &&
      is_called(facts, facts.outputs[*sure], {"nsfw", "opennsfw"}))
    match.picture = picture_of(Family::open_nsfw);
  else if (all_softmax && facts.channels_last && match.classes != 1000 && match.classes != 1001)
    match.picture = picture_of(Family::keras_classes);
  if (!match.picture && (match.classes == 1000 || match.classes == 1001))
    match.picture =
        picture_of(facts.channels_last ? Family::tensorflow_imagenet : Family::imagenet);
  if (!match.picture && match.classes >= 2 && is_like_torchvision(facts))
    match.picture = picture_of(Family::torchvision_classes);
  match.decode = [outputs, top = top_of(facts)](std::span<const Tensor> tensors,
                                                const DecodeSettings& settings, Results& results) {
    for (size_t i = 0; i < outputs.size(); ++i) {
      if (outputs[i].kind == VectorKind::number)
        add_number(outputs[i], output_of(tensors, i, 1), results);
      else if (outputs[i].kind == VectorKind::share)
        add_share(outputs[i], output_of(tensors, i, 1), settings, results);
      else if (outputs[i].kind != VectorKind::tensor)
        classify(outputs[i], output_of(tensors, i, outputs[i].elements), settings, top, results);
      else if (i < tensors.size() && !tensors[i].empty())
        keep_tensor(outputs[i].name, tensors[i], results);
    }
  };
  return match;
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
