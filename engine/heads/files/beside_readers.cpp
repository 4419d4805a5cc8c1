// Reads text, numbers and steps for the readers of files beside a model.
#include "engine/heads/files/beside_readers.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "engine/heads/files/text_lines.h"
#include "kernels/base/error.h"

namespace clinfer {
namespace fs = std::filesystem;
namespace {

std::string number_text(double value) {
  char text[40];
  const auto end = std::to_chars(text, text + sizeof text, value, std::chars_format::general, 9);
  return std::string(text, end.ptr);
}

}  // namespace

std::string file_text(const std::string& path) {
  std::error_code error;
  const uintmax_t bytes = fs::file_size(path, error);
  if (error) throw Error{ErrorCode::not_found, error.message()};
  if (bytes > kLargestFile) throw Error{ErrorCode::bad_argument, "is larger than 16 MiB"};
  std::ifstream file(path, std::ios::binary);
  if (!file) throw Error{ErrorCode::not_found, "cannot be opened"};
  std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  if (text.rfind("\xef\xbb\xbf", 0) == 0) text.erase(0, 3);
  return text;
}

std::string list_of(const std::vector<double>& values) {
  std::string text;
  for (const double value : values) text += (text.empty() ? "" : ",") + number_text(value);
  return text;
}

std::vector<double> scaled(std::vector<double> values, double by) {
  for (double& value : values) value *= by;
  return values;
}

void PictureSteps::pad(std::vector<double> values) {
  pad_ = std::move(values);
  if (mean_.empty() || scale_.empty() || pad_.empty()) return;
  pad_.resize(std::max({pad_.size(), mean_.size(), scale_.size()}), pad_.back());
  for (size_t c = 0; c < pad_.size(); ++c)
    pad_[c] =
        pad_[c] * scale_[std::min(c, scale_.size() - 1)] + mean_[std::min(c, mean_.size() - 1)];
}

void PictureSteps::normalize(std::vector<double> mean, std::vector<double> scale, bool turns) {
  if (turns) std::reverse(pad_.begin(), pad_.end());
  mean_ = std::move(mean);
  scale_ = std::move(scale);
}

void PictureSteps::state(const std::string& source, BesideFacts& facts) const {
  const bool cuts = crop_width_ > 0 && crop_height_ > 0;
  const auto share = [&](double taken, double of) {
    if (cuts && taken < of) facts.set("crop_share", number_text(taken / of), source);
  };
  switch (kind_) {
    case Kind::none:
      if (cuts) facts.set("resize_type", "crop", source);
      return;
    case Kind::shorter:
      facts.set("resize_type", "crop", source);
      return share(std::min(crop_width_, crop_height_), edge_);
    case Kind::squash:
      facts.set("resize_type", "standard", source);
      return share(crop_width_, width_);
    case Kind::fit:
    case Kind::fit_centered:
      facts.set("resize_type", kind_ == Kind::fit ? "fit_to_window" : "fit_to_window_letterbox",
                source);
      facts.set("pad_value", list_of(pad_), source);
      return share(crop_width_, width_);
  }
}

}  // namespace clinfer
