// The comparisons of the conformance set, by the rules that its own checker states.
#include "tests/engine/networks/conformance_case.h"

#include <json-glib/json-glib.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <numeric>
#include <set>
#include <stdexcept>

#include "engine/tools/output/npy.h"

namespace clinfer {

namespace {

using Row = std::vector<double>;

std::string text_of(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%g", value);
  return text;
}

std::vector<double> values_of(const Tensor& tensor) {
  if (tensor.type() == ElementType::i64 || tensor.type() == ElementType::i32) {
    const std::vector<int64_t> ints = tensor.to_ints();
    return {ints.begin(), ints.end()};
  }
  const std::vector<float> floats = tensor.to_floats();
  return {floats.begin(), floats.end()};
}

// Rows of the last dimension.
std::vector<Row> rows_of(const Tensor& tensor) {
  const std::vector<double> values = values_of(tensor);
  const size_t width = tensor.shape().empty() ? 1 : static_cast<size_t>(tensor.shape().back());
  std::vector<Row> rows;
  for (size_t at = 0; width && at + width <= values.size(); at += width)
    rows.emplace_back(values.begin() + static_cast<ptrdiff_t>(at),
                      values.begin() + static_cast<ptrdiff_t>(at + width));
  return rows;
}

// The class of an element type. i32 for i64 and f16 for f32 are the same, so is u8 with 0 and 1 for
// boolean.
std::string form_problem(const Tensor& got, const Tensor& want, bool shape = true) {
  if (shape && got.shape() != want.shape())
    return "shape " + to_string(got.shape()) + ", expected " + to_string(want.shape());
  const auto class_of = [](ElementType type) {
    return is_float(type) ? 0 : type == ElementType::boolean ? 1 : 2;
  };
  if (class_of(got.type()) == class_of(want.type())) return "";
  if (want.type() == ElementType::boolean && got.type() == ElementType::u8) {
    const std::vector<int64_t> values = got.to_ints();
    if (std::all_of(values.begin(), values.end(), [](int64_t v) { return v <= 1; })) return "";
  }
  return "type " + std::string(name_of(got.type())) + ", expected " +
         std::string(name_of(want.type()));
}

std::string values_problem(const std::vector<double>& got, const std::vector<double>& want,
                           double atol, double rtol, double outliers = 0, double outlier_atol = 0) {
  size_t wrong = 0, first = 0;
  bool far = false;
  for (size_t i = 0; i < want.size(); ++i) {
    const double error = std::abs(got[i] - want[i]), allowed = rtol * std::abs(want[i]);
    const bool same_infinity = std::isinf(want[i]) && got[i] == want[i];
    if (same_infinity || error <= atol + allowed) continue;  // NaN is wrong
    if (wrong++ == 0) first = i;
    far |= !(error <= outlier_atol + allowed);
  }
  if (wrong == 0) return "";
  if (outliers > 0 && !far &&
      static_cast<double>(wrong) <= outliers * static_cast<double>(want.size()))
    return "";
  return std::to_string(wrong) + " of " + std::to_string(want.size()) +
         " values differ, first at " + std::to_string(first) + ": " + text_of(got[first]) +
         ", expected " + text_of(want[first]);
}

std::string tensor_problem(const Tensor& got, const Tensor& want, double atol, double rtol,
                           double outliers = 0, double outlier_atol = 0) {
  const std::string form = form_problem(got, want);
  if (!form.empty()) return form;
  return values_problem(values_of(got), values_of(want), atol, is_float(want.type()) ? rtol : 0,
                        outliers, outlier_atol);
}

double iou(const Row& a, const Row& b) {  // boxes at 3..6
  const auto size = [](double low, double high) { return std::max(0.0, high - low); };
  const double shared = size(std::max(a[3], b[3]), std::min(a[5], b[5])) *
                        size(std::max(a[4], b[4]), std::min(a[6], b[6]));
  const double total = (a[5] - a[3]) * (a[6] - a[4]) + (b[5] - b[3]) * (b[6] - b[4]) - shared;
  return total > 0 ? shared / total : 0;
}

std::string compare_tensors(const ConformanceCase& c, const std::vector<Tensor>& got) {
  const auto extra = [&](const char* key) { return c.rule.count(key) ? c.rule.at(key) : 0.0; };
  for (size_t k = 0; k < got.size(); ++k) {
    const std::string problem = tensor_problem(got[k], c.wanted[k], c.atol, c.rtol,
                                               extra("outliers"), extra("outlier_atol"));
    if (!problem.empty()) return "output " + std::to_string(k) + ": " + problem;
  }
  return "";
}

// Rows image, label, score, box up to an image of -1; matched one to one in any order.
std::string compare_detection(const ConformanceCase& c, const std::vector<Tensor>& got) {
  const std::string form = form_problem(got[0], c.wanted[0]);
  if (!form.empty()) return form;
  const auto detections = [](const Tensor& tensor) {
    std::vector<Row> rows = rows_of(tensor);
    const auto end =
        std::find_if(rows.begin(), rows.end(), [](const Row& row) { return row[0] == -1; });
    rows.erase(end, rows.end());
    return rows;
  };
  std::vector<Row> left = detections(got[0]);
  const std::vector<Row> wanted = detections(c.wanted[0]);
  if (left.size() != wanted.size())
    return std::to_string(left.size()) + " detections, expected " + std::to_string(wanted.size());
  for (const Row& w : wanted) {
    const auto match = std::find_if(left.begin(), left.end(), [&](const Row& g) {
      double apart = 0;
      for (size_t i = 3; i < 7; ++i) apart = std::max(apart, std::abs(g[i] - w[i]));
      return g[0] == w[0] && g[1] == w[1] && std::abs(g[2] - w[2]) <= c.rule_value("score_atol") &&
             (apart <= c.rule_value("box_atol") || iou(g, w) > 0.999);
    });
    if (match == left.end())
      return "no detection like class " + text_of(w[1]) + " score " + text_of(w[2]);
    left.erase(match);
  }
  return "";
}

// Selected (batch, class, box) and scores; rows of -1 are padding.
std::string compare_nms(const ConformanceCase& c, const std::vector<Tensor>& got) {
  for (size_t k = 0; k < got.size(); ++k) {
    const std::string form = form_problem(got[k], c.wanted[k], false);
    if (!form.empty()) return form;
    const Shape &g = got[k].shape(), &w = c.wanted[k].shape();
    if (g.size() != w.size() ||
        !std::equal(g.begin() + !g.empty(), g.end(), w.begin() + !w.empty()))
      return "shape " + to_string(g) + ", expected " + to_string(w);
  }
  const auto selected = [](const Tensor& tensor) {
    std::vector<Row> rows = rows_of(tensor);
    std::erase_if(rows, [](const Row& row) { return row[0] < 0; });
    return rows;
  };
  const std::vector<Row> g = selected(got[0]), w = selected(c.wanted[0]);
  if (std::multiset<Row>(g.begin(), g.end()) != std::multiset<Row>(w.begin(), w.end()))
    return std::to_string(g.size()) + " boxes selected, expected " + std::to_string(w.size()) +
           " (or others)";
  if (c.sorted_nms && g != w) return "the right boxes in the wrong order";
  if (got.size() > 1) {
    const std::vector<Row> got_scores = rows_of(got[1]), wanted_scores = rows_of(c.wanted[1]);
    std::map<Row, Row> scores;
    for (size_t i = 0; i < g.size(); ++i) scores[g[i]] = got_scores.at(i);
    for (size_t i = 0; i < w.size(); ++i)
      for (size_t j = 0; j < wanted_scores.at(i).size(); ++j)
        if (!(std::abs(scores.at(w[i])[j] - wanted_scores[i][j]) <= c.rule_value("score_atol")))
          return "a score is " + text_of(scores.at(w[i])[j]) + ", expected " +
                 text_of(wanted_scores[i][j]);
  }
  if (got.size() > 2 && values_of(got[2]).at(0) != values_of(c.wanted[2]).at(0))
    return "the count differs";
  return "";
}

// MulticlassNms, MatrixNms: rows class, score, box, with box numbers, per image in any order; then
// the counts.
std::string compare_rows(const ConformanceCase& c, const std::vector<Tensor>& got) {
  for (size_t k = 0; k < got.size(); ++k) {
    const std::string form = form_problem(got[k], c.wanted[k], false);
    if (!form.empty()) return form;
  }
  const std::vector<double> counts = values_of(c.wanted[2]);
  if (values_of(got[2]) != counts) return "the counts differ";
  const auto table = [](const std::vector<Tensor>& outputs, size_t begin, size_t number) {
    const std::vector<Row> rows = rows_of(outputs[0]), boxes = rows_of(outputs[1]);
    std::vector<Row> part;
    for (size_t i = begin; i < begin + number; ++i) {
      part.push_back(rows.at(i));
      part.back().insert(part.back().end(), boxes.at(i).begin(), boxes.at(i).end());
    }
    std::sort(part.begin(), part.end(), [](const Row& a, const Row& b) {
      const auto key = [](const Row& row) {
        return std::make_pair(row[0], -std::round(row[1] * 1000));
      };
      return key(a) < key(b);
    });
    return part;
  };
  size_t begin = 0;
  for (const double count : counts) {
    const auto number = static_cast<size_t>(count);
    if (rows_of(got[0]).size() < begin + number) return "too few rows";
    const auto g = table(got, begin, number), w = table(c.wanted, begin, number);
    for (size_t i = 0; i < number; ++i) {
      if (g[i].size() != w[i].size()) return "rows of another length";
      const std::string problem = values_problem(g[i], w[i], c.rule_value("score_atol"), 1e-4);
      if (!problem.empty()) return "row " + std::to_string(i) + ": " + problem;
    }
    begin += number;
  }
  return "";
}

// Proposal: rows image, box in order of score, up to an image of -1; the second output is the
// scores.
std::string compare_rois(const ConformanceCase& c, const std::vector<Tensor>& got) {
  for (size_t k = 0; k < got.size(); ++k) {
    const std::string form = form_problem(got[k], c.wanted[k]);
    if (!form.empty()) return form;
  }
  const std::vector<Row> g = rows_of(got[0]), w = rows_of(c.wanted[0]);
  const auto end = static_cast<size_t>(
      std::find_if(w.begin(), w.end(), [](const Row& row) { return row[0] < 0; }) - w.begin());
  if (end < w.size() && g[end][0] >= 0)
    return "more than the expected " + std::to_string(end) + " proposals";
  for (size_t i = 0; i < end; ++i) {
    const std::string problem = values_problem(g[i], w[i], c.rule_value("atol"), 1e-4);
    if (!problem.empty()) return "proposal " + std::to_string(i) + ": " + problem;
  }
  if (got.size() < 2) return "";
  std::vector<double> scores = values_of(got[1]), wanted = values_of(c.wanted[1]);
  scores.resize(end);
  wanted.resize(end);
  return values_problem(scores, wanted, 1e-4, 1e-4);
}

// A tensor as lines along one axis.
std::vector<Row> lines_along(const Tensor& tensor, size_t axis) {
  const std::vector<double> values = values_of(tensor);
  const Shape& shape = tensor.shape();
  const auto length = static_cast<size_t>(shape.at(axis));
  const auto inner =
      static_cast<size_t>(std::accumulate(shape.begin() + static_cast<ptrdiff_t>(axis) + 1,
                                          shape.end(), int64_t{1}, std::multiplies<>()));
  std::vector<Row> lines;
  for (size_t outer = 0; length && outer < values.size() / length / inner; ++outer)
    for (size_t i = 0; i < inner; ++i) {
      Row line;
      for (size_t k = 0; k < length; ++k) line.push_back(values[(outer * length + k) * inner + i]);
      lines.push_back(std::move(line));
    }
  return lines;
}

// Values and indices; with equal values any of their indices will do.
std::string compare_topk(const ConformanceCase& c, const std::vector<Tensor>& got) {
  for (size_t k = 0; k < got.size(); ++k) {
    const std::string form = form_problem(got[k], c.wanted[k]);
    if (!form.empty()) return form;
  }
  const double rule_axis = c.rule_value("axis");
  const auto rank = static_cast<double>(c.wanted[0].shape().size());
  const auto axis = static_cast<size_t>(rule_axis < 0 ? rule_axis + rank : rule_axis);
  std::vector<Row> g = lines_along(got[0], axis), w = lines_along(c.wanted[0], axis);
  for (size_t i = 0; i < w.size(); ++i) {
    Row a = g[i], b = w[i];
    if (c.topk_sort != "value") {
      std::sort(a.begin(), a.end());
      std::sort(b.begin(), b.end());
    }
    const std::string problem = values_problem(a, b, c.atol, c.rtol);
    if (!problem.empty()) return problem;
  }
  if (got.size() < 2) return "";
  Tensor data = c.inputs[0];
  if (c.rule.count("data_output")) {
    const auto k = static_cast<size_t>(c.rule_value("data_output"));
    data = c.wanted.at(k);
    const std::string problem = tensor_problem(got.at(k), data, c.atol, c.rtol);
    if (!problem.empty()) return "output " + std::to_string(k) + ": " + problem;
  }
  const std::vector<Row> lines = lines_along(data, axis), indices = lines_along(got[1], axis);
  for (size_t i = 0; i < indices.size(); ++i) {
    Row values;
    for (const double index : indices[i]) {
      if (index < 0 || index >= static_cast<double>(lines[i].size()))
        return "an index is out of range";
      values.push_back(lines[i][static_cast<size_t>(index)]);
    }
    if (std::set<double>(indices[i].begin(), indices[i].end()).size() != indices[i].size())
      return "an index is given twice";
    if (c.topk_sort == "index" && !std::is_sorted(indices[i].begin(), indices[i].end()))
      return "not sorted by index";
    const std::string problem = values_problem(values, g[i], 2 * c.atol, 2 * c.rtol);
    if (!problem.empty()) return "indices do not lead to the values: " + problem;
  }
  return "";
}

std::vector<Tensor> read_numbered(const std::filesystem::path& folder, const std::string& prefix) {
  std::vector<Tensor> tensors;
  for (;;) {
    const auto path = folder / (prefix + std::to_string(tensors.size()) + ".npy");
    if (!std::filesystem::exists(path)) return tensors;
    tensors.push_back(read_npy(path.string()));
  }
}

}  // namespace

ConformanceCase ConformanceCase::read(const std::filesystem::path& folder) {
  ConformanceCase c;
  c.folder = folder;
  c.op = folder.parent_path().filename();
  c.name = folder.filename();
  const std::unique_ptr<JsonParser, void (*)(gpointer)> parser(json_parser_new(), g_object_unref);
  if (!json_parser_load_from_file(parser.get(), (folder / "case.json").c_str(), nullptr))
    throw std::runtime_error((folder / "case.json").string() + " cannot be read");
  JsonObject* root = json_node_get_object(json_parser_get_root(parser.get()));
  c.atol = json_object_get_double_member(root, "atol");
  c.rtol = json_object_get_double_member(root, "rtol");
  JsonObject* compare = json_object_get_object_member(root, "compare");
  c.kind = json_object_get_string_member(compare, "kind");
  for (const char* key :
       {"outliers", "outlier_atol", "score_atol", "box_atol", "atol", "axis", "data_output"})
    if (json_object_has_member(compare, key))
      c.rule[key] = json_object_get_double_member(compare, key);
  if (json_object_has_member(compare, "sort"))
    c.topk_sort = json_object_get_string_member(compare, "sort");
  JsonObject* attributes = json_object_get_object_member(root, "attrs");
  if (json_object_has_member(attributes, "sort_result_descending"))
    c.sorted_nms = json_object_get_boolean_member(attributes, "sort_result_descending");
  c.inputs = read_numbered(folder, "in_");
  c.wanted = read_numbered(folder, "out_");
  return c;
}

void ConformanceCase::loosen_for_half() {
  double largest = -1;
  for (const Tensor& tensor : wanted)
    if (is_float(tensor.type()))
      for (const double value : values_of(tensor))
        if (std::isfinite(value)) largest = std::max(largest, std::abs(value));
  if (largest < 0) return;
  atol = std::max(atol, 1e-2 * largest);
  rtol = std::max(rtol, 1e-2);
  const std::pair<const char*, double> least[] = {
      {"score_atol", 1e-2}, {"box_atol", 1e-2}, {"atol", 1e-2 * largest}, {"outliers", 0.3}};
  for (const auto& [key, value] : least)
    if (rule.count(key)) rule[key] = std::max(rule[key], value);
  if (rule.count("outliers")) rule["outlier_atol"] *= 2;
}

std::string ConformanceCase::compare(const std::vector<Tensor>& got) const {
  if (got.size() != wanted.size())
    return std::to_string(got.size()) + " outputs, expected " + std::to_string(wanted.size());
  using Compare = std::string (*)(const ConformanceCase&, const std::vector<Tensor>&);
  static const std::map<std::string, Compare> kinds = {
      {"tensor", compare_tensors}, {"detection", compare_detection}, {"nms", compare_nms},
      {"rows", compare_rows},      {"rois", compare_rois},           {"topk", compare_topk}};
  const auto found = kinds.find(kind);
  return found == kinds.end() ? "unknown comparison \"" + kind + "\"" : found->second(*this, got);
}

std::map<std::string, std::vector<std::filesystem::path>> find_cases(
    const std::filesystem::path& set) {
  std::map<std::string, std::vector<std::filesystem::path>> cases;
  std::error_code none;
  for (const auto& op : std::filesystem::directory_iterator(set, none)) {
    if (!op.is_directory()) continue;
    auto& folders = cases[op.path().filename()];
    for (const auto& entry : std::filesystem::directory_iterator(op))
      if (std::filesystem::exists(entry.path() / "case.json")) folders.push_back(entry.path());
    std::sort(folders.begin(), folders.end());
  }
  return cases;
}

}  // namespace clinfer
