// Recognises clips: network inputs of several frames.
#include "kernels/frames/clip.h"

namespace clinfer {

std::optional<ClipAxes> clip_axes(const Shape& shape, bool nhwc) {
  const size_t rank = shape.size();
  if (rank != 5 && !(rank == 6 && shape[1] == 1)) return std::nullopt;
  const auto is_channels = [&](size_t axis) { return shape[axis] == 1 || shape[axis] == 3; };
  const size_t first = rank - 4;  // the first of the four dimensions after the batch
  if (nhwc)
    return is_channels(rank - 1) ? std::optional(ClipAxes{first, rank - 1, rank - 3, rank - 2})
                                 : std::nullopt;
  const bool channels_first = is_channels(first);
  if (!channels_first && !is_channels(first + 1)) return std::nullopt;
  return ClipAxes{channels_first ? first + 1 : first, channels_first ? first : first + 1, rank - 2,
                  rank - 1};
}

int64_t images_of(const Shape& shape, bool nhwc) {
  if (shape.size() == 4) return shape[0];
  const auto axes = clip_axes(shape, nhwc);
  return axes ? shape[0] * shape[axes->frames] : 0;
}

TensorDesc image_in(const TensorDesc& input, bool nhwc, int64_t image, int& index) {
  const auto axes = clip_axes(input.shape, nhwc);
  if (!axes) {
    index = static_cast<int>(image);
    return input;
  }
  const int64_t frames = input.shape[axes->frames];
  const int64_t begin =
      image / frames * input.strides[0] + image % frames * input.strides[axes->frames];
  TensorDesc one = input;
  one.shape = {2};
  one.strides = {begin};
  const auto take = [&](size_t axis) {
    one.shape.push_back(input.shape[axis]);
    one.strides.push_back(input.strides[axis]);
  };
  if (!nhwc) take(axes->channels);
  take(axes->height);
  take(axes->width);
  if (nhwc) take(axes->channels);
  index = 1;
  return one;
}

}  // namespace clinfer
