// Checks which refusal a message states.
#pragma once

#include <gtest/gtest.h>

#include <string>

namespace clinfer::test {

// Passes if the message contains `part`.
inline testing::AssertionResult says(const std::string& message, const std::string& part) {
  if (message.find(part) != std::string::npos) return testing::AssertionSuccess();
  return testing::AssertionFailure() << '"' << message << "\" does not say \"" << part << '"';
}

}  // namespace clinfer::test
