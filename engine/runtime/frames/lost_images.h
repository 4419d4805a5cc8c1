// Remembers which images of inputs are lost, so that no inference computes whatever the input holds
// instead.
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
  using Place = std::pair<size_t, size_t>;  // index of the input, number of the image in it

  // Notes that an image is lost. `nhwc` is FrameTransform::nhwc of its frame.
  void add(const Place& place, bool nhwc) { all_[place] = nhwc; }
  // Notes that the image, or the whole input, was set again.
  void found(const Place& place) { all_.erase(place); }
  void found(size_t input) {
    std::erase_if(all_, [&](const auto& image) { return image.first.first == input; });
  }
  // Returns whether this image is among the first `images` of a batch (0: all of it). An image of a
  // clip consists of several frames.
  static bool is_wanted(const Place& place, bool nhwc, const std::vector<Port>& inputs,
                        size_t images) {
    const Shape& shape = inputs[place.first].shape;
    const auto of_one = static_cast<size_t>(images_of(shape, nhwc) / shape[0]);
    return images == 0 || place.second < of_one * images;
  }
  // Throws Error{bad_argument} if an image that the inference needs is lost; `why` completes the
  // message's first sentence.
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

// The reason for frames that were set for an inference which did not begin.
inline constexpr const char* kNeverRead =
    " is not there: the inference that it was set for did not begin";

}  // namespace clinfer
