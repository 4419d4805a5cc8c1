// Converts numbers, texts and lists to bytes and back, in the byte order of this machine. A
// function that is a template over the stream describes a format once, for both directions.
#pragma once

#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "kernels/base/error.h"

namespace clinfer {

class ByteWriter {
 public:
  template <typename T>
  void number(const T& value) {
    static_assert(std::is_arithmetic_v<T>);
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  template <typename T>
  void choice(const T& value, T) {
    number(static_cast<std::underlying_type_t<T>>(value));
  }
  void text(const std::string& value) {
    number(uint64_t{value.size()});
    bytes_ += value;
  }
  // Calls each(element) for all elements of a list.
  template <typename List, typename F>
  void list(const List& list, const F& each) {
    number(uint64_t{list.size()});
    for (const auto& element : list) each(element);
  }
  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

// Reads what ByteWriter wrote. Throws Error{bad_model} if bytes are missing or make no valid value.
// A list takes memory in proportion to the bytes that are left.
class ByteReader {
 public:
  explicit ByteReader(std::string_view bytes) : left_(bytes) {}

  template <typename T>
  void number(T& value) {
    static_assert(std::is_arithmetic_v<T>);
    if constexpr (std::is_same_v<T, bool>) {
      const char byte = take(1)[0];
      check(byte == 0 || byte == 1, "a flag");
      value = byte != 0;
    } else {
      std::memcpy(&value, take(sizeof value).data(), sizeof value);
    }
  }
  // Reads a value from 0 to `last`.
  template <typename T>
  void choice(T& value, T last) {
    std::underlying_type_t<T> read{};
    number(read);
    check(read >= 0 && read <= static_cast<std::underlying_type_t<T>>(last), "a choice");
    value = static_cast<T>(read);
  }
  void text(std::string& value) { value = take(size()); }
  // Reads a list: calls each(element) on new elements.
  template <typename List, typename F>
  void list(List& list, const F& each) {
    list.resize(size());
    for (auto& element : list) each(element);
  }
  // Reads a number of bytes or elements, each of which takes at least one byte.
  size_t size() {
    uint64_t size = 0;
    number(size);
    check(size <= left_.size(), "a size");
    return static_cast<size_t>(size);
  }
  std::string_view take(size_t bytes) {
    check(bytes <= left_.size(), "the length");
    const std::string_view taken = left_.substr(0, bytes);
    left_.remove_prefix(bytes);
    return taken;
  }
  size_t left() const { return left_.size(); }
  static void check(bool holds, const char* what) {
    if (!holds) throw Error(ErrorCode::bad_model, std::string("damaged bytes: ") + what);
  }

 private:
  std::string_view left_;
};

template <typename Stream, typename Optional>
void transfer_optional(Stream& stream, Optional& value) {
  bool given = value.has_value();
  stream.number(given);
  if constexpr (!std::is_const_v<Optional>)
    if (given) value.emplace();
  if (given) stream.number(*value);
}

}  // namespace clinfer
