// Measures how far results agree.
#include "engine/heads/results/agreement.h"

#include <algorithm>
#include <cmath>
#include <map>

namespace clinfer {

namespace {

double share_of(size_t part, size_t all) {
  return all > 0 ? static_cast<double>(part) / static_cast<double>(all) : 1;
}

void compare_objects(const PictureResults& a, const PictureResults& b, double threshold,
                     Agreement& result) {
  const auto counts = [&](const PlacedObject& object) { return object.confidence >= threshold; };
  std::vector<bool> used_a(a.objects.size()), used_b(b.objects.size());
  for (const Pair& pair : matched(a.objects, b.objects)) {
    const PlacedObject &left = a.objects[pair.a], &right = b.objects[pair.b];
    if (!counts(left) && !counts(right)) continue;
    used_a[pair.a] = used_b[pair.b] = true;
    ++(counts(left) && counts(right) ? result.both : result.near);
    result.confidence.add(std::abs(left.confidence - right.confidence));
  }
  for (size_t i = 0; i < a.objects.size(); ++i) {
    result.objects_a += counts(a.objects[i]);
    result.only_a += counts(a.objects[i]) && !used_a[i];
  }
  for (size_t i = 0; i < b.objects.size(); ++i) {
    result.objects_b += counts(b.objects[i]);
    result.only_b += counts(b.objects[i]) && !used_b[i];
  }
}

// Returns the best answer for each attribute.
std::map<std::string, Classification> best_answers(const PictureResults& results) {
  std::map<std::string, Classification> best;
  for (const Classification& answer : results.answers) best.emplace(answer.attribute, answer);
  return best;
}

void compare_answers(const PictureResults& a, const PictureResults& b, Agreement& result) {
  const auto left = best_answers(a), right = best_answers(b);
  for (const auto& [attribute, answer] : left) {
    ++result.answers;
    const auto other = right.find(attribute);
    if (other == right.end() || other->second.label_id != answer.label_id) continue;
    ++result.same_answers;
    result.confidence.add(std::abs(answer.confidence - other->second.confidence));
  }
  for (const auto& [attribute, answer] : right) result.answers += left.count(attribute) == 0;
  for (size_t i = 0; i < std::max(a.texts.size(), b.texts.size()); ++i) {
    ++result.answers;
    result.same_answers +=
        i < a.texts.size() && i < b.texts.size() && a.texts[i].text == b.texts[i].text;
  }
}

void compare_maps(const PictureResults& a, const PictureResults& b, Agreement& result) {
  for (size_t m = 0; m < std::min(a.maps.size(), b.maps.size()); ++m) {
    const PlacedMap &left = a.maps[m], &right = b.maps[m];
    double most = 0;
    for (const float value : left.values)
      if (std::isfinite(value)) most = std::max<double>(most, std::abs(value));
    for (size_t i = 0; i < left.values.size(); ++i) {
      if (std::isnan(left.values[i]) || std::isnan(right.values[i])) continue;
      if (left.kind == MapKind::classes) {
        ++result.cells;
        result.same_cells += left.values[i] == right.values[i];
      } else {
        result.values.add(std::abs(left.values[i] - right.values[i]) / std::max(most, 1e-9));
      }
    }
  }
}

void compare_vectors(const PictureResults& a, const PictureResults& b, Agreement& result) {
  for (size_t i = 0; i < std::min(a.embeddings.size(), b.embeddings.size()); ++i)
    result.values.add(1 - cosine(a.embeddings[i].values, b.embeddings[i].values));
  for (size_t i = 0; i < std::min(a.tensors.size(), b.tensors.size()); ++i) {
    const std::vector<float> left = a.tensors[i].to_floats(), right = b.tensors[i].to_floats();
    double most = 1e-9;
    for (const float value : left)
      if (std::isfinite(value)) most = std::max<double>(most, std::abs(value));
    for (size_t k = 0; k < std::min(left.size(), right.size()); ++k)
      if (std::isfinite(left[k])) result.values.add(std::abs(left[k] - right[k]) / most);
  }
}

}  // namespace

double cosine(const std::vector<float>& a, const std::vector<float>& b) {
  double ab = 0, aa = 0, bb = 0;
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    ab += static_cast<double>(a[i]) * b[i];
    aa += static_cast<double>(a[i]) * a[i];
    bb += static_cast<double>(b[i]) * b[i];
  }
  return ab / std::max(std::sqrt(aa * bb), 1e-30);
}

std::vector<Pair> matched(const std::vector<PlacedObject>& a, const std::vector<PlacedObject>& b) {
  std::vector<Pair> all, kept;
  for (size_t i = 0; i < a.size(); ++i)
    for (size_t k = 0; k < b.size(); ++k)
      if (const double iou = overlap(a[i], b[k]); a[i].label_id == b[k].label_id && iou >= kSameBox)
        all.push_back({i, k, iou});
  std::stable_sort(all.begin(), all.end(),
                   [](const Pair& x, const Pair& y) { return x.overlap > y.overlap; });
  std::vector<bool> used_a(a.size()), used_b(b.size());
  for (const Pair& pair : all) {
    if (used_a[pair.a] || used_b[pair.b]) continue;
    used_a[pair.a] = used_b[pair.b] = true;
    kept.push_back(pair);
  }
  return kept;
}

void Difference::add(double difference) {
  if (std::isnan(difference)) difference = INFINITY;
  sum += difference;
  most = std::max(most, difference);
  ++count;
}

void Difference::add(const Difference& other) {
  sum += other.sum;
  most = std::max(most, other.most);
  count += other.count;
}

void Agreement::add(const Agreement& other) {
  for (const auto member :
       {&Agreement::both, &Agreement::near, &Agreement::only_a, &Agreement::only_b,
        &Agreement::objects_a, &Agreement::objects_b, &Agreement::answers, &Agreement::same_answers,
        &Agreement::cells, &Agreement::same_cells})
    this->*member += other.*member;
  confidence.add(other.confidence);
  values.add(other.values);
}

double Agreement::share_of_objects() const { return share_of(both, objects()); }
double Agreement::share_of_objects_or_near() const { return share_of(both + near, objects()); }

double Agreement::share() const {
  return share_of(both + same_answers + same_cells, objects() + answers + cells);
}

Agreement agreement(const PictureResults& a, const PictureResults& b, double threshold) {
  Agreement result;
  compare_objects(a, b, threshold, result);
  compare_answers(a, b, result);
  compare_maps(a, b, result);
  compare_vectors(a, b, result);
  return result;
}

}  // namespace clinfer
