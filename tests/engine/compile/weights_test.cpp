// Constants on their way to the device: equal ones share their memory.
#include "engine/compile/weights.h"

#include <gtest/gtest.h>

namespace clinfer {
namespace {

std::vector<std::byte> bytes(size_t size, int value) {
  return std::vector<std::byte>(size, static_cast<std::byte>(value));
}

TEST(HostWeights, KeepsEqualConstantsOnce) {
  HostWeights weights;
  const size_t first = weights.add("a", bytes(1003, 1));
  EXPECT_EQ(weights.add("a", bytes(1003, 1)), first);
  EXPECT_EQ(weights.add("b", bytes(1003, 1)), first);
  const size_t size = weights.bytes.size();
  const size_t longer = weights.add("c", bytes(1004, 1)), other = weights.add("d", bytes(1003, 2));
  EXPECT_NE(longer, first);
  EXPECT_NE(other, first);
  EXPECT_EQ(weights.bytes.at(other), std::byte{2});
  EXPECT_GT(weights.bytes.size(), size);
  // A name may get other bytes; those that were known under it stay what they are.
  EXPECT_EQ(weights.add("b", bytes(1003, 2)), other);
  EXPECT_EQ(weights.add("a", bytes(1003, 1)), first);
  EXPECT_EQ(weights.bytes.at(first), std::byte{1});
  weights.add("empty", {});
}

}  // namespace
}  // namespace clinfer
