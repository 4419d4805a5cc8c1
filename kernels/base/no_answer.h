// The error of a device that takes too long.
#pragma once

#include "kernels/base/error.h"

namespace clinfer {

// Thrown if a device did not finish in time. It may still be at work, with all the memory that it
// was given.
class NoAnswer : public Error {
 public:
  explicit NoAnswer(const std::string& what, SourcePlace place = SourcePlace::here())
      : Error(ErrorCode::device_failed, what, place) {}
};

}  // namespace clinfer
