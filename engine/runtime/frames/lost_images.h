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

  // Notes that an image is lost. `nhwc` is FrameTransform::nhwc of its frame. Allocates nothing if
  // found() was called for the image before.
  void add(const Place& place, bool nhwc) { all_[place] = {true, nhwc}; }
  // Notes that the image, or the whole input, was set again.
  void found(const Place& place) { all_[place].lost = false; }
  void found(size_t input) {
    for (auto& [place, image] : all_) image.lost = image.lost && place.first != input;
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
    for (const auto& [place, image] : all_)
      if (image.lost && is_wanted(place, image.nhwc, inputs, images))
        throw Error(ErrorCode::bad_argument, "image " + std::to_string(place.second) +
                                                 " of input " + std::to_string(place.first) + why +
                                                 "; set it again");
  }

 private:
  struct Image {
    bool lost = false, nhwc = false;
  };
  std::map<Place, Image> all_;
};

// The reason for frames that were set for an inference which did not begin.
inline constexpr const char* kNeverRead =
    " is not there: the inference that it was set for did not begin";

}  // namespace clinfer
