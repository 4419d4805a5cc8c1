// Recognises a line of text or a license plate: from scores of characters in steps from left to
// right, where a repeated character counts once and the blank separates (CTC), or from characters
// that the graph has picked already. The dictionary is the labels, one character each.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "engine/heads/base/conventions.h"
#include "engine/heads/base/heads.h"
#include "engine/heads/files/labels.h"
#include "engine/heads/pictures/maps.h"

namespace clinfer {
namespace {

constexpr size_t kFewestSteps = 4, kMostSteps = 4096;

struct Dictionary {
  std::vector<std::string> characters;  // by class; that of the blank is empty
  size_t blank = 0;
  bool assumed = false;  // true if nothing tells which class is the blank
};

// Returns the characters of `classes` classes; nullopt if the labels are for another number of
// classes.
std::optional<Dictionary> dictionary_for(const std::vector<std::string>& labels, size_t classes) {
  Dictionary dictionary;
  for (const std::string& label : labels)
    dictionary.characters.push_back(label.empty() || lower(label) == "<space>" ? " " : label);
  const auto named = std::find_if(labels.begin(), labels.end(), is_blank_name);
  // A dictionary that names its blank is complete; an editor may have removed the space at its end.
  if (named != labels.end() && (labels.size() == classes || labels.size() + 1 == classes)) {
    dictionary.characters.resize(classes, " ");
    dictionary.blank = static_cast<size_t>(named - labels.begin());
    dictionary.characters[dictionary.blank].clear();
    return dictionary;
  }
  // LPRNet and CRNN write the blank as a dash, at the end or at the beginning; ddddocr as an empty
  // text at the beginning.
  if (labels.size() == classes && named == labels.end())
    for (const size_t place : {classes - 1, size_t{0}})
      if (labels[place] == "-" || (place == 0 && labels[0].empty())) {
        dictionary.blank = place;
        dictionary.characters[place].clear();
        return dictionary;
      }
  // PP-OCR has the blank first, then the dictionary, and a space if it was trained with spaces. The
  // last line of some of its dictionaries is a space as well, which editors remove.
  const bool lost_space =
      !labels.empty() && labels.size() + 3 == classes && dictionary.characters.back() != " ";
  if (labels.empty() || labels.size() >= classes || (labels.size() + 2 < classes && !lost_space))
    return {};
  dictionary.characters.insert(dictionary.characters.begin(), "");
  dictionary.characters.resize(classes, " ");
  dictionary.assumed = labels.size() + 1 == classes;
  return dictionary;
}

// Returns the characters of China's plates that LPRNet was published with, the blank last
// (sirius-ai/LPRNet_Pytorch: data/load_data.py).
const std::vector<std::string>& characters_of_lprnet() {
  static const auto& kCharacters = *new const std::vector<std::string>([] {
    std::vector<std::string> characters = {"京", "沪", "津", "渝", "冀", "晋", "蒙", "辽",
                                           "吉", "黑", "苏", "浙", "皖", "闽", "赣", "鲁",
                                           "豫", "鄂", "湘", "粤", "桂", "琼", "川", "贵",
                                           "云", "藏", "陕", "甘", "青", "宁", "新"};
    for (const char c : std::string("0123456789ABCDEFGHJKLMNPQRSTUVWXYZIO-"))
      characters.emplace_back(1, c);
    return characters;
  }());
  return kCharacters;
}

// Returns the characters of China's plates that crnn_plate_recognition was published with, the
// blank first (we0091234/crnn_plate_recognition: plateLabel.py).
const std::vector<std::string>& characters_of_crnn_plates() {
  static const auto& kCharacters = *new const std::vector<std::string>([] {
    const std::vector<std::string>& lprnet = characters_of_lprnet();
    std::vector<std::string> characters = {"<blank>"};
    characters.insert(characters.end(), lprnet.begin(), lprnet.begin() + 31);
    for (const char* character : {"学", "警", "港", "澳", "挂", "使", "领", "民", "航", "危"})
      characters.emplace_back(character);
    for (const char c : std::string("0123456789ABCDEFGHJKLMNPQRSTUVWXYZ"))
      characters.emplace_back(1, c);
    characters.emplace_back("险");
    characters.emplace_back("品");
    return characters;
  }());
  return kCharacters;
}

// Returns the characters of PP-OCR's English networks (PaddlePaddle/PaddleOCR:
// ppocr/utils/en_dict.txt): those of ASCII from the digits on, then those before, and the space.
const std::vector<std::string>& characters_of_english() {
  static const auto& kCharacters = *new const std::vector<std::string>([] {
    std::vector<std::string> characters;
    for (char c = '0'; c <= '~'; ++c) characters.emplace_back(1, c);
    for (char c = '!'; c < '0'; ++c) characters.emplace_back(1, c);
    characters.emplace_back(" ");
    return characters;
  }());
  return kCharacters;
}

// Scores [steps, classes], with ones between or before; or [classes, steps], as in LPRNet.
struct StepScores {
  size_t index = 0, steps = 0, classes = 0;
  bool class_first = false;

  // Returns the scores of a step.
  const float* at(const Floats& values, size_t step, std::vector<float>& buffer) const {
    if (!class_first) return values.run(step * classes, classes, buffer);
    buffer.resize(classes);
    for (size_t c = 0; c < classes; ++c) buffer[c] = values[c * steps + step];
    return buffer.data();
  }
  StepScores turned() const { return {index, classes, steps, !class_first}; }
};

std::optional<StepScores> step_scores(const ModelFacts& facts) {
  for (size_t i = 0; i < facts.outputs.size(); ++i) {
    Shape dims;
    for (const int64_t d : facts.outputs[i].shape)
      if (d != 1) dims.push_back(d);
    if (dims.size() != 2 || !is_float_output(facts.outputs[i]) || dims[0] < 1 || dims[1] < 2)
      continue;
    const auto steps = static_cast<size_t>(dims[0]), classes = static_cast<size_t>(dims[1]);
    if (steps >= kFewestSteps && steps <= kMostSteps) return StepScores{i, steps, classes};
  }
  return {};
}

// Returns the most likely class of a step and its confidence: the probability itself, else by the
// softmax.
std::pair<size_t, float> pick(const float* scores, size_t classes, bool probabilities) {
  size_t best = 0;
  for (size_t c = 1; c < classes; ++c)
    if (scores[c] > scores[best] || std::isnan(scores[best])) best = c;
  if (probabilities || std::isnan(scores[best])) return {best, scores[best]};
  double sum = 0;
  for (size_t c = 0; c < classes; ++c)
    if (!std::isnan(scores[c])) sum += std::exp(static_cast<double>(scores[c]) - scores[best]);
  return {best, static_cast<float>(1 / sum)};
}

bool are_probabilities(const float* scores, size_t classes) {
  double sum = 0;
  for (size_t c = 0; c < classes; ++c) {
    if (!(scores[c] >= -1e-3f && scores[c] <= 1.001f)) return false;
    sum += scores[c];
  }
  return std::fabs(sum - 1) < 0.02;
}

void add_text(const ModelFacts& facts, size_t output, std::string text, float confidence,
              const DecodeSettings& settings, Results& results) {
  if (text.empty() || !(confidence >= settings.threshold)) return;
  results.texts.push_back(
      {facts.outputs[output].name, std::move(text), std::clamp(confidence, 0.0f, 1.0f)});
}

Match match_scores(const ModelFacts& facts) {
  auto found = step_scores(facts);
  if (!found) return {Fit::no, "needs scores of characters in steps ([1,T,C] or [T,1,C])", {}};
  const OutputFacts& output = facts.outputs[found->index];
  // LPRNet takes pictures of 94x24, and gives scores of its characters without a batch axis.
  const bool lprnet = facts.width == 94 && facts.height == 24;
  auto dictionary = dictionary_for(facts.labels, found->classes);
  if (!dictionary && found->classes >= kFewestSteps) {
    dictionary = dictionary_for(facts.labels, found->steps);
    const bool plates =
        (lprnet || is_called(facts, output, {"lpr", "lprnet"})) && found->steps > found->classes;
    if (dictionary || plates) found = found->turned();
  }
  const bool published = !dictionary && lprnet && facts.labels.empty() &&
                         found->classes == characters_of_lprnet().size();
  if (published) dictionary = dictionary_for(characters_of_lprnet(), found->classes);
  // Some of crnn_plate_recognition's networks have the colour of the plate beside.
  const bool crnn_plates = !dictionary && facts.labels.empty() && facts.width == 168 &&
                           facts.height == 48 && found->steps == 21 &&
                           found->classes == characters_of_crnn_plates().size();
  if (crnn_plates) dictionary = dictionary_for(characters_of_crnn_plates(), found->classes);
  // The blank comes before the dictionary, and one more space after it.
  const bool english = !dictionary && facts.labels.empty() && from_paddle(facts, output) &&
                       found->classes == characters_of_english().size() + 2;
  if (english) dictionary = dictionary_for(characters_of_english(), found->classes);
  const std::string shape =
      std::to_string(found->steps) + " steps of " + std::to_string(found->classes) + " classes";
  const bool named = is_called(
      facts, output, {"rec", "ocr", "ppocr", "text", "crnn", "lpr", "lprnet", "plate", "svtr"});
  // Only lines of text have any width but one height; a softmax in each of many steps of a wide
  // picture is of characters, too.
  const bool line = facts.open_width || ((is_softmax(output) || output.op == "LogSoftmax") &&
                                         facts.width >= 2 * facts.height);
  if (!dictionary) {
    if (!named && !(line && facts.outputs.size() == 1))
      return {Fit::no, "needs the dictionary as labels, one character a class", {}};
    Match lacking{
        Fit::no,
        shape + " but " + std::to_string(facts.labels.size()) +
            " labels: set labels-file to the dictionary, a character a line (without the blank, "
            "or with it as <blank>)",
        {}};
    lacking.lacks_labels = true;
    return lacking;
  }
  Match match;
  match.classes = facts.labels.size();  // labels may leave out the blank and the space
  const std::vector<std::string>& characters = dictionary->characters;
  const bool are_short = std::all_of(characters.begin(), characters.end(),
                                     [](const std::string& text) { return text.size() <= 4; });
  const bool names_blank = std::any_of(facts.labels.begin(), facts.labels.end(), is_blank_name);
  match.fit = named || facts.labels.size() > 200 || (names_blank && are_short) ? Fit::certain
              : are_short                                                      ? Fit::likely
                                                                               : Fit::possible;
  match.reason = shape;
  // Two outputs with as many rows, one of which has four columns, are boxes and the scores of
  // objects.
  const bool may_be_boxes = found->classes == 4 || found->steps == 4;
  if (std::any_of(facts.outputs.begin(), facts.outputs.end(), [&](const OutputFacts& other) {
        const auto table = table_of(other);
        return &other != &output && table && (table->columns == 4 || may_be_boxes) &&
               (table->rows == found->steps || table->rows == found->classes);
      })) {
    match.fit = Fit::against;
    match.doubt = "beside as many boxes";
  }
  if (published || crnn_plates) {
    match.classes = found->classes;
    match.fit = Fit::certain;
    match.assumptions.push_back("the characters are those of China's plates, which " +
                                std::string(published ? "LPRNet" : "crnn_plate_recognition") +
                                " was published with; set labels-file to the dictionary where it "
                                "is another");
  }
  if (english) {
    match.classes = found->classes;
    match.assumptions.push_back(
        "the characters are those of PP-OCR's English networks, which have as many classes; set "
        "labels-file to the dictionary where it is another");
  }
  // Keras' CTC has the blank last, other trainers mostly have it first.
  if (dictionary->assumed && facts.channels_last && is_softmax(output)) {
    std::rotate(dictionary->characters.begin(), dictionary->characters.begin() + 1,
                dictionary->characters.end());
    dictionary->blank = found->classes - 1;
  }
  if (dictionary->assumed)
    match.assumptions.push_back(
        "the dictionary has no blank; the " +
        std::string(dictionary->blank == 0 ? "first class is taken for it, as PP-OCR"
                                           : "last class is taken for it, as Keras") +
        " has it; put a line <blank> into the dictionary where it is another");
  match.decode = [facts, scores = *found, dictionary = *dictionary](std::span<const Tensor> outputs,
                                                                    const DecodeSettings& settings,
                                                                    Results& results) {
    const Floats values(output_of(outputs, scores.index, scores.steps * scores.classes));
    std::vector<float> buffer;
    std::string text;
    size_t before = dictionary.blank, characters = 0;
    double sure = 0;
    for (size_t step = 0; step < scores.steps; ++step) {
      const float* row = scores.at(values, step, buffer);
      const auto [best, probability] =
          pick(row, scores.classes, are_probabilities(row, scores.classes));
      if (best != dictionary.blank && best != before) {
        text += dictionary.characters[best];
        sure += probability;
        ++characters;
      }
      before = best;
    }
    add_text(facts, scores.index, std::move(text),
             characters ? static_cast<float>(sure / static_cast<double>(characters)) : 0, settings,
             results);
  };
  // PaddleOCR's networks take colours, and most others gray pictures; Keras' have the channels last.
  if (!facts.channels_last)
    match.picture = picture_of(facts.channels != 3 ? Family::gray_lines
                               : lprnet            ? Family::lprnet
                               : crnn_plates       ? Family::crnn_plates
                                                   : Family::text_recognition);
  return match;
}

// Reads characters that CTCGreedyDecoder has picked: class numbers, and -1 after the last.
Match match_picked(const ModelFacts& facts, size_t index) {
  const size_t most = vector_size(facts.outputs[index].shape);
  if (facts.labels.empty()) {
    Match lacking{Fit::no,
                  "characters that CTCGreedyDecoder picks need the dictionary: set labels-file to "
                  "it, a character a line",
                  {}};
    lacking.lacks_labels = true;
    return lacking;
  }
  Match match;
  match.fit = Fit::certain;
  match.reason = "up to " + std::to_string(most) + " characters that CTCGreedyDecoder picks";
  match.decode = [facts, index, most](std::span<const Tensor> outputs,
                                      const DecodeSettings& settings, Results& results) {
    const Floats values(output_of(outputs, index, most));
    std::string text;
    for (size_t i = 0; i < most && values[i] >= 0; ++i) {
      if (values[i] != std::floor(values[i]) ||
          !(values[i] < static_cast<float>(facts.labels.size()))) {
        results.contradiction = "the outputs name a character that the dictionary of " +
                                std::to_string(facts.labels.size()) + " does not have";
        return;
      }
      text += facts.labels[static_cast<size_t>(values[i])];
    }
    add_text(facts, index, std::move(text), 1, settings, results);
  };
  match.picture = picture_of(Family::plates);
  return match;
}

}  // namespace

Match match_text_recognition(const ModelFacts& facts) {
  for (size_t i = 0; i < facts.outputs.size(); ++i)
    if (facts.outputs[i].op.rfind("CTCGreedyDecoder", 0) == 0 &&
        vector_size(facts.outputs[i].shape) > 1)
      return match_picked(facts, i);
  return match_scores(facts);
}

}  // namespace clinfer
