// Images of inputs whose frames are gone, so that no inference takes for them whatever the input holds instead.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "engine/engine.h"
#include "kernels/frames/clip.h"

namespace clinfer {

class LostImages {
 public:
  using Place = std::pair<size_t, size_t>;  // input, and image of it

  // nhwc: as FrameTransform::nhwc of the frame.
  void add(const Place& place, bool nhwc) { all_[place] = nhwc; }
  // The image, or the whole input, was set anew.
  void found(const Place& place) { all_.erase(place); }
  void found(size_t input) {
    std::erase_if(all_, [&](const auto& image) { return image.first.first == input; });
  }
  // Whether the first `images` of a batch (0: all of it) have this image. Clips have several frames each.
  static bool is_wanted(const Place& place, bool nhwc, const std::vector<Port>& inputs,
                        size_t images) {
    const Shape& shape = inputs[place.first].shape;
    const auto of_one = static_cast<size_t>(images_of(shape, nhwc) / shape[0]);
    return images == 0 || place.second < of_one * images;
  }
  // Throws Error{bad_argument} where an image that is wanted is lost; `why` ends its first sentence.
  void check(const std::vector<Port>& inputs, size_t images, const char* why) const {
    for (const auto& [place, nhwc] : all_)
      if (is_wanted(place, nhwc, inputs, images))
        throw Error(ErrorCode::bad_argument, "image " + std::to_string(place.second) +
                                                 " of input " + std::to_string(place.first) + why +
                                                 "; set it again");
  }

 private:
  std::map<Place, bool> all_;
};

// Why a frame is lost that a request had.
inline constexpr const char* kNeverRead =
    " is not there: the inference that it was set for did not begin";

}  // namespace clinfer
