// A tuning file as the GPU plug-in wrote it: its two sections, and records below bare compute units.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "tests/temporary_folder.h"
#include "tuning/tuning_cache.h"

namespace clinfer::test {

inline constexpr const char* kFileOfAnotherEngine =
    R"({"version_2": {"24": {"CONVOLUTION": {
  "F16_BFYX_v416_p1_0_v416_p1_0_v32_p0_0_v1_p0_0;3_3_1;2_2_1;1_1_1;1_1_0;1;1": ["convolution_gpu_bfyx_gemm_like", 2]}}},
"version_1": {"48": {"14695981039346656037": ["convolution_gpu_bfyx_os_iyx_osv16", 311]}},
"24": {"1099511628211": ["fully_connected_gpu_fb_io_block", -1]}})";

// The three records are in the file as they were.
inline void expect_kept(const std::string& path) {
  EXPECT_EQ(TuningCache::read(path).foreign_records(), 3u);
  const std::string text = read_file(path);
  for (
      const char* record :
      {R"("F16_BFYX_v416_p1_0_v416_p1_0_v32_p0_0_v1_p0_0;3_3_1;2_2_1;1_1_1;1_1_0;1;1": ["convolution_gpu_bfyx_gemm_like", 2])",
       R"("48": {"14695981039346656037": ["convolution_gpu_bfyx_os_iyx_osv16", 311]})",
       R"("1099511628211": ["fully_connected_gpu_fb_io_block", -1])"})
    EXPECT_NE(text.find(record), std::string::npos) << record << " in " << text;
}

}  // namespace clinfer::test
