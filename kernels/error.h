// The one exception type of the project. Thrown below the element border, translated once at it.
#pragma once

#include <stdexcept>
#include <string>

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

// what() is one line that says what is wrong, where, and what to do where that is known.
class Error : public std::runtime_error {
 public:
  Error(ErrorCode code, const std::string& message) : std::runtime_error(message), code_(code) {}
  ErrorCode code() const { return code_; }

 private:
  ErrorCode code_;
};

}  // namespace clinfer
