// Text as coverage masks, laid out by Pango and kept for the next frame.
#pragma once

#include <list>
#include <string>
#include <unordered_map>

#include "gst/overlay/canvas.h"

namespace clinfer {

// Keeps the few hundred masks that were used last. For one thread.
class TextCache {
 public:
  // Returns the mask of `text` (UTF-8; one line, from right to left where its script wants that) in
  // a sans-serif font of `size` pixels, with no margin but the font's own. Other fonts are used for
  // letters that the font lacks. Text wider than `most` pixels is shortened in its middle, because
  // a tag ends with its score. The mask is at least 1x1 and valid until the next call.
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
