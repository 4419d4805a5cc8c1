// Settles how a network takes its picture.
#include "engine/heads/picture.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "engine/heads/base/common.h"
#include "kernels/frames/clip.h"

namespace clinfer {
namespace {

constexpr int64_t kLargestSide = 16384;
constexpr int64_t kMostFrames = 1024;  // in a clip

bool truth(const std::string& text) {
  const std::string value = lower(text);
  return value == "true" || value == "yes" || value == "1";
}

// Returns whether the converter was given `option`, so that the graph already does it.
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
const char* past_of(ResizeMode mode) {
  return mode == ResizeMode::letterbox ? "letterboxed"
         : mode == ResizeMode::crop    ? "cropped"
                                       : "stretched";
}
const char* name_of(ColorOrder color) {
  return color == ColorOrder::rgb ? "rgb" : color == ColorOrder::gray ? "gray" : "bgr";
}

ColorOrder turned(ColorOrder color) {
  return color == ColorOrder::rgb ? ColorOrder::bgr : ColorOrder::rgb;
}

std::string joined(const std::vector<std::string>& parts, const std::string& last) {
  std::string text;
  for (size_t i = 0; i < parts.size(); ++i)
    text += (i == 0 ? "" : i + 1 == parts.size() ? last : ", ") + parts[i];
  return text;
}

// The decisions about one model. Each fact (resize, padding, order of colours, range) has its own
// source: a property, the model, a file beside it, else the family, else what is usual.
class Picture {
 public:
  Picture(const Model& model, const StatedFacts& facts, const ImageShape& image, ElementType type,
          const ModelOptions& options, const std::optional<PictureDefaults>& family)
      : model_(model),
        facts_(facts),
        image_(image),
        options_(options),
        family_(family),
        takes_floats_(is_float(type)) {
    embedded_ = truth(value("embedded_processing"));
    if (const auto planes = model.rt_info().find(Model::kColorsOfPlanes);
        planes != model.rt_info().end())
      colors_of_planes_ = lower(planes->second);
    if (const auto range = model.rt_info().find(Model::kRangeOfPicture);
        range != model.rt_info().end() && takes_floats_)
      largest_pixel_ = range->second;
  }

  PictureFeed settle() {
    PictureFeed feed;
    FrameTransform& transform = feed.transform;
    transform.nhwc = image_.nhwc;
    transform.color_arithmetic = options_.color_arithmetic;
    if (family_ && family_->transposed) {
      transform.turn.transpose = true;
      note("orientation", "rows and columns exchanged", family_source());
    }
    settle_resize(transform);
    feed.crop_share = settle_share();
    settle_color(transform);
    settle_range(transform);
    return feed;
  }

  // Returns one line about what nothing states, or "".
  std::string assumption() const {
    if (doubts_.empty()) return {};
    std::vector<std::string> what, of_family, usual, properties;
    for (const Doubt& doubt : doubts_) {
      what.push_back(doubt.what);
      (doubt.of_family ? of_family : usual).push_back(doubt.taken);
      properties.insert(properties.end(), doubt.properties.begin(), doubt.properties.end());
    }
    const bool all = doubts_.size() == (image_.channels == 1 ? 2u : 3u);
    std::string text = "nothing states how the model takes pictures";
    if (!all) text += " (" + joined(what, ", ") + ")";
    text += "; " + joined(of_family.empty() ? usual : of_family, ", ") + " is assumed";
    if (!of_family.empty()) {
      text += family_->task ? ", as is usual for " + family_->family
                            : ", as " + family_->family + " takes them";
      if (!usual.empty()) text += ", and " + joined(usual, ", ");
    }
    return text + "; set " + joined(properties, " and ") + " where it is otherwise";
  }

  std::vector<Fact> origins;
  std::vector<std::string> warnings;

 private:
  // A fact that nothing states: what was assumed, and how to set it.
  struct Doubt {
    std::string what, taken;
    std::vector<std::string> properties;
    bool of_family = false;
  };
  // The mean or the scale. Files state its values, or the graph applies them itself.
  struct Half {
    std::string source;  // empty: nothing is known
    std::vector<float> values;
    bool in_graph = false;
  };

  std::string value(const std::string& key) const {
    const auto found = facts_.info.find(key);
    return found == facts_.info.end() ? std::string() : found->second;
  }
  void note(const std::string& what, const std::string& is, const std::string& source) {
    origins.push_back({what, is, source});
  }
  std::string family_source() const { return "assumed for " + family_->family; }

  void settle_resize(FrameTransform& transform) {
    const std::string stated = lower(value("resize_type"));
    const bool of_family = family_ && family_->resize;
    std::string source = "assumed";
    bool centered = true;
    if (options_.resize_mode != ResizeChoice::automatic) {
      source = "property";
      transform.resize = options_.resize_mode == ResizeChoice::letterbox ? ResizeMode::letterbox
                         : options_.resize_mode == ResizeChoice::crop    ? ResizeMode::crop
                                                                         : ResizeMode::stretch;
      centered = stated != "fit_to_window";
    } else if (!stated.empty()) {
      source = facts_.source_of("resize_type");
      transform.resize = stated.rfind("fit_to_window", 0) == 0 ? ResizeMode::letterbox
                         : stated == "crop"                    ? ResizeMode::crop
                                                               : ResizeMode::stretch;
      centered = stated == "fit_to_window_letterbox";
    } else {
      if (of_family) {
        source = family_source();
        transform.resize = *family_->resize;
        resize_of_family_ = true;
      }
      doubts_.push_back({"the resize", past_of(transform.resize), {"resize-mode"}, of_family});
    }
    note("resize-mode", name_of(transform.resize), source);
    settle_padding(transform, centered, stated.rfind("fit_to_window", 0) == 0);
  }

  // Settles where a letterboxed picture lies, and what surrounds it.
  void settle_padding(FrameTransform& transform, bool centered, bool place_stated) {
    const std::vector<float> wanted = padding(parse_numbers(options_.pad_value, "pad-value"), true);
    if (transform.resize != ResizeMode::letterbox) {
      if (!wanted.empty() || options_.pad_place != PadPlace::automatic)
        warnings.push_back(std::string("pad-value and pad-place have no effect: the picture is ") +
                           past_of(transform.resize) + "; set resize-mode=letterbox");
      return;
    }
    const bool known = family_ && family_->resize == ResizeMode::letterbox;
    transform.centered = options_.pad_place != PadPlace::automatic
                             ? options_.pad_place == PadPlace::centered
                         : place_stated || !known ? centered
                                                  : family_->centered;
    transform.pad_value = {known ? family_->pad_value : 114};
    std::string source = known ? family_source() : "assumed";
    if (!wanted.empty()) {
      transform.pad_value = wanted;
      source = "property";
    } else if (const auto stated =
                   padding(parse_numbers(value("pad_value"), "model_info pad_value"), false);
               !stated.empty()) {
      transform.pad_value = stated;
      source = facts_.source_of("pad_value");
    }
    note("padding",
         text_of(transform.pad_value) + (transform.centered ? ", centred" : ", at the top left"),
         source);
  }

  // Checks numbers for the padding. Values of a file are limited to those of pixels, and one of
  // them is enough where there are not as many as channels.
  std::vector<float> padding(std::vector<float> values, bool of_property) const {
    const auto channels = static_cast<size_t>(image_.channels);
    const bool fits = values.size() <= 1 || values.size() == channels;
    const auto outside = [](float value) { return value < 0 || value > 255; };
    if (of_property && (!fits || std::any_of(values.begin(), values.end(), outside)))
      throw Error{ErrorCode::bad_argument, "pad-value: '" + options_.pad_value + "' is not 1 or " +
                                               std::to_string(channels) + " numbers from 0 to 255"};
    if (!fits) values.resize(1);
    for (float& value : values) value = std::clamp(value, 0.0f, 255.0f);
    return values;
  }

  float settle_share() {
    const auto stated = parse_numbers(value("crop_share"), "crop_share");
    // Applies only with the resize that the same file states.
    const bool fits = (options_.resize_mode == ResizeChoice::automatic ||
                       options_.resize_mode == ResizeChoice::crop) &&
                      facts_.source_of("crop_share") == facts_.source_of("resize_type");
    const bool of_file = !stated.empty() && stated[0] > 0 && stated[0] <= 1 && fits;
    const bool chosen = options_.crop_share > 0;
    const bool of_family = resize_of_family_ && family_->share < 1;
    const float share = chosen      ? static_cast<float>(options_.crop_share)
                        : of_file   ? stated[0]
                        : of_family ? family_->share
                                    : 1;
    if (chosen || of_file || of_family)
      note("crop-share", text_of({share}),
           chosen    ? "property"
           : of_file ? facts_.source_of("crop_share")
                     : family_source());
    return share;
  }

  void settle_color(FrameTransform& transform) {
    const bool chosen = options_.color_format != ColorChoice::automatic;
    const bool wants_rgb = options_.color_format == ColorChoice::rgb;
    if (image_.channels == 1) {
      if (chosen && options_.color_format != ColorChoice::gray)
        throw Error{ErrorCode::bad_argument,
                    "color-format: the model's input has 1 channel, use gray"};
      transform.color = ColorOrder::gray;
      return note("color-format", "gray", "the input's shape");
    }
    if (options_.color_format == ColorChoice::gray)
      throw Error{ErrorCode::bad_argument, "color-format=gray: the model's input has 3 channels"};
    if (!colors_of_planes_.empty()) {
      const bool is_rgb = colors_of_planes_ == "rgb";
      if (chosen && wants_rgb != is_rgb)
        throw Error{ErrorCode::bad_argument,
                    "color-format: the graph turns its planes into " + colors_of_planes_};
      transform.color = is_rgb ? ColorOrder::rgb : ColorOrder::bgr;
      return note("color-format", colors_of_planes_, "the graph");
    }
    const std::string space = lower(value("color_space"));
    const std::string reversed = value("reverse_input_channels");
    const ColorOrder stated = space == "rgb" ? ColorOrder::rgb : ColorOrder::bgr;
    std::string source = "assumed";
    transform.color = ColorOrder::bgr;
    if (chosen) {
      transform.color = wants_rgb ? ColorOrder::rgb : ColorOrder::bgr;
      source = "property";
    } else if (embedded_ || converted_with(model_, "reverse_input_channels")) {
      source = "the converter's options";
      // The graph converts its input to what the family takes, which is known of networks before
      // their conversion or after it.
      if (!space.empty())
        transform.color = stated;
      else if (family_ && !embedded_)
        transform.color = family_->converted ? family_->color : turned(family_->color);
    } else if (!space.empty()) {
      transform.color = stated;
      source = facts_.source_of("color_space");
    } else if (!reversed.empty()) {
      transform.color = truth(reversed) ? ColorOrder::rgb : ColorOrder::bgr;
      source = facts_.source_of("reverse_input_channels");
    } else {
      if (family_) {
        transform.color = family_->color;
        source = family_source();
      }
      doubts_.push_back({"the order of colours",
                         transform.color == ColorOrder::rgb ? "RGB" : "BGR",
                         {"color-format"},
                         family_.has_value()});
    }
    note("color-format", name_of(transform.color), source);
  }

  // Treats mean and scale as one fact: who states only one of them implies that the other is
  // neutral, unless it is the family's own.
  void settle_range(FrameTransform& transform) {
    const bool in_graph = embedded_ || !colors_of_planes_.empty();
    Half mean = half_of(options_.mean, {"mean_values", "mean"}, "mean",
                        in_graph || converted_with(model_, "mean_values"));
    Half scale = half_of(
        options_.scale, {"scale_values", "scale"}, "scale",
        in_graph || converted_with(model_, "scale_values") || converted_with(model_, "scale"));
    const auto fill = [&](Half& half, const Half& other, bool is_mean) {
      if (!half.source.empty()) return;
      half.values = {is_mean ? 0.0f : 1.0f};
      half.source = "not stated";
      if (other.source.empty() ? !takes_floats_ : other.in_graph || !family_) return;
      if (!other.source.empty() && !is_close(other.values, of_family(transform, !is_mean))) return;
      if (!family_) return;
      half.values = of_family(transform, is_mean);
      half.source = family_source();
    };
    const bool unstated = mean.source.empty() && scale.source.empty();
    const Half stated_mean = mean;
    fill(mean, scale, true);
    fill(scale, stated_mean, false);
    if (unstated && !takes_floats_) {
      mean.source = scale.source = "the input's type";
    } else if (unstated) {
      if (!family_) mean.source = scale.source = "assumed";
      doubts_.push_back({"the range",
                         "mean " + text_of(mean.values) + ", scale " + text_of(scale.values),
                         {"mean", "scale"},
                         family_.has_value()});
    }
    transform.mean = checked("mean", mean);
    transform.scale = checked("scale", scale);
    if (std::count(transform.scale.begin(), transform.scale.end(), 0.0f) != 0)
      throw Error{ErrorCode::bad_argument, "scale must not be 0"};
  }

  Half half_of(const std::string& property, std::initializer_list<const char*> keys,
               const char* name, bool done) const {
    if (auto values = parse_numbers(property, name); !values.empty()) return {"property", values};
    if (done) return {"in the graph", {std::string(name) == "mean" ? 0.0f : 1.0f}, true};
    for (const char* key : keys) {
      if (value(key).empty()) continue;
      const std::string source = facts_.source_of(key);
      const auto values = parse_numbers(value(key), source + " " + name);
      if (!values.empty()) return {source, values};
    }
    if (largest_pixel_.empty()) return {};
    const bool divides = std::string(name) == "scale" && largest_pixel_ == "1";
    return {"the graph's first operations",
            {std::string(name) == "mean" ? 0.0f
             : divides                   ? 255.0f
                                         : 1.0f}};
  }

  // Returns the family's mean or scale, in the order of colours that was settled.
  std::vector<float> of_family(const FrameTransform& transform, bool mean) const {
    std::vector<float> values = mean ? family_->mean : family_->scale;
    if (values.size() != 3) return values;
    if (transform.color == ColorOrder::gray) return {(values[0] + values[1] + values[2]) / 3};
    if (transform.color != family_->color) std::swap(values[0], values[2]);
    return values;
  }

  static bool is_close(const std::vector<float>& a, const std::vector<float>& b) {
    for (size_t c = 0; c < 3; ++c) {
      const float x = a.size() == 1 ? a[0] : c < a.size() ? a[c] : a.back();
      const float y = b.size() == 1 ? b[0] : c < b.size() ? b[c] : b.back();
      if (!(std::fabs(x - y) <= 0.01f * std::fabs(y) + 0.5f)) return false;
    }
    return true;
  }

  std::vector<float> checked(const char* name, const Half& half) {
    const auto channels = static_cast<size_t>(image_.channels);
    if (half.values.size() != 1 && half.values.size() != channels)
      throw Error{ErrorCode::bad_argument,
                  std::string(name) + " has " + std::to_string(half.values.size()) +
                      " numbers where 1 or " + std::to_string(channels) + " are needed"};
    note(name, text_of(half.values), half.source);
    return half.values;
  }

  const Model& model_;
  const StatedFacts& facts_;
  const ImageShape& image_;
  const ModelOptions& options_;
  const std::optional<PictureDefaults> family_;
  std::vector<Doubt> doubts_;
  bool embedded_ = false;
  bool resize_of_family_ = false;
  bool takes_floats_ = true;      // an input of integers takes pixels unchanged
  std::string colors_of_planes_;  // "": the graph does not begin with a conversion of planes
  std::string largest_pixel_;     // "1" or "255"; "": the graph's first operations do not tell
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
  // A picture is wider than three pixels, so a last dimension of 3 is the channels.
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

PictureFeed picture_feed(const Model& model, const StatedFacts& facts, const ImageShape& image,
                         ElementType type, const ModelOptions& options,
                         const std::optional<PictureDefaults>& family, std::vector<Fact>& origins,
                         std::vector<std::string>& warnings) {
  Picture picture(model, facts, image, type, options, family);
  const PictureFeed feed = picture.settle();
  origins.insert(origins.end(), picture.origins.begin(), picture.origins.end());
  warnings.insert(warnings.end(), picture.warnings.begin(), picture.warnings.end());
  if (std::string said = picture.assumption(); !said.empty()) warnings.push_back(std::move(said));
  return feed;
}

}  // namespace clinfer
