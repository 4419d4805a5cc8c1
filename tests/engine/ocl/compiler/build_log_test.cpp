// Lines of build logs.
#include "engine/ocl/compiler/build_log.h"

#include <gtest/gtest.h>

namespace clinfer::ocl {
namespace {

const char* const kSource =
    "#define A 1\n"
    "#line 1 \"first file.cl\"\n"
    "int a;\n"
    "int b;\n"
    "#line 10 \"a \\\"second\\\".cl\"\n"
    "int c;\n";

TEST(BuildLog, LinesOfTheTextBecomeThoseOfTheFiles) {
  EXPECT_EQ(place_in_files("<kernel>:4:5: error: no b\n  note: <kernel>:6:1: see c\n", kSource),
            "first file.cl:2:5: error: no b\n  note: a \"second\".cl:10:1: see c\n");
}

TEST(BuildLog, OtherPlacesStay) {
  for (const char* log : {"", "<kernel>:1:9: unknown A", "k.cl:3:1: error", "<kernel>: no line",
                          "<kernel>:99999999999999999999:1: too far"})
    EXPECT_EQ(place_in_files(log, kSource), log);
  EXPECT_EQ(place_in_files("<kernel>:2:1: x", "int a;\nint b;\n"), "<kernel>:2:1: x");
}

}  // namespace
}  // namespace clinfer::ocl
