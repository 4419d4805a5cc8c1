// The exception type of the project. The GStreamer elements catch it and post it as a GStreamer
// error; code below them only throws it.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

namespace clinfer {

enum class ErrorCode {
  bad_model,      // the model's files are malformed or contradict themselves
  not_found,      // a named file does not exist or cannot be read
  unsupported,    // well-formed, but this software cannot run it
  bad_argument,   // the caller asked for something impossible (wrong shape, unknown key)
  no_device,      // no OpenCL device fits the request
  out_of_memory,  // host or device memory is not enough
  device_failed,  // the device or its driver reported a failure
  io,             // reading or writing a file failed half-way
  cancelled,      // the caller asked to stop
};

// Makes text from a file fit for a message: without control characters, at most a line or two.
std::string printable(std::string_view text);

// A line of the source code. As the default of a function's last parameter, here() is the caller's
// line. (std::source_location needs a newer clang.)
struct SourcePlace {
  const char* file;
  int line;
  const char* function;
  static constexpr SourcePlace here(const char* file = __builtin_FILE(),
                                    int line = __builtin_LINE(),
                                    const char* function = __builtin_FUNCTION()) {
    return {file, line, function};
  }
};

// The message, what(), is one line: what is wrong, where, and what to do about it if that is known.
// The constructor removes control characters, which a message may contain from a file. place() is
// where the error was first thrown: code that adds to the message throws it again with the same
// place.
class Error : public std::runtime_error {
 public:
  Error(ErrorCode code, const std::string& message, SourcePlace place = SourcePlace::here());
  ErrorCode code() const { return code_; }
  const SourcePlace& place() const { return place_; }

 private:
  ErrorCode code_;
  SourcePlace place_;
};

}  // namespace clinfer
