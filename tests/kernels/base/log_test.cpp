// The log: who receives which messages, and what a message that cannot be made does to the work.
#include "kernels/base/log.h"

#include <gtest/gtest.h>

#include <new>
#include <vector>

namespace clinfer {
namespace {

struct Taken final : LogReceiver {
  Taken() { receive_log(this); }
  ~Taken() override { receive_log(nullptr); }
  bool wants(LogArea area, LogLevel level) const noexcept override {
    return area == LogArea::plan && level != LogLevel::debug;
  }
  void take(LogArea, LogLevel, const SourcePlace& place,
            const std::string& text) noexcept override {
    texts.push_back(text);
    lines.push_back(place.line);
  }
  std::vector<std::string> texts;
  std::vector<int> lines;
};

TEST(Log, TextsAreMadeForWhoWantsThemAlone) {
  int made = 0;
  const auto text = [&] {
    ++made;
    return std::string("text");
  };
  log(LogArea::plan, LogLevel::info, text);
  EXPECT_EQ(made, 0) << "nobody receives";
  Taken taken;
  log(LogArea::plan, LogLevel::debug, text);
  log(LogArea::model, LogLevel::warning, text);
  EXPECT_EQ(made, 0);
  log(LogArea::plan, LogLevel::info, text);
  EXPECT_EQ(made, 1);
  EXPECT_EQ(taken.texts, std::vector<std::string>{"text"});
  EXPECT_EQ(taken.lines, std::vector<int>{__LINE__ - 3}) << "the place is the caller's";
}

TEST(Log, AMessageThatCannotBeMadeIsLost) {
  Taken taken;
  log(LogArea::plan, LogLevel::warning, []() -> std::string { throw std::bad_alloc(); });
  EXPECT_TRUE(taken.texts.empty());
}

}  // namespace
}  // namespace clinfer
