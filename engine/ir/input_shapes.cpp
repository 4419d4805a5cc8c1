// Finds the input that takes the picture, with its height and width, and applies requested shapes.
#include "engine/ir/input_shapes.h"

#include <algorithm>
#include <charconv>
#include <optional>

namespace clinfer {

namespace {

constexpr int64_t kOpen = -1;
constexpr int kLargestSide = 16384;
constexpr int64_t kTallestText = 256;

// Returns the width of a line of text. PP-OCR has 320 for its height of 48; the width is a multiple
// of 32, because networks halve it up to five times.
int64_t width_of_text(int64_t height) { return (height * 20 / 3 + 31) / 32 * 32; }

[[noreturn]] void refuse_shape(const std::string& what, SourcePlace place = SourcePlace::here()) {
  throw Error(ErrorCode::bad_argument, what, place);
}

// Returns the position of a letter in "[N,C,H,W]".
std::optional<size_t> place_in(const std::string& layout, char letter) {
  const size_t at = layout.find(letter);
  if (at == std::string::npos) return {};
  return static_cast<size_t>(
      std::count(layout.begin(), layout.begin() + static_cast<ptrdiff_t>(at), ','));
}

struct PictureAxes {
  size_t height = 0, width = 0;
  std::optional<size_t> frames = {};  // axis of a clip's frames
};

// Returns the axes of a picture or a clip. If there is no layout, looks for channels (1 or 3)
// before or after height and width.
std::optional<PictureAxes> picture_axes(const StatedInput& input) {
  const Shape& shape = input.shape;
  const auto h = place_in(input.layout, 'H'), w = place_in(input.layout, 'W');
  if (h && w && *h < shape.size() && *w < shape.size()) {
    auto frames = place_in(input.layout, 'D');
    if (!frames) frames = place_in(input.layout, 'T');
    return PictureAxes{*h, *w, frames};
  }
  if (shape.size() != 4 && shape.size() != 5) return {};
  const auto is_channels = [](int64_t d) { return d == 1 || d == 3; };
  const size_t last = shape.size() - 1;
  const bool clip = shape.size() == 5;
  if (clip && is_channels(shape[last])) return PictureAxes{last - 2, last - 1, 1};
  if (is_channels(shape[1]) || (clip && is_channels(shape[2])))
    return PictureAxes{last - 1, last,
                       clip ? std::optional<size_t>(is_channels(shape[1]) ? 2 : 1) : std::nullopt};
  if (is_channels(shape[last])) return PictureAxes{last - 2, last - 1};
  return {};
}

std::optional<size_t> picture_among(std::span<const StatedInput> inputs) {
  for (size_t i = 0; i < inputs.size(); ++i)
    if (picture_axes(inputs[i])) return i;
  return {};
}

// Returns the input whose clip length "frames=T" sets, unless an input has that name.
std::optional<size_t> clip_among(std::span<const StatedInput> inputs, const std::string& key,
                                 const Shape& shape) {
  if (key != "frames" || shape.size() != 1) return {};
  std::optional<size_t> clip;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].name == key) return {};
    const auto axes = picture_axes(inputs[i]);
    if (axes && axes->frames && !clip) clip = i;
  }
  return clip;
}

// "[1,3,?,?]"
std::string shape_text(const Shape& shape) {
  std::string text;
  for (const int64_t dim : shape)
    text += (text.empty() ? "" : ",") + (dim == kOpen ? "?" : std::to_string(dim));
  return "[" + text + "]";
}

std::string describe(std::span<const StatedInput> inputs) {
  std::string text;
  for (size_t i = 0; i < inputs.size(); ++i)
    text += (i ? ", " : "") + std::to_string(i) + " = \"" + inputs[i].name + "\" " +
            shape_text(inputs[i].shape);
  return text;
}

size_t need_input(std::span<const StatedInput> inputs, const std::string& key) {
  if (const auto found = find_input(inputs, key)) return *found;
  refuse_shape("reshape: the model has no input \"" + key + "\"; it has " + describe(inputs));
}

// Writes the wanted sizes to `shapes`, where `replaces` accepts the dimension's present size.
template <typename Replaces>
void apply(std::span<const StatedInput> inputs, const InputShapes& wanted,
           std::vector<Shape>& shapes, Replaces replaces) {
  const auto set = [&](int64_t& dim, int64_t value) {
    if (replaces(dim)) dim = value;
  };
  for (const auto& [key, shape] : wanted.inputs) {
    if (const auto clip = clip_among(inputs, key, shape)) {
      set(shapes[*clip][*picture_axes(inputs[*clip])->frames], shape[0]);
      continue;
    }
    const size_t i = need_input(inputs, key);
    if (shape.size() != shapes[i].size())
      refuse_shape("reshape: input \"" + inputs[i].name + "\" has the shape " +
                   shape_text(inputs[i].shape) + ", " + to_string(shape) +
                   " has another number of dimensions");
    for (size_t d = 0; d < shape.size(); ++d) set(shapes[i][d], shape[d]);
  }
  if (wanted.height == 0) return;
  const auto picture = picture_among(inputs);
  if (!picture)
    refuse_shape("reshape=" + (wanted.width == 0 ? "?" : std::to_string(wanted.width)) + "x" +
                 std::to_string(wanted.height) +
                 ": no input takes a picture ([N,3,H,W] or [N,H,W,3], 1 or 3 channels); give all "
                 "dimensions as INDEX=D,D,...; inputs are " +
                 describe(inputs));
  const PictureAxes axes = *picture_axes(inputs[*picture]);
  set(shapes[*picture][axes.height], wanted.height);
  if (wanted.width != 0) set(shapes[*picture][axes.width], wanted.width);
}

}  // namespace

void InputShapes::add(const std::string& text) {
  const auto number = [](std::string_view digits) -> std::optional<int64_t> {
    int64_t value = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (error != std::errc() || end != digits.data() + digits.size() || value < 1) return {};
    return value;
  };
  const std::string_view all = text;
  // Splits at the last '=': names may contain one, dimensions do not.
  if (const size_t equals = all.rfind('='); equals != std::string_view::npos) {
    Shape shape;
    for (size_t at = equals + 1; at <= all.size();) {
      const size_t comma = std::min(all.find(',', at), all.size());
      const auto dim = number(all.substr(at, comma - at));
      if (!dim) refuse_shape("reshape " + text + ": the dimensions are numbers from 1");
      shape.push_back(*dim);
      at = comma + 1;
    }
    inputs.emplace_back(all.substr(0, equals), shape);
    return;
  }
  const size_t by = all.find('x');
  open_width = by == 1 && all[0] == '?';
  const auto w = open_width                     ? 0
                 : by == std::string_view::npos ? std::nullopt
                                                : number(all.substr(0, by));
  const auto h = w ? number(all.substr(by + 1)) : std::nullopt;
  if (!h || *w > kLargestSide || *h > kLargestSide)
    refuse_shape("reshape " + text + ": WIDTHxHEIGHT (up to " + std::to_string(kLargestSide) +
                 " each), ?xHEIGHT for lines of text or INDEX_OR_NAME=D,D,... is needed");
  width = static_cast<int>(*w);
  height = static_cast<int>(*h);
}

void note_open_shape(Node& parameter, const Shape& stated) {
  if (std::ranges::count(stated, kOpen) == 0) return;
  std::string text;
  for (const int64_t dim : stated) text += (text.empty() ? "" : ",") + std::to_string(dim);
  parameter.attributes.set(kOpenShape, text);
}

std::vector<StatedInput> stated_inputs(const Graph& graph) {
  std::vector<StatedInput> inputs;
  for (const Node* node : graph.parameters)
    inputs.push_back({node->name, node->outputs[0].names, node->attributes.get_string("layout", ""),
                      node->outputs[0].shape});
  return inputs;
}

std::optional<size_t> text_among(std::span<const StatedInput> inputs, const InputShapes& wanted) {
  const auto picture = picture_among(inputs);
  if (!wanted.open_width || !picture) return {};
  std::vector<Shape> shapes;
  for (const StatedInput& input : inputs) shapes.push_back(input.shape);
  apply(inputs, wanted, shapes, [](int64_t dim) { return dim == kOpen; });
  const PictureAxes axes = *picture_axes(inputs[*picture]);
  const Shape& shape = shapes[*picture];
  if (axes.frames || shape[axes.width] != kOpen || shape[axes.height] < 1 ||
      shape[axes.height] > kTallestText)
    return {};
  return picture;
}

std::vector<Shape> fill_open(std::span<const StatedInput> inputs, const InputShapes& wanted,
                             std::vector<std::string>& notes) {
  std::vector<Shape> shapes;
  for (const StatedInput& input : inputs) shapes.push_back(input.shape);
  const auto is_open = [](int64_t dim) { return dim == kOpen; };
  apply(inputs, wanted, shapes, is_open);
  if (const auto text = text_among(inputs, wanted)) {
    const PictureAxes axes = *picture_axes(inputs[*text]);
    int64_t& width = shapes[*text][axes.width];
    width = width_of_text(shapes[*text][axes.height]);
    notes.push_back("input \"" + inputs[*text].name + "\": the open width is " +
                    std::to_string(width) +
                    " unless reshape=WIDTHxHEIGHT (--reshape) says otherwise");
  }
  for (size_t i = 0; i < shapes.size(); ++i) {
    const size_t batch = place_in(inputs[i].layout, 'N').value_or(0);
    if (shapes[i].size() >= 2 && batch < shapes[i].size() && is_open(shapes[i][batch])) {
      shapes[i][batch] = 1;
      notes.push_back("input \"" + inputs[i].name +
                      "\": the open batch is 1 unless batch-size (--batch) says otherwise");
    }
    if (std::none_of(shapes[i].begin(), shapes[i].end(), is_open)) continue;
    const auto axes = picture_axes(inputs[i]);
    const bool sizes_suffice =
        axes && std::count(shapes[i].begin(), shapes[i].end(), kOpen) ==
                    is_open(shapes[i][axes->height]) + is_open(shapes[i][axes->width]);
    throw Error(
        ErrorCode::unsupported,
        "input \"" + inputs[i].name + "\" is open in its shape " + shape_text(inputs[i].shape) +
            "; set " +
            (sizes_suffice
                 ? "reshape=WIDTHxHEIGHT (--reshape WIDTHxHEIGHT), or ?xHEIGHT for lines of text"
                 : "all of its dimensions by reshape=" + std::to_string(i) +
                       "=D,D,... (--reshape " + std::to_string(i) + "=D,D,...)"));
  }
  return shapes;
}

std::vector<Shape> with_wanted(std::span<const StatedInput> inputs, std::vector<Shape> shapes,
                               const InputShapes& wanted) {
  apply(inputs, wanted, shapes, [](int64_t) { return true; });
  return shapes;
}

}  // namespace clinfer
