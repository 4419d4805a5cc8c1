// Checks pictures and turns tensors of planes into them.
#include "engine/runtime/frames/picture_planes.h"

#include <algorithm>
#include <cstdint>

#include "kernels/frames/clip.h"

namespace clinfer {

void check_image(size_t index, const Port& port, const Frame& frame,
                 const FrameTransform& transform, size_t image) {
  if (static_cast<int64_t>(image) >= images_of(port.shape, transform.nhwc))
    throw Error(ErrorCode::bad_argument, "input " + std::to_string(index) + " (\"" + port.name +
                                             "\", " + to_string(port.shape) + ") has no image " +
                                             std::to_string(image));
  if (frame.width < 1 || frame.height < 1)
    throw Error(ErrorCode::bad_argument, "a frame has no pixels");
}

PictureInput find_picture(const std::vector<Port>& inputs) {
  std::vector<PictureInput> found;
  const auto is_color = [](int64_t channels) { return channels == 1 || channels == 3; };
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Shape& shape = inputs[i].shape;
    if (shape.size() != 4 || (!is_color(shape[1]) && !is_color(shape[3]))) continue;
    PictureInput picture;
    picture.index = i;
    picture.transform.nhwc = !is_color(shape[1]);
    const size_t rows = picture.transform.nhwc ? 1 : 2;
    picture.height = shape[rows];
    picture.width = shape[rows + 1];
    if (shape[picture.transform.nhwc ? 3 : 1] == 1) picture.transform.color = ColorOrder::gray;
    found.push_back(picture);
  }
  if (found.size() != 1)
    throw Error(ErrorCode::unsupported,
                "NV12_TWO_INPUTS=YES: the model has " +
                    (found.empty() ? std::string("no") : std::to_string(found.size())) +
                    " inputs for pictures (rank 4 with 1 or 3 channels), it needs one");
  return found[0];
}

std::vector<Port> with_planes(const std::vector<Port>& inputs, const PictureInput& picture) {
  std::vector<Port> ports;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (i != picture.index) {
      ports.push_back(inputs[i]);
      continue;
    }
    const int64_t n = inputs[i].shape[0], h = picture.height, w = picture.width;
    ports.push_back({inputs[i].name + "_Y", ElementType::u8, {n, 1, h, w}, {}, true});
    ports.push_back(
        {inputs[i].name + "_UV", ElementType::u8, {n, 2, (h + 1) / 2, (w + 1) / 2}, {}, true});
  }
  return ports;
}

void PicturePlanes::set(size_t plane, const Port& port, const Tensor& value) {
  const Shape& shape = value.shape();
  if (shape.size() != 4 || shape[0] != port.shape[0] || shape[1] != port.shape[1] || shape[2] < 1 ||
      shape[3] < 1)
    throw Error(ErrorCode::bad_argument,
                "input \"" + port.name + "\" takes " + to_string(port.shape) +
                    " of any height and width, the value given is " + to_string(shape));
  planes_[plane] = value.convert(ElementType::u8);
  pending_ = true;
}

Frame PicturePlanes::frame(int64_t image) {
  if (planes_[0].empty() || planes_[1].empty())
    throw Error(
        ErrorCode::bad_argument,
        std::string("the ") + (planes_[0].empty() ? "Y" : "UV") +
            " plane of the picture is not set (NV12_TWO_INPUTS=YES makes it an input of its own)");
  const int64_t h = planes_[0].shape()[2], w = planes_[0].shape()[3];
  const int64_t half_h = planes_[1].shape()[2], half_w = planes_[1].shape()[3];
  if (half_h != (h + 1) / 2 || half_w != (w + 1) / 2)
    throw Error(ErrorCode::bad_argument, "a Y plane of " + to_string(planes_[0].shape()) +
                                             " and a UV plane of " + to_string(planes_[1].shape()) +
                                             " are no picture: UV has half the height and width");
  pending_ = false;
  Frame frame;
  frame.format = PixelFormat::i420;  // U precedes V in the tensor
  // Sizes beyond an int are no picture sizes; the preprocessing refuses them by its own limits.
  frame.width = static_cast<int>(std::min<int64_t>(w, INT32_MAX));
  frame.height = static_cast<int>(std::min<int64_t>(h, INT32_MAX));
  const auto* y = static_cast<const uint8_t*>(planes_[0].raw());
  const auto* uv = static_cast<const uint8_t*>(planes_[1].raw());
  frame.planes = {y + image * h * w, uv + 2 * image * half_h * half_w,
                  uv + (2 * image + 1) * half_h * half_w};
  frame.strides = {frame.width, static_cast<int>(half_w), static_cast<int>(half_w)};
  return frame;
}

}  // namespace clinfer
