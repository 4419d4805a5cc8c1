// Settles how a network takes its picture: resize, colours, mean and scale, from the user, the
// model, the files beside it and its family.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "engine/heads/network.h"

namespace clinfer {

// Channels, height and width of an image input; 0 channels for other inputs.
struct ImageShape {
  int channels = 0, height = 0, width = 0;
  bool nhwc = false;
  int frames = 1;  // in a clip
};
ImageShape image_shape(const Port& port);

// Stated facts by model_info's keys, and the source of each ("model_info" or a file's name).
struct StatedFacts {
  std::map<std::string, std::string> info, sources;
  std::string source_of(const std::string& key) const;
};

struct PictureFeed {
  FrameTransform transform;
  float crop_share = 1;  // of each side of the picture, around its centre, before the transform
};

// Appends each decision to `origins`, and what nothing states to `warnings`. Throws
// Error{bad_argument} for options and facts that are impossible.
PictureFeed picture_feed(const Model& model, const StatedFacts& facts, const ImageShape& image,
                         ElementType type, const ModelOptions& options,
                         const std::optional<PictureDefaults>& family, std::vector<Fact>& origins,
                         std::vector<std::string>& warnings);

}  // namespace clinfer
