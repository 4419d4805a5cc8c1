// How a network takes its picture.
#include "engine/heads/picture.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "engine/heads/common.h"
#include "kernels/frames/clip.h"

namespace clinfer {
namespace {

constexpr int64_t kLargestSide = 16384;
constexpr int64_t kMostFrames = 1024;  // of a clip

bool truth(const std::string& text) {
  const std::string value = lower(text);
  return value == "true" || value == "yes" || value == "1";
}

// True when the converter was told `option`, so that the graph already does it.
bool converted_with(const Model& model, const std::string& option) {
  for (const char* place : {"conversion_parameters/", "MO_config/", "cli_parameters/"}) {
    const auto found = model.rt_info().find(place + option);
    if (found == model.rt_info().end()) continue;
    const std::string value = lower(found->second);
    if (!value.empty() && value != "none" && value != "()" && value != "[]" && value != "{}" &&
        value != "false" && value != "0")
      return true;
  }
  return false;
}

std::string text_of(const std::vector<float>& values) {
  std::string text;
  for (const float value : values) {
    char number[32];
    const auto end =
        std::to_chars(number, number + sizeof number, value, std::chars_format::general, 6);
    text += (text.empty() ? "" : ",") + std::string(number, end.ptr);
  }
  return text;
}

const char* name_of(ResizeMode mode) {
  return mode == ResizeMode::letterbox ? "letterbox"
         : mode == ResizeMode::crop    ? "crop"
                                       : "stretch";
}
const char* name_of(ColorOrder color) {
  return color == ColorOrder::rgb ? "rgb" : color == ColorOrder::gray ? "gray" : "bgr";
}

// The decisions on one model.
class Picture {
 public:
  Picture(const Model& model, const StatedFacts& facts, const ImageShape& image, ElementType type,
          const ModelOptions& options, const std::optional<PictureDefaults>& family)
      : model_(model), facts_(facts), image_(image), options_(options) {
    embedded_ = truth(value("embedded_processing"));
    if (const auto planes = model.rt_info().find(Model::kColorsOfPlanes);
        planes != model.rt_info().end())
      colors_of_planes_ = lower(planes->second);
    for (const char* key : {"mean_values", "mean", "scale_values", "scale", "color_space",
                            "reverse_input_channels", "embedded_processing"})
      if (!value(key).empty()) stated_ = true;
    for (const char* option : {"mean_values", "scale_values", "scale", "reverse_input_channels"})
      if (converted_with(model, option)) stated_ = true;
    // The values of a family count all together, and only where nothing at all is stated.
    if (!stated_ && family) family_ = *family;
    // An input of integers takes pixels as they are.
    if (family_ && (!is_float(type) || !colors_of_planes_.empty()))
      family_->mean = {0}, family_->scale = {1};
  }

  FrameTransform settle() {
    FrameTransform transform;
    transform.nhwc = image_.nhwc;
    transform.color_arithmetic = options_.color_arithmetic;
    settle_resize(transform);
    settle_color(transform);
    const bool in_graph = embedded_ || !colors_of_planes_.empty();
    transform.mean = per_channel(options_.mean, {"mean_values", "mean"}, "mean", 0,
                                 in_graph || converted_with(model_, "mean_values"));
    transform.scale = per_channel(
        options_.scale, {"scale_values", "scale"}, "scale", 1,
        in_graph || converted_with(model_, "scale_values") || converted_with(model_, "scale"));
    if (std::count(transform.scale.begin(), transform.scale.end(), 0.0f) != 0)
      throw Error{ErrorCode::bad_argument, "scale must not be 0"};
    return transform;
  }

  // One line where nothing states how pictures are taken, else "".
  std::string assumption(const FrameTransform& transform) const {
    if (stated_ || !colors_of_planes_.empty() || !options_.mean.empty() ||
        !options_.scale.empty() || options_.color_format != ColorChoice::automatic)
      return {};
    const std::string taken = std::string(image_.channels == 1                 ? "grey"
                                          : transform.color == ColorOrder::rgb ? "RGB"
                                                                               : "BGR") +
                              ", mean " + text_of(transform.mean) + ", scale " +
                              text_of(transform.scale) + ", " +
                              (transform.resize == ResizeMode::letterbox ? "letterboxed"
                               : transform.resize == ResizeMode::crop    ? "cropped"
                                                                         : "stretched");
    return "nothing states how the model takes pictures; " + taken + " is assumed" +
           (family_ ? ", as " + family_->family + " takes them" : "") +
           "; set color-format, mean, scale and resize-mode where it is otherwise";
  }

  std::vector<Fact> origins;

 private:
  std::string value(const std::string& key) const {
    const auto found = facts_.info.find(key);
    return found == facts_.info.end() ? std::string() : found->second;
  }
  void note(const std::string& what, const std::string& is, const std::string& source) {
    origins.push_back({what, is, source});
  }
  std::string family_source() const {
    return family_ ? "assumed for " + family_->family : "assumed";
  }

  void settle_resize(FrameTransform& transform) {
    const std::string resize = lower(value("resize_type"));
    std::string source = "assumed";
    if (options_.resize_mode != ResizeChoice::automatic) {
      source = "property";
      transform.resize = options_.resize_mode == ResizeChoice::letterbox ? ResizeMode::letterbox
                         : options_.resize_mode == ResizeChoice::crop    ? ResizeMode::crop
                                                                         : ResizeMode::stretch;
      // As the model pads, where it says how, or its family is known for it.
      const bool known = family_ && family_->resize == ResizeMode::letterbox;
      transform.centered = known ? family_->centered : resize != "fit_to_window";
      transform.pad_value = known ? family_->pad_value : 114;
    } else if (!resize.empty()) {
      source = facts_.source_of("resize_type");
      transform.resize = resize.rfind("fit_to_window", 0) == 0 ? ResizeMode::letterbox
                         : resize == "crop"                    ? ResizeMode::crop
                                                               : ResizeMode::stretch;
      transform.centered = resize == "fit_to_window_letterbox";
      transform.pad_value = 114;
    } else if (family_) {
      source = family_source();
      transform.resize = family_->resize;
      transform.centered = family_->centered;
      transform.pad_value = family_->pad_value;
    }
    const std::vector<float> pad = parse_numbers(value("pad_value"), "model_info pad_value");
    if (!pad.empty()) transform.pad_value = std::clamp(pad[0], 0.0f, 255.0f);
    if (transform.resize != ResizeMode::letterbox)
      transform.centered = true, transform.pad_value = 0;
    note("resize-mode",
         std::string(name_of(transform.resize)) +
             (transform.resize == ResizeMode::letterbox
                  ? " (" + text_of({transform.pad_value}) + ", " +
                        (transform.centered ? "centred" : "at the top left") + ")"
                  : ""),
         source);
  }

  void settle_color(FrameTransform& transform) {
    if (image_.channels == 1) {
      if (options_.color_format == ColorChoice::bgr || options_.color_format == ColorChoice::rgb)
        throw Error{ErrorCode::bad_argument,
                    "color-format: the model's input has 1 channel, use gray"};
      transform.color = ColorOrder::gray;
      return note("color-format", "gray", "the input's shape");
    }
    if (options_.color_format == ColorChoice::gray)
      throw Error{ErrorCode::bad_argument, "color-format=gray: the model's input has 3 channels"};
    if (!colors_of_planes_.empty()) {
      const bool is_rgb = colors_of_planes_ == "rgb";
      if (options_.color_format != ColorChoice::automatic &&
          (options_.color_format == ColorChoice::rgb) != is_rgb)
        throw Error{ErrorCode::bad_argument,
                    "color-format: the graph turns its planes into " + colors_of_planes_};
      transform.color = is_rgb ? ColorOrder::rgb : ColorOrder::bgr;
      return note("color-format", colors_of_planes_, "the graph");
    }
    const std::string space = lower(value("color_space"));
    const std::string reversed = value("reverse_input_channels");
    std::string source = "assumed";
    transform.color = ColorOrder::bgr;
    if (options_.color_format != ColorChoice::automatic) {
      transform.color =
          options_.color_format == ColorChoice::rgb ? ColorOrder::rgb : ColorOrder::bgr;
      source = "property";
    } else if (embedded_ || converted_with(model_, "reverse_input_channels")) {
      source = "the converter's options";
      if (!space.empty()) transform.color = space == "rgb" ? ColorOrder::rgb : ColorOrder::bgr;
    } else if (!space.empty()) {
      transform.color = space == "rgb" ? ColorOrder::rgb : ColorOrder::bgr;
      source = facts_.source_of("color_space");
    } else if (!reversed.empty()) {
      transform.color = truth(reversed) ? ColorOrder::rgb : ColorOrder::bgr;
      source = facts_.source_of("reverse_input_channels");
    } else if (family_) {
      transform.color = family_->color;
      source = family_source();
    }
    note("color-format", name_of(transform.color), source);
  }

  // Numbers for each channel from the property, else as stated, else the family's, else
  // `otherwise`. done: the graph does it.
  std::vector<float> per_channel(const std::string& property,
                                 std::initializer_list<const char*> keys, const char* name,
                                 float otherwise, bool done) {
    std::string source, text, what = name;
    if (!property.empty()) {
      text = property;
      source = "property";
    } else if (done) {
      source = "in the graph";
    } else {
      for (const char* key : keys)
        if (text.empty() && !value(key).empty()) {
          text = value(key);
          source = facts_.source_of(key);
          what = source + " " + name;
        }
    }
    std::vector<float> values = parse_numbers(text, what);
    if (values.empty() && source.empty() && family_) {
      values = std::string(name) == "mean" ? family_->mean : family_->scale;
      source = family_source();
    }
    if (values.empty()) values = {otherwise};
    if (source.empty()) source = stated_ ? "not stated" : "assumed";
    const auto channels = static_cast<size_t>(image_.channels);
    if (channels == 1 && values.size() == 3 && source.rfind("assumed", 0) == 0)
      values = {(values[0] + values[1] + values[2]) / 3};
    if (values.size() != 1 && values.size() != channels)
      throw Error{ErrorCode::bad_argument,
                  std::string(name) + " has " + std::to_string(values.size()) +
                      " numbers where 1 or " + std::to_string(channels) + " are needed"};
    note(name, text_of(values), source);
    return values;
  }

  const Model& model_;
  const StatedFacts& facts_;
  const ImageShape& image_;
  const ModelOptions& options_;
  std::optional<PictureDefaults> family_;
  bool embedded_ = false, stated_ = false;
  std::string colors_of_planes_;  // "": the graph does not begin with a conversion of planes
};

}  // namespace

std::string StatedFacts::source_of(const std::string& key) const {
  const auto found = sources.find(key);
  return found == sources.end() ? "model_info" : found->second;
}

ImageShape image_shape(const Port& port) {
  const Shape& s = port.shape;
  const auto is_channels = [](int64_t d) { return d == 1 || d == 3; };
  const auto fits = [](int64_t d) { return d >= 1 && d <= kLargestSide; };
  // A picture is wider than three pixels: a last dimension of 3 is the channels.
  for (const bool nhwc : {true, false})
    if (const auto axes = clip_axes(s, nhwc)) {
      const int64_t height = s[axes->height], width = s[axes->width], frames = s[axes->frames];
      if (!fits(height) || !fits(width) || height * width == 1 || frames < 1 ||
          frames > kMostFrames)
        continue;
      return {static_cast<int>(s[axes->channels]), static_cast<int>(height),
              static_cast<int>(width), nhwc, static_cast<int>(frames)};
    }
  if (s.size() != 4) return {};
  if (is_channels(s[1]) && fits(s[2]) && fits(s[3]) && s[2] * s[3] > 1)
    return {static_cast<int>(s[1]), static_cast<int>(s[2]), static_cast<int>(s[3]), false};
  if (is_channels(s[3]) && fits(s[1]) && fits(s[2]) && s[1] * s[2] > 1)
    return {static_cast<int>(s[3]), static_cast<int>(s[1]), static_cast<int>(s[2]), true};
  return {};
}

std::vector<float> parse_numbers(const std::string& text, const std::string& what) {
  std::vector<float> values;
  size_t at = 0;
  const auto skip = [&](const char* set) {
    at = std::min(text.find_first_not_of(set, at), text.size());
  };
  skip(" \t[(<");
  while (at < text.size() && text[at] != ']' && text[at] != ')' && text[at] != '>') {
    float value = 0;
    const auto end = std::from_chars(text.data() + at, text.data() + text.size(), value);
    if (end.ec != std::errc() || !std::isfinite(value))
      throw Error{ErrorCode::bad_argument,
                  what + ": '" + text + "' is not a number or a list of numbers like 1.5,2,3"};
    values.push_back(value);
    at = static_cast<size_t>(end.ptr - text.data());
    skip(" \t,");
  }
  return values;
}

FrameTransform picture_transform(const Model& model, const StatedFacts& facts,
                                 const ImageShape& image, ElementType type,
                                 const ModelOptions& options,
                                 const std::optional<PictureDefaults>& family,
                                 std::vector<Fact>& origins, std::vector<std::string>& warnings) {
  Picture picture(model, facts, image, type, options, family);
  const FrameTransform transform = picture.settle();
  origins.insert(origins.end(), picture.origins.begin(), picture.origins.end());
  if (std::string said = picture.assumption(transform); !said.empty())
    warnings.push_back(std::move(said));
  return transform;
}

}  // namespace clinfer
