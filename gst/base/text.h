// Text as coverage masks, drawn by cairo and kept for the next frame.
#pragma once

#include <list>
#include <string>
#include <unordered_map>

#include "gst/overlay/canvas.h"

namespace clinfer {

// For one thread. The most recently used few hundred masks are kept.
class TextCache {
 public:
  // The mask of `text` (UTF-8) in a sans-serif font of `size` pixels, with no margin but the font's
  // own. At least 1x1; valid until the next call.
  const Mask& mask(const std::string& text, int size);

 private:
  struct Entry {
    std::string key;
    Mask mask;
  };
  std::list<Entry> entries_;  // most recently used first
  std::unordered_map<std::string, std::list<Entry>::iterator> by_key_;
};

}  // namespace clinfer
