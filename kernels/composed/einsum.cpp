// Einsum: products of tensors, summed over the labels that the result lacks. Terms are combined in
// pairs from left to right: each pair is one MatMul, or a broadcast product if nothing is summed.
#include <algorithm>
#include <cctype>
#include <map>

#include "kernels/expand.h"
#include "kernels/shape_util.h"

namespace clinfer {

namespace {

// The names of dimensions: each is a letter, or '0' + i for the i-th dimension from the right under
// "...".
using Labels = std::string;

struct Equation {
  std::vector<Labels> inputs;
  Labels output;
};

Labels with_ellipsis(const std::string& text, size_t hidden) {
  Labels labels;
  for (size_t i = 0; i < text.size(); ++i) {
    if (std::isalpha(static_cast<unsigned char>(text[i]))) {
      labels += text[i];
    } else if (text.compare(i, 3, "...") == 0) {
      for (size_t k = hidden; k-- > 0;) labels += static_cast<char>('0' + k);
      i += 2;
    } else {
      fail_model("equation: '" + text.substr(i, 1) + "' is no label");
    }
  }
  return labels;
}

Equation parse(std::string text, const ShapeContext& context) {
  std::erase_if(text, [](char c) { return std::isspace(static_cast<unsigned char>(c)); });
  const size_t arrow = text.find("->");
  std::vector<std::string> terms{""};
  for (char c : text.substr(0, arrow)) {
    if (c == ',')
      terms.emplace_back();
    else
      terms.back() += c;
  }
  if (terms.size() != context.inputs.size())
    fail_model("equation \"" + text + "\" names " + std::to_string(terms.size()) +
               " inputs, there are " + std::to_string(context.inputs.size()));
  Equation equation;
  size_t most = 0;
  for (size_t i = 0; i < terms.size(); ++i) {
    const size_t rank = context.inputs[i].shape.size(),
                 dots = terms[i].find("...") == std::string::npos ? 0 : 3,
                 named = terms[i].size() - dots;
    if (named > rank || (!dots && named != rank) || rank - named > 8)
      fail_model("equation: \"" + terms[i] + "\" does not fit the shape " +
                 to_string(context.inputs[i].shape));
    most = std::max(most, rank - named);
    equation.inputs.push_back(with_ellipsis(terms[i], rank - named));
  }
  if (arrow != std::string::npos) {
    equation.output = with_ellipsis(text.substr(arrow + 2), most);
  } else {  // the dimensions of "...", then the labels that occur once, sorted by name
    std::map<char, int> uses;
    for (const Labels& labels : equation.inputs)
      for (char c : labels) ++uses[c];
    for (size_t k = most; k-- > 0;) equation.output += static_cast<char>('0' + k);
    for (const auto& [c, n] : uses)
      if (n == 1 && std::isalpha(static_cast<unsigned char>(c))) equation.output += c;
  }
  for (size_t i = 0; i < equation.output.size(); ++i) {
    const char c = equation.output[i];
    const bool known = std::any_of(equation.inputs.begin(), equation.inputs.end(),
                                   [&](const Labels& l) { return l.find(c) != l.npos; });
    if (!known || equation.output.find(c, i + 1) != std::string::npos)
      fail_model("equation: the result's labels do not follow from the inputs");
  }
  return equation;
}

struct Term {
  size_t value;
  Labels labels;
};

bool has(const Labels& labels, char c) { return labels.find(c) != Labels::npos; }

// Selects the diagonal of dimensions with equal labels in one term.
void take_diagonals(Expansion& x, Term& term) {
  for (size_t i = 0; i < term.labels.size(); ++i) {
    const size_t other = term.labels.find(term.labels[i], i + 1);
    if (other == Labels::npos) continue;
    const Shape& shape = x.shape(term.value);
    const int64_t n = shape[i];
    if (shape[other] != n) fail_model("equation: a repeated label has two sizes");
    Shape unit(shape.size(), 1);
    unit[i] = unit[other] = n;
    Tensor eye = table(unit);
    for (int64_t k = 0; k < n; ++k) eye.mutable_data<float>()[k * n + k] = 1;
    const size_t kept =
        x.step("Multiply", 1, {term.value, x.constant(eye.convert(x.info(term.value).type))});
    term.value = x.step("ReduceSum", 1, {kept, x.ints({static_cast<int64_t>(other)})},
                        {{"keep_dims", "false"}});
    term.labels.erase(other, 1);
    --i;
  }
}

// Sums over the labels that neither other terms nor the result use.
void sum_out(Expansion& x, Term& term, const Labels& needed) {
  std::vector<int64_t> axes;
  Labels left;
  for (size_t i = 0; i < term.labels.size(); ++i) {
    if (has(needed, term.labels[i]))
      left += term.labels[i];
    else
      axes.push_back(static_cast<int64_t>(i));
  }
  if (axes.empty()) return;
  term.value = x.step("ReduceSum", 1, {term.value, x.ints(axes)}, {{"keep_dims", "false"}});
  term.labels = left;
}

int64_t size_of_label(const Expansion& x, const Term& term, char c) {
  return x.shape(term.value)[term.labels.find(c)];
}

size_t ordered(Expansion& x, const Term& term, const Labels& order) {
  std::vector<int64_t> axes;
  for (char c : order) axes.push_back(static_cast<int64_t>(term.labels.find(c)));
  return x.transpose(term.value, axes);
}

// Returns the term with its dimensions in the order of `order`, with size 1 for missing labels.
size_t spread(Expansion& x, const Term& term, const Labels& order) {
  Labels own;
  Shape shape;
  for (char c : order) {
    if (has(term.labels, c)) own += c;
    shape.push_back(has(term.labels, c) ? size_of_label(x, term, c) : 1);
  }
  return x.reshape(ordered(x, term, own), shape);
}

Term multiplied(Expansion& x, const Term& a, const Term& b, const Labels& needed) {
  Labels batch, summed, rows, columns;
  for (char c : a.labels) {
    if (!has(b.labels, c))
      rows += c;
    else if (has(needed, c))
      batch += c;
    else
      summed += c;
  }
  for (char c : b.labels)
    if (!has(a.labels, c)) columns += c;
  const Labels all = batch + rows + columns;
  // Dimensions of size 1 are broadcast: a label has the larger size.
  bool stretched = false;
  Shape out;
  for (char c : all) {
    const int64_t one = has(a.labels, c) ? size_of_label(x, a, c) : 1,
                  two = has(b.labels, c) ? size_of_label(x, b, c) : 1;
    if (one != two && one != 1 && two != 1)
      fail_model(std::string("equation: a label has the sizes ") + std::to_string(one) + " and " +
                 std::to_string(two));
    out.push_back(one == 1 ? two : one);
  }
  for (char c : summed) {
    const int64_t one = size_of_label(x, a, c), two = size_of_label(x, b, c);
    if (one != two && one != 1 && two != 1)
      fail_model(std::string("equation: a label has the sizes ") + std::to_string(one) + " and " +
                 std::to_string(two));
    stretched |= one != two;
  }
  if (summed.empty() || stretched) {
    const Labels order = all + summed;
    Term product{x.step("Multiply", 1, {spread(x, a, order), spread(x, b, order)}), order};
    sum_out(x, product, all);
    return product;
  }
  const auto joined = [&](const Term& term, const Labels& first, const Labels& second) {
    Shape shape;
    for (char c : batch) shape.push_back(size_of_label(x, term, c));
    for (const Labels* part : {&first, &second}) {
      int64_t size = 1;
      for (char c : *part) size = checked_product(size, size_of_label(x, term, c));
      shape.push_back(size);
    }
    return x.reshape(ordered(x, term, batch + first + second), shape);
  };
  // Both operands have the summed dimensions last, where memory is read in order.
  const size_t product = x.step("MatMul", 1, {joined(a, rows, summed), joined(b, columns, summed)},
                                {{"transpose_a", "false"}, {"transpose_b", "true"}});
  return {x.reshape(product, out), all};
}

void einsum(Expansion& x) {
  const ShapeContext& context = x.context();
  if (context.inputs.empty()) fail_model("has no inputs");
  for (const ValueInfo& input : context.inputs)
    if (input.type != context.inputs[0].type) fail_model("the inputs differ in type");
  const Equation equation = parse(context.attributes.get_string("equation"), context);
  std::vector<Term> terms;
  for (size_t i = 0; i < equation.inputs.size(); ++i) {
    terms.push_back({i, equation.inputs[i]});
    take_diagonals(x, terms.back());
  }
  // A dimension of size 1 under "..." that other terms broadcast stays until the product.
  const auto needed_besides = [&](size_t from) {
    Labels needed = equation.output;
    for (size_t i = from; i < terms.size(); ++i) needed += terms[i].labels;
    return needed;
  };
  Term result = terms[0];
  sum_out(x, result, needed_besides(1));
  for (size_t i = 1; i < terms.size(); ++i) {
    const Labels later = needed_besides(i + 1);
    sum_out(x, terms[i], later + result.labels);
    result = multiplied(x, result, terms[i], later);
  }
  x.outputs = {ordered(x, result, equation.output)};
}

}  // namespace

std::vector<OpDef> einsum_ops() { return {expanded_op("Einsum", opset_range(7), einsum)}; }

}  // namespace clinfer
