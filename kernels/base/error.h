// The one exception type of the project. Thrown below the element border, translated once at it.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

namespace clinfer {

enum class ErrorCode {
  bad_model,      // the model's files are malformed or contradict themselves
  not_found,      // a file that was named is not there or cannot be read
  unsupported,    // well-formed, but nothing here can run it
  bad_argument,   // the caller asked for something that cannot be (wrong shape, unknown key)
  no_device,      // no OpenCL device fits the request
  out_of_memory,  // host or device memory is not enough
  device_failed,  // the device or its driver reported a failure
  io,             // reading or writing a file failed half-way
  cancelled,      // the caller asked to stop
};

// Text from a file as part of a message: no control characters, not longer than a line or two.
std::string printable(std::string_view text);

// what() is one line that says what is wrong, where, and what to do where that is known: control
// characters that a message took from a file are not in it.
class Error : public std::runtime_error {
 public:
  Error(ErrorCode code, const std::string& message);
  ErrorCode code() const { return code_; }

 private:
  ErrorCode code_;
};

}  // namespace clinfer
