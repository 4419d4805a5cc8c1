// Text for messages: checked against the Unicode standard's table, and cut at every byte.
#include "kernels/base/text.h"

#include <gtest/gtest.h>

#include "kernels/base/error.h"
#include "kernels/base/system/files.h"

namespace clinfer {
namespace {

// Encodes code points by arithmetic; surrogates and values above 10FFFF give invalid UTF-8.
std::string encoded(unsigned point) {
  const auto tail = [&](int shift) { return static_cast<char>(0x80 | ((point >> shift) & 0x3f)); };
  if (point < 0x80) return {static_cast<char>(point)};
  if (point < 0x800) return {static_cast<char>(0xc0 | point >> 6), tail(0)};
  if (point < 0x10000) return {static_cast<char>(0xe0 | point >> 12), tail(6), tail(0)};
  return {static_cast<char>(0xf0 | point >> 18), tail(12), tail(6), tail(0)};
}

TEST(Text, EveryCodePointIsValidButSurrogates) {
  for (unsigned point = 0; point < 0x120000; ++point) {
    const bool valid = point <= 0x10ffff && (point < 0xd800 || point > 0xdfff);
    const std::string text = encoded(point);
    ASSERT_EQ(is_utf8(text), valid) << point;
    ASSERT_EQ(valid_utf8(text) == text, valid) << point;
  }
}

TEST(Text, EveryPairOfBytesBecomesValid) {
  for (unsigned first = 0; first < 256; ++first)
    for (unsigned second = 0; second < 256; ++second) {
      const std::string text = {'a', static_cast<char>(first), static_cast<char>(second), 'z'};
      const std::string valid = valid_utf8(text);
      ASSERT_TRUE(is_utf8(valid));
      ASSERT_EQ(valid.front(), 'a');
      ASSERT_EQ(valid.back(), 'z') << first << " " << second;
    }
}

TEST(Text, WrongSequencesAreReplaced) {
  const std::string r = "\xef\xbf\xbd";
  EXPECT_EQ(valid_utf8("caf\xe9 noir"), "caf" + r + " noir");
  EXPECT_EQ(valid_utf8("\xc0\xaf"), r + r) << "an overlong slash";
  EXPECT_EQ(valid_utf8("\xed\xa0\x80"), r + r + r) << "a surrogate";
  EXPECT_EQ(valid_utf8("\xf0\x9f\x98"), r) << "cut short";
  EXPECT_EQ(valid_utf8("\xe2\x82"
                       "A"),
            r + "A")
      << "the next character is not lost";
  EXPECT_EQ(valid_utf8(std::string_view("a\0b", 3)), std::string("a\0b", 3));
}

TEST(Text, PrefixesEndBetweenCharacters) {
  const std::string text = "a\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80z";  // 1, 2, 3, 4 and 1 bytes
  const size_t ends[] = {0, 1, 1, 3, 3, 3, 6, 6, 6, 6, 10, 11, 11};
  for (size_t bytes = 0; bytes < std::size(ends); ++bytes)
    EXPECT_EQ(utf8_prefix(text, bytes).size(), ends[bytes]) << bytes;
  EXPECT_EQ(utf8_prefix(std::string(50, '\x80'), 10).size(), 10u) << "no characters at all";
}

TEST(Text, MessagesAreBoundedLinesOfUtf8) {
  for (const char* unit : {"x", "\xc3\xa9", "\xe2\x82\xac", "\xf0\x9f\x98\x80", "\x80", "\n"})
    for (const size_t count : {1u, 999u, 1000u, 1001u, 4001u, 1000000u}) {
      std::string text = "model.xml: ";
      for (size_t i = 0; i < count; ++i) text += unit;
      const std::string line = message_line(text + "; do this");
      EXPECT_LE(line.size(), 3 * 4000u + 50) << "each byte may become three";
      EXPECT_TRUE(is_utf8(line));
      EXPECT_EQ(line.find('\n'), std::string::npos);
      EXPECT_TRUE(line.starts_with("model.xml: ")) << line.substr(0, 20);
      EXPECT_TRUE(line.ends_with("; do this"));
      EXPECT_EQ(std::string(Error(ErrorCode::io, text + "; do this").what()), line);
    }
  EXPECT_EQ(message_line("short\ttext\n"), "short?text ");
  EXPECT_LE(printable(std::string(1000, 'x')).size(), 210u);
  EXPECT_TRUE(is_utf8(printable(std::string(199, 'x') + "\xc3\xa9")));
}

// U+009B is a terminal's CSI, U+202E turns the rest of a line, U+2028 ends it, U+E0041 is not seen at all.
constexpr const char* kHarmful[] = {
    "\x1b",         "\r",           "\x7f",         "\xc2\x9b",     "\xc2\x85",
    "\xd8\x9c",     "\xe2\x80\x8e", "\xe2\x80\xaa", "\xe2\x80\xae", "\xe2\x80\xa8",
    "\xe2\x80\xa9", "\xe2\x81\xa6", "\xe2\x81\xa9", "\xef\xbb\xbf", "\xf3\xa0\x81\x81"};

TEST(Text, LinesShowWhatTheyAre) {
  for (const std::string harmful : kHarmful) {
    const std::string text = "a" + harmful + "b";
    EXPECT_EQ(safe_line(text), "a?b");
    EXPECT_EQ(message_line(text), "a?b");
    EXPECT_EQ(printable(text), "a?b");
    EXPECT_EQ(quoted_line("\"" + text), "\\\"a?b");
    EXPECT_STREQ(Error(ErrorCode::io, text).what(), "a?b");
    EXPECT_EQ(json_quoted(text).find(harmful), std::string::npos);
  }
  EXPECT_EQ(safe_line("a\nERROR: b"), "a ERROR: b");
  const std::string plain =
      "caf\xc3\xa9 \xe4\xbd\xa0 \xd9\x85\xe2\x80\x8c\xd9\x87 \xf0\x9f\x98\x80";
  EXPECT_EQ(safe_line(plain), plain);
  EXPECT_EQ(json_quoted(plain), '"' + plain + '"');
  EXPECT_EQ(safe_line(std::string(5000, 'x')).size(), 5000u);
}

TEST(Text, JsonKeepsWhatALineLacks) {
  EXPECT_EQ(json_quoted("a\"\\\n\t\x1b\x7f\xff"), "\"a\\\"\\\\\\n\\t\\u001b\\u007f\xef\xbf\xbd\"");
  EXPECT_EQ(json_quoted("\xe2\x80\xae\xc2\x9b"), "\"\\u202e\\u009b\"");
  EXPECT_EQ(json_quoted("\xf3\xa0\x81\x81"), "\"\\udb40\\udc41\"");
}

TEST(Text, ExceptionsOfLibrariesSayWhatToDo) {
  const std::system_error no_thread(EAGAIN, std::generic_category());
  EXPECT_NE(explain(no_thread).find("ulimit -u"), std::string::npos) << explain(no_thread);
  EXPECT_EQ(explain(std::bad_alloc()), "not enough memory");
  EXPECT_EQ(explain(std::runtime_error("a\nb")), "a b");
}

}  // namespace
}  // namespace clinfer
