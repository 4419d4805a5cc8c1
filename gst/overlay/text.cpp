// Renders text as coverage masks.
#include "gst/overlay/text.h"

#include <pango/pangocairo.h>

#include <algorithm>
#include <memory>

namespace clinfer {
namespace {

constexpr size_t kMostEntries = 512;
constexpr int kWidest = 4096;

struct Release {
  void operator()(cairo_t* context) const { cairo_destroy(context); }
  void operator()(cairo_surface_t* surface) const { cairo_surface_destroy(surface); }
  void operator()(PangoLayout* layout) const { g_object_unref(layout); }
  void operator()(PangoFontDescription* font) const { pango_font_description_free(font); }
  void operator()(char* text) const { g_free(text); }
};
template <typename T>
using Owner = std::unique_ptr<T, Release>;

// Makes a layout of one line of this text.
Owner<PangoLayout> layout_of(cairo_t* context, const std::string& text, int size, int most) {
  Owner<PangoLayout> layout(pango_cairo_create_layout(context));
  const Owner<PangoFontDescription> font(pango_font_description_from_string("Sans Bold"));
  pango_font_description_set_absolute_size(font.get(), static_cast<double>(size) * PANGO_SCALE);
  pango_layout_set_font_description(layout.get(), font.get());
  pango_layout_set_single_paragraph_mode(layout.get(), TRUE);
  const Owner<char> valid(g_utf8_make_valid(text.data(), static_cast<gssize>(text.size())));
  pango_layout_set_text(layout.get(), valid.get(), -1);
  int width = 0;
  pango_layout_get_pixel_size(layout.get(), &width, nullptr);
  if (width > most) {
    pango_layout_set_ellipsize(layout.get(), PANGO_ELLIPSIZE_MIDDLE);
    pango_layout_set_width(layout.get(), most * PANGO_SCALE);
  }
  return layout;
}

Mask render(const std::string& text, int size, int most) {
  const Owner<cairo_surface_t> probe(cairo_image_surface_create(CAIRO_FORMAT_A8, 1, 1));
  const Owner<cairo_t> measure(cairo_create(probe.get()));
  PangoRectangle ink, logical;
  pango_layout_get_pixel_extents(layout_of(measure.get(), text, size, most).get(), &ink, &logical);
  Mask mask;
  mask.width = std::clamp(logical.width, 1, most);
  mask.height = std::clamp(logical.height, 1, kWidest);
  mask.coverage.assign(static_cast<size_t>(mask.width) * static_cast<size_t>(mask.height), 0);

  const Owner<cairo_surface_t> surface(
      cairo_image_surface_create(CAIRO_FORMAT_A8, mask.width, mask.height));
  {
    const Owner<cairo_t> context(cairo_create(surface.get()));
    cairo_set_source_rgba(context.get(), 1, 1, 1, 1);
    // Moves by the offset of the layout, since text from right to left does not begin at 0.
    cairo_move_to(context.get(), -logical.x, -logical.y);
    pango_cairo_show_layout(context.get(), layout_of(context.get(), text, size, most).get());
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

const Mask& TextCache::mask(const std::string& text, int size, int most) {
  most = std::clamp(most, 1, kWidest);
  const std::string key = std::to_string(size) + ' ' + std::to_string(most) + ' ' + text;
  if (const auto found = by_key_.find(key); found != by_key_.end()) {
    entries_.splice(entries_.begin(), entries_, found->second);
    return entries_.front().mask;
  }
  if (entries_.size() >= kMostEntries) {
    by_key_.erase(entries_.back().key);
    entries_.pop_back();
  }
  entries_.push_front({key, render(text, size, most)});
  by_key_[key] = entries_.begin();
  return entries_.front().mask;
}

}  // namespace clinfer
