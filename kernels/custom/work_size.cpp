// Evaluates expressions of work sizes. They come from a user's file, so depth and values are
// limited.
#include <cctype>
#include <limits>

#include "kernels/custom/custom_layer.h"

namespace clinfer {

namespace {

constexpr int kDeepest = 64;  // depth of parentheses and signs

class Parser {
 public:
  // Checks only the syntax if `bfyx` is null.
  Parser(const std::string& text, const std::array<int64_t, 4>* bfyx) : text_(text), bfyx_(bfyx) {}

  int64_t parse() {
    const int64_t value = sum();
    if (peek() != '\0') fail(std::string("unexpected '") + peek() + "'");
    return value;
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw Error(ErrorCode::bad_argument, "the expression \"" + printable(text_) + "\": " + what +
                                             " at character " + std::to_string(at_ + 1));
  }

  char peek() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_]))) ++at_;
    return at_ < text_.size() ? text_[at_] : '\0';
  }

  int64_t checked(bool overflows, int64_t value) const {
    if (overflows && bfyx_) fail("the value is too large");
    return overflows ? 1 : value;
  }

  int64_t sum() {
    int64_t value = product();
    for (char op = peek(); op == '+' || op == '-'; op = peek()) {
      ++at_;
      const int64_t other = product();
      int64_t result = 0;
      const bool overflows = op == '+' ? __builtin_add_overflow(value, other, &result)
                                       : __builtin_sub_overflow(value, other, &result);
      value = checked(overflows, result);
    }
    return value;
  }

  int64_t product() {
    int64_t value = factor();
    for (char op = peek(); op == '*' || op == '/' || op == '%'; op = peek()) {
      ++at_;
      const int64_t other = factor();
      int64_t result = 1;
      if (op == '*') {
        const bool overflows = __builtin_mul_overflow(value, other, &result);
        value = checked(overflows, result);
      } else if (other == 0 || (other == -1 && value == std::numeric_limits<int64_t>::min())) {
        if (bfyx_) fail("a division by zero");
        value = 1;
      } else {
        value = op == '/' ? value / other : value % other;
      }
    }
    return value;
  }

  int64_t factor() {
    if (++depth_ > kDeepest) fail("too many parentheses");
    const int64_t value = value_here();
    --depth_;
    return value;
  }

  int64_t value_here() {
    const char c = peek();
    if (c == '(') {
      ++at_;
      const int64_t value = sum();
      if (peek() != ')') fail("a ')' is missing");
      ++at_;
      return value;
    }
    if (c == '-' || c == '+') {
      ++at_;
      const int64_t value = factor();
      return c == '+' ? value
                      : checked(value == std::numeric_limits<int64_t>::min(), value) * int64_t{-1};
    }
    if (std::isdigit(static_cast<unsigned char>(c))) return number();
    const size_t letter =
        std::string("BFYX").find(static_cast<char>(std::toupper(static_cast<unsigned char>(c))));
    if (c == '\0' || letter == std::string::npos) fail("an integer, B, F, Y, X or '(' is expected");
    ++at_;
    if (at_ < text_.size() && std::isalnum(static_cast<unsigned char>(text_[at_])))
      fail("an operator is expected");
    return bfyx_ ? (*bfyx_)[letter] : 1;
  }

  int64_t number() {
    int64_t value = 0;
    for (; at_ < text_.size() && std::isdigit(static_cast<unsigned char>(text_[at_])); ++at_)
      if (__builtin_mul_overflow(value, 10, &value) ||
          __builtin_add_overflow(value, text_[at_] - '0', &value))
        fail("the number is too large");
    return value;
  }

  const std::string& text_;
  const std::array<int64_t, 4>* const bfyx_;
  size_t at_ = 0;
  int depth_ = 0;
};

}  // namespace

int64_t evaluate_size(const std::string& expression, const std::array<int64_t, 4>& bfyx) {
  return Parser(expression, &bfyx).parse();
}

void check_size(const std::string& expression) { Parser(expression, nullptr).parse(); }

}  // namespace clinfer
