// Text as coverage masks.
#include "gst/base/text.h"

#include <cairo.h>

#include <algorithm>
#include <cmath>
#include <memory>

namespace clinfer {
namespace {

constexpr size_t kMostEntries = 512;
constexpr int kWidest = 4096;

struct CairoDeleter {
  void operator()(cairo_t* context) const { cairo_destroy(context); }
  void operator()(cairo_surface_t* surface) const { cairo_surface_destroy(surface); }
};
using Context = std::unique_ptr<cairo_t, CairoDeleter>;
using Surface = std::unique_ptr<cairo_surface_t, CairoDeleter>;

void set_font(cairo_t* context, int size) {
  cairo_select_font_face(context, "sans-serif", CAIRO_FONT_SLANT_NORMAL, CAIRO_FONT_WEIGHT_BOLD);
  cairo_set_font_size(context, size);
  cairo_font_options_t* options = cairo_font_options_create();
  cairo_font_options_set_antialias(options, CAIRO_ANTIALIAS_GRAY);
  cairo_font_options_set_hint_style(options, CAIRO_HINT_STYLE_SLIGHT);
  cairo_font_options_set_hint_metrics(options, CAIRO_HINT_METRICS_ON);
  cairo_set_font_options(context, options);
  cairo_font_options_destroy(options);
}

Mask render(const std::string& text, int size) {
  const Surface probe(cairo_image_surface_create(CAIRO_FORMAT_A8, 1, 1));
  const Context measure(cairo_create(probe.get()));
  set_font(measure.get(), size);
  cairo_font_extents_t font;
  cairo_text_extents_t extents;
  cairo_font_extents(measure.get(), &font);
  cairo_text_extents(measure.get(), text.c_str(), &extents);

  Mask mask;
  const double left = std::min(extents.x_bearing, 0.0);
  mask.width = std::clamp(
      static_cast<int>(
          std::ceil(std::max(extents.x_advance, extents.x_bearing + extents.width) - left)),
      1, kWidest);
  mask.height = std::clamp(static_cast<int>(std::ceil(font.ascent + font.descent)), 1, kWidest);
  mask.coverage.assign(static_cast<size_t>(mask.width) * static_cast<size_t>(mask.height), 0);

  const Surface surface(cairo_image_surface_create(CAIRO_FORMAT_A8, mask.width, mask.height));
  {
    const Context context(cairo_create(surface.get()));
    set_font(context.get(), size);
    cairo_set_source_rgba(context.get(), 1, 1, 1, 1);
    cairo_move_to(context.get(), -left, font.ascent);
    cairo_show_text(context.get(), text.c_str());
  }
  cairo_surface_flush(surface.get());
  if (const unsigned char* data = cairo_image_surface_get_data(surface.get())) {
    const int stride = cairo_image_surface_get_stride(surface.get());
    for (int y = 0; y < mask.height; ++y)
      std::copy_n(data + static_cast<ptrdiff_t>(y) * stride, mask.width,
                  mask.coverage.begin() + static_cast<ptrdiff_t>(y) * mask.width);
  }
  return mask;
}

}  // namespace

const Mask& TextCache::mask(const std::string& text, int size) {
  const std::string key = std::to_string(size) + ' ' + text;
  if (const auto found = by_key_.find(key); found != by_key_.end()) {
    entries_.splice(entries_.begin(), entries_, found->second);
    return entries_.front().mask;
  }
  if (entries_.size() >= kMostEntries) {
    by_key_.erase(entries_.back().key);
    entries_.pop_back();
  }
  entries_.push_front({key, render(text, size)});
  by_key_[key] = entries_.begin();
  return entries_.front().mask;
}

}  // namespace clinfer
