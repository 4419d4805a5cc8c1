// JSON that costs more than any reader should pay.
#include "kernels/base/json_limits.h"

#include <gtest/gtest.h>

#include "tests/says.h"

namespace clinfer {
namespace {

using test::says;

std::string nested(int levels) { return std::string(static_cast<size_t>(levels), '['); }

TEST(JsonLimits, Levels) {
  EXPECT_EQ(json_excess(nested(64)), "");
  EXPECT_TRUE(says(json_excess("\n\n" + nested(65)), "line 3: more than 64 levels"));
  EXPECT_TRUE(says(json_excess(std::string(100000, '[')), "more than 64 levels"));
  std::string objects;
  for (int i = 0; i < 65; ++i) objects += "{\"a\":";
  EXPECT_TRUE(says(json_excess(objects), "more than 64 levels"));
  std::string wide = "[";
  for (int i = 0; i < 1000; ++i) wide += "[[]],";
  EXPECT_EQ(json_excess(wide + "1]"), "");
  EXPECT_EQ(json_excess("[\"" + nested(100) + "\\\"" + nested(100) + "\"]"), "") << "in a string";
  EXPECT_TRUE(says(json_excess("[\"\\\\\"" + nested(100)), "more than 64 levels")) << "behind one";
}

// Comments, which some parsers skip, must not hide levels.
TEST(JsonLimits, NothingHidesLevels) {
  for (const char* hides : {"/*\"*/", "//\"\n", "#\"\n", "'\"'"})
    EXPECT_TRUE(says(json_excess(hides + nested(100)), "in strings only")) << hides;
  EXPECT_TRUE(says(json_excess("{\n\"a\": 1 } ;"), "is not JSON: line 2"));
  EXPECT_EQ(json_excess("{\"a/b\": [1e-5, -2.5E+3, true, null, NaN], \"\xc3\xa9\": \"'#/;\"}"), "");
}

TEST(JsonLimits, RefusesEscapesThatJsonDoesNotHave) {
  for (const char* wrong : {"\\x41", "\\101", "\\'", "\\u12", "\\u12g4", "\\u-123", "\\ud83d",
                            "\\ude00", "\\ud83d\\u0041", "\\ud83d\\ud83d"})
    EXPECT_TRUE(says(json_excess("[\n\"" + std::string(wrong) + "\"]"),
                     "is not JSON: line 2: an escape that JSON does not have"))
        << wrong;
  EXPECT_EQ(json_excess("[\n\"cut\\u0000short\"]"), "line 2: a zero character");
  EXPECT_EQ(json_excess("[\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u00E9\\ud83d\\uDE00\"]"), "");
}

TEST(JsonLimits, ValuesAndBytes) {
  const JsonLimits few{.bytes = 1 << 20, .values = 10};
  EXPECT_EQ(json_excess("[1,2,3,4,5,6,7,8,9]", few), "");
  EXPECT_TRUE(says(json_excess("[1,2,3,4,5,6,7,8,9,10,11]", few), "more than 10 values"));
  EXPECT_TRUE(says(json_excess(std::string((1 << 20) + 1, ' '), few), "larger than 1 MiB"));
}

}  // namespace
}  // namespace clinfer
