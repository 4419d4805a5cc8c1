// Readers of the files beside models, each from the file's text. They throw Error{bad_argument} for
// files of another format, and ignore what they do not know.
#pragma once

#include <string>
#include <vector>

#include "engine/heads/files/beside.h"

namespace clinfer {

// Returns the text without a byte order mark. Throws Error{not_found, bad_argument} without the
// path.
std::string file_text(const std::string& path);

// Facts about the model that are known before the files beside it are read.
struct BesideContext {
  std::string folder;         // of the file that is being read
  std::string model;          // the model's file name
  bool alone = true;          // true if no other model lies beside it
  int width = 0, height = 0;  // of its picture; 0: open
};

using BesideReader = void (*)(const std::string& text, const std::string& source,
                              const BesideContext& context, BesideFacts& facts);

// Readers of JSON.
void read_huggingface_config(const std::string&, const std::string&, const BesideContext&,
                             BesideFacts&);  // also timm's config.json
void read_huggingface_picture(const std::string&, const std::string&, const BesideContext&,
                              BesideFacts&);
void read_open_clip(const std::string&, const std::string&, const BesideContext&, BesideFacts&);
void read_mmdeploy(const std::string&, const std::string&, const BesideContext&, BesideFacts&);

// Readers of YAML.
void read_ultralytics(const std::string&, const std::string&, const BesideContext&, BesideFacts&);
void read_paddle(const std::string&, const std::string&, const BesideContext&, BesideFacts&);
void read_mltu(const std::string&, const std::string&, const BesideContext&, BesideFacts&);
void read_frigate(const std::string&, const std::string&, const BesideContext&, BesideFacts&);

// Readers of text with sections.
void read_nvinfer(const std::string&, const std::string&, const BesideContext&, BesideFacts&);
void read_modelinfo(const std::string&, const std::string&, const BesideContext&, BesideFacts&);

// Reads labels from a file that another file names by a path of the machine where it was written:
// at that path, or beside it.
void read_named_labels(const std::string& named, const BesideContext& context, BesideFacts& facts);

// The steps by which a picture becomes the network's input, as most of these files describe it.
// Sizes are in pixels.
class PictureSteps {
 public:
  void shorter_edge(double to) { edge_ = to, kind_ = Kind::shorter; }
  void squash(double width, double height) {
    width_ = width, height_ = height, kind_ = Kind::squash;
  }
  // Keeps proportions and shows the whole picture, in a frame of this width (0: the input's).
  void fit(bool centered, double width = 0) {
    width_ = width, kind_ = centered ? Kind::fit_centered : Kind::fit;
  }
  // Crops the centre of the result of earlier steps.
  void center_crop(double width, double height) { crop_width_ = width, crop_height_ = height; }
  // Pads with one value, or one for each channel, as they are at that step: after normalize() they
  // are no pixel values any more.
  void pad(std::vector<double> values);
  // Subtracts the mean and divides by the scale; `turns`: reverses the order of colours first.
  void normalize(std::vector<double> mean, std::vector<double> scale, bool turns);
  void state(const std::string& source, BesideFacts& facts) const;

 private:
  enum class Kind { none, shorter, squash, fit, fit_centered };
  Kind kind_ = Kind::none;
  double edge_ = 0, width_ = 0, height_ = 0, crop_width_ = 0, crop_height_ = 0;
  std::vector<double> pad_, mean_, scale_;
};

// Formats "1.5,2,3", with as few digits as possible.
std::string list_of(const std::vector<double>& values);
std::vector<double> scaled(std::vector<double> values, double by);

}  // namespace clinfer
