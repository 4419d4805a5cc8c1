// Catches the errors of calls that are refused.
#pragma once

#include <string>

#include "kernels/base/error.h"

namespace clinfer::test {

// Returns the message of the Error that the call throws; "" if it throws none.
template <typename Function>
std::string error_of(const Function& function) {
  try {
    function();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

}  // namespace clinfer::test
