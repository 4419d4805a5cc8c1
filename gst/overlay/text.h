// Renders text as coverage masks, laid out by Pango, and keeps them for later frames.
#pragma once

#include <list>
#include <string>
#include <unordered_map>

#include "gst/overlay/canvas.h"

namespace clinfer {

// Keeps the few hundred masks that were used last. Not thread-safe.
class TextCache {
 public:
  // Returns the mask of `text` (UTF-8; one line, from right to left if its script requires that) in
  // a sans-serif font of `size` pixels, with no margin except the font's own. Uses other fonts for
  // letters that the font lacks. Shortens text wider than `most` pixels in its middle, because a
  // tag ends with its score. The mask is at least 1x1 and valid until the next call.
  const Mask& mask(const std::string& text, int size, int most = 4096);

 private:
  struct Entry {
    std::string key;
    Mask mask;
  };
  std::list<Entry> entries_;  // most recently used first
  std::unordered_map<std::string, std::list<Entry>::iterator> by_key_;
};

}  // namespace clinfer
