// Computes the evidence of results.
#include "engine/tools/commands/doctor/evidence.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "engine/heads/results/agreement.h"

namespace clinfer {

namespace {

constexpr size_t kMostObjects = 30;     // the most confident ones of a frame
constexpr double kWholePicture = 0.95;  // as a share of its area

// Returns the objects that may be real.
std::vector<PlacedObject> plausible(const PictureResults& results, const PictureResults& empty) {
  std::vector<PlacedObject> objects;
  for (const PlacedObject& object : results.objects) {
    const bool artefact =
        std::any_of(empty.objects.begin(), empty.objects.end(), [&](const auto& e) {
          return e.label_id == object.label_id && overlap(e, object) >= kSameBox &&
                 e.confidence >= 0.5 * object.confidence;
        });
    if (!artefact && !object.whole && object.area() > 0 && object.area() < kWholePicture)
      objects.push_back(object);
  }
  std::stable_sort(objects.begin(), objects.end(),
                   [](const auto& a, const auto& b) { return a.confidence > b.confidence; });
  if (objects.size() > kMostObjects) objects.resize(kMostObjects);
  return objects;
}

// Sums of confidence over two copies: of objects on which they agree, and of those that only one
// has.
struct Mass {
  double agreed = 0, alone = 0;
};

Mass mass_of(const std::vector<PlacedObject>& a, const std::vector<PlacedObject>& b, double seen) {
  const double edge = (1 - seen) / 2;
  const auto is_seen = [&](const PlacedObject& object) {
    const double x = (object.x_min + object.x_max) / 2, y = (object.y_min + object.y_max) / 2;
    return x > edge && x < 1 - edge && y > edge && y < 1 - edge;
  };
  Mass mass;
  std::vector<bool> used_a(a.size()), used_b(b.size());
  for (const Pair& pair : matched(a, b)) {
    used_a[pair.a] = used_b[pair.b] = true;
    mass.agreed += std::sqrt(a[pair.a].confidence * b[pair.b].confidence) * pair.overlap;
  }
  for (size_t i = 0; i < a.size(); ++i)
    if (!used_a[i] && is_seen(a[i])) mass.alone += a[i].confidence;
  for (size_t i = 0; i < b.size(); ++i)
    if (!used_b[i] && is_seen(b[i])) mass.alone += b[i].confidence;
  return mass;
}

double of_objects(const Copies& copies, const PictureResults& empty) {
  const auto original = plausible(copies.original, empty);
  Mass mass = mass_of(original, plausible(copies.mirrored, empty), 1);
  const Mass zoomed = mass_of(original, plausible(copies.zoomed, empty), copies.zoom);
  mass.agreed += zoomed.agreed;
  mass.alone += zoomed.alone;
  // Counts a lone object once and an agreed one, which is in both lists, twice.
  const double all = mass.agreed + mass.alone / 2;
  return all > 0 ? mass.agreed / 2 * mass.agreed / all : 0;
}

const Classification* best(const PictureResults& results, const std::string& attribute) {
  for (const Classification& answer : results.answers)
    if (answer.attribute == attribute) return &answer;
  return nullptr;
}

double of_answers(const Copies& copies, const PictureResults& empty) {
  double sum = 0;
  std::map<std::string, bool> seen;
  for (const Classification& answer : copies.original.answers) {
    if (!seen.emplace(answer.attribute, true).second) continue;
    const Classification* of_nothing = best(empty, answer.attribute);
    // Reduces the worth of an answer that a grey picture gets as well by its confidence there.
    const double news = of_nothing != nullptr && of_nothing->label_id == answer.label_id
                            ? 1 - of_nothing->confidence
                            : 1;
    for (const PictureResults* copy : {&copies.mirrored, &copies.zoomed})
      if (const Classification* other = best(*copy, answer.attribute);
          other != nullptr && other->label_id == answer.label_id)
        sum += std::sqrt(static_cast<double>(answer.confidence) * other->confidence) * news / 2;
  }
  return sum;
}

// Compares two maps. Classes: the share of equal points, without those that have the picture's most
// frequent class in both. Values: the correlation.
double likeness(const PlacedMap& a, const PlacedMap& b) {
  if (a.kind == MapKind::classes) {
    std::map<float, size_t> counts;
    for (const float value : a.values)
      if (!std::isnan(value)) ++counts[value];
    if (counts.empty()) return 0;
    const float common = std::max_element(counts.begin(), counts.end(), [](auto& x, auto& y) {
                           return x.second < y.second;
                         })->first;
    size_t same = 0, all = 0;
    for (size_t i = 0; i < a.values.size(); ++i) {
      if (std::isnan(a.values[i]) || std::isnan(b.values[i])) continue;
      if (a.values[i] == common && b.values[i] == common) continue;
      ++all;
      same += a.values[i] == b.values[i];
    }
    return all > 0 ? static_cast<double>(same) / static_cast<double>(all) : 0;
  }
  double n = 0, sa = 0, sb = 0, saa = 0, sbb = 0, sab = 0;
  for (size_t i = 0; i < a.values.size(); ++i) {
    const double x = a.values[i], y = b.values[i];
    if (!std::isfinite(x) || !std::isfinite(y)) continue;
    ++n;
    sa += x;
    sb += y;
    saa += x * x;
    sbb += y * y;
    sab += x * y;
  }
  const double spread =
      std::sqrt(std::max(n * saa - sa * sa, 0.0)) * std::sqrt(std::max(n * sbb - sb * sb, 0.0));
  return spread > 1e-12 ? std::max(0.0, (n * sab - sa * sb) / spread) : 0;
}

double of_maps(const Copies& copies, const PictureResults& empty) {
  double sum = 0;
  for (size_t i = 0; i < copies.original.maps.size(); ++i) {
    const PlacedMap& original = copies.original.maps[i];
    double alike = 0;
    for (const PictureResults* copy : {&copies.mirrored, &copies.zoomed})
      if (i < copy->maps.size()) alike += likeness(original, copy->maps[i]) / 2;
    const double of_nothing = i < empty.maps.size() ? likeness(original, empty.maps[i]) : 0;
    // Maps that leave out a part of the picture get less.
    const auto unknown = std::count_if(original.values.begin(), original.values.end(),
                                       [](float value) { return std::isnan(value); });
    const double seen = 1 - static_cast<double>(unknown) /
                                static_cast<double>(std::max<size_t>(original.values.size(), 1));
    sum += seen * std::max(0.0, alike - of_nothing);
  }
  return sum;
}

}  // namespace

double evidence(const Copies& copies, const PictureResults& empty) {
  if (!copies.original.contradiction.empty()) return 0;
  const double sum = of_objects(copies, empty) + of_answers(copies, empty) + of_maps(copies, empty);
  return std::isfinite(sum) ? sum : 0;
}

Paired paired(const std::vector<double>& a, const std::vector<double>& b) {
  const size_t n = std::min(a.size(), b.size());
  Paired result;
  if (n == 0) return result;
  const auto count = static_cast<double>(n);
  for (size_t i = 0; i < n; ++i) result.mean += (a[i] - b[i]) / count;
  double squares = 0;
  for (size_t i = 0; i < n; ++i)
    squares += (a[i] - b[i] - result.mean) * (a[i] - b[i] - result.mean);
  result.error = n > 1 ? std::sqrt(squares / (count * (count - 1))) : INFINITY;
  return result;
}

}  // namespace clinfer
