// Prints how each family's networks take pictures, for docs/heads.md.
#include <cstdio>
#include <string>

#include "engine/heads/base/conventions.h"

namespace clinfer {
namespace {

std::string number(float value) {
  char text[32];
  std::snprintf(text, sizeof text, "%g", static_cast<double>(value));
  return text;
}

std::string numbers(const std::array<float, 3>& values) {
  if (values[0] == values[1] && values[1] == values[2]) return number(values[0]);
  return number(values[0]) + ", " + number(values[1]) + ", " + number(values[2]);
}

std::string resize(const Convention& row) {
  if (!row.resize) return "any size";
  if (*row.resize == ResizeMode::stretch) return "stretched";
  if (*row.resize == ResizeMode::crop)
    return row.share < 1 ? "cropped to " + number(row.share) : "cropped";
  return "letterboxed, " + number(row.pad_value) +
         (row.centered ? ", centred" : ", at the top left");
}

const char* text_of(Overlaps overlaps) {
  return overlaps == Overlaps::element ? "element" : overlaps == Overlaps::network ? "network" : "";
}

const char* text_of(Background background) {
  return background == Background::first ? "first" : background == Background::last ? "last" : "";
}

}  // namespace
}  // namespace clinfer

int main() {
  using namespace clinfer;
  std::puts(
      "| family | colours | mean | scale | resize | background | overlaps | source |\n"
      "| --- | --- | --- | --- | --- | --- | --- | --- |");
  for (const Convention& row : conventions())
    std::printf("| %s | %s | %s | %s | %s | %s | %s | %s |\n", row.name,
                row.color == ColorOrder::rgb ? "RGB" : "BGR", numbers(row.mean).c_str(),
                numbers(row.scale).c_str(), resize(row).c_str(), text_of(row.background),
                text_of(row.overlaps), row.source);
}
