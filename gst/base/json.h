// Writes JSON: objects and arrays in the order of the calls, and numbers with the fewest digits
// that are read back exactly.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace clinfer {

class JsonWriter {
 public:
  JsonWriter& begin_object();
  JsonWriter& end_object();
  JsonWriter& begin_array();
  JsonWriter& end_array();
  JsonWriter& key(std::string_view name);
  JsonWriter& value(std::string_view text);  // bytes that are not UTF-8 become U+FFFD
  JsonWriter& value(const char* text) { return value(std::string_view(text)); }
  JsonWriter& value(int64_t number);
  JsonWriter& value(uint64_t number);
  JsonWriter& value(int number) { return value(static_cast<int64_t>(number)); }
  JsonWriter& value(float number);         // writes null if not finite
  JsonWriter& value(double number);        // writes null if not finite
  JsonWriter& raw(std::string_view json);  // writes a value that is JSON already, in one line
  const std::string& text() const { return text_; }

 private:
  void separate();
  std::string text_;
  bool needs_comma_ = false;
};

}  // namespace clinfer
