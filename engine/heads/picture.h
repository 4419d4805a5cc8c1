// Settles how a network takes its picture: resize, colours, mean and scale, from what the user, the
// model, the files beside it and its family say.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "engine/heads/network.h"

namespace clinfer {

// Channels, height and width of an image input, or channels 0.
struct ImageShape {
  int channels = 0, height = 0, width = 0;
  bool nhwc = false;
  int frames = 1;  // of a clip
};
ImageShape image_shape(const Port& port);

// Stated facts by model_info's keys, and the source of each ("model_info" or a file's name).
struct StatedFacts {
  std::map<std::string, std::string> info, sources;
  std::string source_of(const std::string& key) const;
};

struct PictureFeed {
  FrameTransform transform;
  float crop_share = 1;  // of each side of the picture, about its middle, before the transform
};

// Appends each decision to `origins`, and to `warnings` what nothing states. Throws
// Error{bad_argument} on options and facts that cannot be.
PictureFeed picture_feed(const Model& model, const StatedFacts& facts, const ImageShape& image,
                         ElementType type, const ModelOptions& options,
                         const std::optional<PictureDefaults>& family, std::vector<Fact>& origins,
                         std::vector<std::string>& warnings);

}  // namespace clinfer
