// Reads frames from a pipeline in a child process, through a pipe.
#include "engine/tools/video/video_frames.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <map>
#include <optional>
#include <utility>

#include "engine/tools/output/progress.h"
#include "engine/tools/video/elements.h"
#include "kernels/base/error.h"
#include "kernels/base/text.h"

namespace clinfer {

namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t kMemory = size_t{512} << 20;
constexpr size_t kLargestSide = 16384;
constexpr auto kLongest = std::chrono::seconds(20);  // for a source without end
constexpr auto kSilence = std::chrono::seconds(30);  // limit for waiting for a frame

class Pipe {
 public:
  Pipe() {
    if (pipe2(ends_, O_CLOEXEC) != 0)
      throw Error{ErrorCode::out_of_memory, std::string("no pipe: ") + std::strerror(errno)};
  }
  ~Pipe() {
    close_writer();
    close(ends_[0]);
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  int reader() const { return ends_[0]; }
  int writer() const { return ends_[1]; }
  void close_writer() {
    if (ends_[1] >= 0) close(std::exchange(ends_[1], -1));
  }

 private:
  int ends_[2] = {-1, -1};
};

size_t rounded(size_t value, size_t to) { return (value + to - 1) / to * to; }

// Returns the value of "name=(type)value" in caps.
std::string field(const std::string& caps, const std::string& name) {
  const std::string key = " " + name + "=";
  size_t at = caps.find(key);
  if (at == std::string::npos) return {};
  at += key.size();
  if (at < caps.size() && caps[at] == '(') at = std::min(caps.find(')', at), caps.size() - 1) + 1;
  std::string value = caps.substr(at, caps.find(',', at) - at);
  std::erase(value, '"');
  return value;
}

// Runs a child process that decodes one video. Reads its frames one after the other, as GStreamer's
// data protocol packs them: a header of 62 bytes, which states the kind and length of what follows.
class Decoder {
 public:
  explicit Decoder(const std::string& video) : video_(video) {
    std::vector<std::string> words = {"gst-launch-1.0", "-q"};
    for (const std::string& word : decoded(video)) words.push_back(word);
    append(words, {"!", "videoconvert", "!", "video/x-raw,format=I420", "!", "gdppay", "!",
                   "fdsink", "fd=3", "sync=false"});
    child_ = start_child(words, STDERR_FILENO, data_.writer());
    data_.close_writer();
  }
  ~Decoder() {
    if (child_ <= 0) return;
    kill(child_, SIGKILL);
    ended_well(child_);
  }
  Decoder(const Decoder&) = delete;
  Decoder& operator=(const Decoder&) = delete;

  // Returns null at the end of the video.
  std::shared_ptr<std::vector<uint8_t>> next() {
    constexpr size_t kHeader = 62, kLargest = size_t{1} << 30;
    constexpr unsigned kBuffer = 1, kCaps = 2;
    std::vector<uint8_t> header(kHeader);
    for (;;) {
      if (!fill(header)) return end();
      const auto number = [&](size_t at, size_t bytes) {
        size_t value = 0;
        for (size_t i = at; i < at + bytes; ++i) value = value << 8 | header[i];
        return value;
      };
      const size_t kind = number(4, 2), length = number(6, 4);
      if (length > kLargest)
        throw Error{ErrorCode::bad_argument, video_ + ": a frame of more than 1 GiB"};
      auto payload = std::make_shared<std::vector<uint8_t>>(length);
      if (!fill(*payload)) return end();
      if (kind == kCaps)
        take_layout(layout_of(
            std::string(payload->begin(), std::find(payload->begin(), payload->end(), 0))));
      if (kind != kBuffer) continue;
      if (!layout_ || length != layout_->bytes)
        throw Error{ErrorCode::bad_argument,
                    video_ + ": its frames do not have the size that is stated"};
      return payload;
    }
  }
  const FrameLayout& layout() const { return *layout_; }

 private:
  void take_layout(const FrameLayout& layout) {
    if (layout_ && (layout_->bytes != layout.bytes || layout_->frame.width != layout.frame.width))
      throw Error{ErrorCode::unsupported, video_ + " changes its size: cut it where it does"};
    layout_ = layout;
  }

  // Returns false at the end of the data.
  bool fill(std::vector<uint8_t>& bytes) {
    size_t filled = 0;
    const auto begin = Clock::now();
    while (filled < bytes.size()) {
      end_if_interrupted("nothing is written");
      if (Clock::now() - begin > kSilence)
        throw Error{ErrorCode::not_found, video_ + " gives no frame for 30 s"};
      pollfd wait{data_.reader(), POLLIN, 0};
      if (poll(&wait, 1, 200) < 0 && errno != EINTR) return false;
      if (wait.revents == 0) continue;
      const ssize_t got = read(data_.reader(), bytes.data() + filled, bytes.size() - filled);
      if (got == 0) return false;
      if (got > 0) filled += static_cast<size_t>(got);
    }
    return true;
  }

  std::shared_ptr<std::vector<uint8_t>> end() {
    const bool well = ended_well(std::exchange(child_, 0));
    if (!well && !layout_)
      throw Error{ErrorCode::not_found,
                  video_ +
                      " cannot be decoded; GStreamer says why above (gstreamer1.0-libav and "
                      "gstreamer1.0-plugins-bad bring decoders, and the element gdppay)"};
    return nullptr;
  }

  const std::string video_;
  Pipe data_;
  pid_t child_ = 0;
  std::optional<FrameLayout> layout_;
};

VideoFrame frame_of(const Decoder& decoder, std::shared_ptr<const std::vector<uint8_t>> bytes,
                    const std::string& video, size_t number) {
  VideoFrame result{std::move(bytes), decoder.layout().frame, decoder.layout().colours, video,
                    number};
  for (size_t i = 0; i < 3; ++i)
    result.frame.planes[i] = result.bytes->data() + decoder.layout().offsets[i];
  return result;
}

std::vector<VideoFrame> sample_video(const std::string& video, size_t count,
                                     ProgressLine& progress) {
  std::error_code error;
  if (video.find("://") == std::string::npos && !std::filesystem::exists(video, error))
    throw Error{ErrorCode::not_found, "there is no video " + video};
  Decoder decoder(video);
  std::optional<EvenSample> sample;
  std::map<size_t, std::shared_ptr<const std::vector<uint8_t>>> frames;
  const auto begin = Clock::now();
  const bool endless = video.find("://") != std::string::npos && !video.starts_with("file://");
  for (size_t number = 0; !endless || Clock::now() - begin < kLongest; ++number) {
    auto bytes = decoder.next();
    if (!bytes) break;
    if (!sample) sample.emplace(std::clamp<size_t>(kMemory / 2 / bytes->size(), 1, count));
    if (sample->wants(number)) frames[number] = std::move(bytes);
    std::erase_if(frames, [&](const auto& entry) {
      return !std::binary_search(sample->kept().begin(), sample->kept().end(), entry.first);
    });
    progress("reading " + video + ": frame", number + 1, 0);
  }
  if (frames.empty()) throw Error{ErrorCode::bad_argument, video + " has no frames"};
  std::vector<VideoFrame> result;
  for (const size_t number : sample->chosen())
    result.push_back(frame_of(decoder, frames.at(number), video, number));
  return result;
}

}  // namespace

FrameLayout layout_of(const std::string& caps) {
  const auto whole = [&](std::string_view text) {
    size_t value = 0;
    const auto end = std::from_chars(text.data(), text.data() + text.size(), value);
    if (end.ec != std::errc() || value < 1 || value > kLargestSide)
      throw Error{ErrorCode::bad_argument, "frames of unknown size: " + message_line(caps)};
    return value;
  };
  const auto number = [&](const char* name) { return whole(field(caps, name)); };
  if (field(caps, "format") != "I420")
    throw Error{ErrorCode::bad_argument, "frames are not I420: " + message_line(caps)};
  const size_t width = number("width"), height = number("height");
  const size_t luma = rounded(width, 4), chroma = rounded(rounded(width, 2) / 2, 4);
  const size_t rows = rounded(height, 2);
  FrameLayout layout;
  layout.frame.format = PixelFormat::i420;
  layout.frame.width = static_cast<int>(width);
  layout.frame.height = static_cast<int>(height);
  layout.frame.strides = {static_cast<int>(luma), static_cast<int>(chroma),
                          static_cast<int>(chroma)};
  layout.offsets = {0, luma * rows, luma * rows + chroma * (rows / 2)};
  layout.bytes = layout.offsets[2] + chroma * (rows / 2);
  if (const std::string aspect = field(caps, "pixel-aspect-ratio"); !aspect.empty()) {
    const size_t slash = std::min(aspect.find('/'), aspect.size() - 1);
    layout.frame.pixel_aspect =
        static_cast<double>(whole(aspect)) /
        static_cast<double>(whole(std::string_view(aspect).substr(slash + 1)));
  }
  // Colorimetry is a name, or range:matrix:transfer:primaries in GStreamer's numbers.
  const std::string colours = layout.colours = field(caps, "colorimetry");
  layout.frame.full_range = colours.starts_with("1:") || colours == "sRGB";
  const size_t colon = colours.find(':');
  const std::string matrix =
      colon == std::string::npos
          ? colours
          : colours.substr(colon + 1, colours.find(':', colon + 1) - colon - 1);
  if (matrix == "bt709" || matrix == "3" || matrix == "smpte240m" || matrix == "5")
    layout.frame.matrix = YuvMatrix::bt709;
  else if (matrix.starts_with("bt2020") || matrix.starts_with("bt2100") || matrix == "6")
    layout.frame.matrix = YuvMatrix::bt2020;
  return layout;
}

bool EvenSample::wants(size_t number) {
  if (number % step_ != 0) return false;
  if (kept_.size() == 2 * count_) {
    step_ *= 2;
    std::erase_if(kept_, [&](size_t kept) { return kept % step_ != 0; });
    if (number % step_ != 0) return false;
  }
  kept_.push_back(number);
  return true;
}

std::vector<size_t> EvenSample::chosen() const {
  if (kept_.size() <= count_) return kept_;
  std::vector<size_t> chosen;
  for (size_t i = 0; i < count_; ++i)
    chosen.push_back(kept_[count_ == 1 ? kept_.size() / 2 : i * (kept_.size() - 1) / (count_ - 1)]);
  return chosen;
}

std::vector<VideoFrame> sample_frames(const std::vector<std::string>& videos, size_t count) {
  ProgressLine progress;
  std::vector<VideoFrame> frames;
  for (size_t i = 0; i < videos.size(); ++i) {
    const size_t share =
        std::max<size_t>(count * (i + 1) / videos.size() - count * i / videos.size(), 1);
    for (VideoFrame& frame : sample_video(videos[i], share, progress))
      frames.push_back(std::move(frame));
  }
  return frames;
}

}  // namespace clinfer
