// PTX of OpenCL's compiler becomes what CUDA launches.
#include "engine/cuda/ptx.h"

#include <gtest/gtest.h>

#include "kernels/base/error.h"

namespace clinfer::cuda {
namespace {

const std::string kHead = ".version 8.8\n.target sm_90\n.address_size 64\n\n";

TEST(Ptx, OffsetsAreNoneAndLaunchesHaveThreeDimensions) {
  const Ptx ptx = ptx_for_cuda(kHead +
                               "mov.b32 %r1, %envreg0;\nmov.b32 %r2, %envreg3;\nmov.b32 "
                               "%r3, %envreg5;\nmov.b32 %r4, %envreg9;\n");
  EXPECT_EQ(ptx.text,
            kHead + "mov.b32 %r1, 0;\nmov.b32 %r2, 0;\nmov.b32 %r3, 0;\nmov.b32 %r4, 3;\n");
  EXPECT_EQ(ptx.dynamic_shared, 0u);
}

TEST(Ptx, NumbersOfWorkGroupsAreCudas) {
  EXPECT_EQ(ptx_for_cuda(kHead + "mov.b32 %r1, %envreg6;\nmov.b32 %r2, %envreg7;\nmov.b32 %r3, "
                                 "%envreg8;\n")
                .text,
            kHead + "mov.b32 %r1, %nctaid.x;\nmov.b32 %r2, %nctaid.y;\nmov.b32 %r3, %nctaid.z;\n");
}

TEST(Ptx, OtherRegistersOfOpenclAreRefused) {
  for (const char* name : {"%envreg10", "%envreg31", "%envreg"}) try {
      ptx_for_cuda(kHead + "mov.b32 %r1, " + name + ";\n");
      FAIL() << name;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::unsupported);
      EXPECT_NE(std::string(error.what()).find(name), std::string::npos) << error.what();
    }
}

TEST(Ptx, EndsAtTheFirstZero) {
  const std::string text = kHead + "ret;\n";
  EXPECT_EQ(ptx_for_cuda(text + std::string(2, '\0') + "%envreg31").text, text);
}

TEST(Ptx, WhatIsNoPtxIsRefused) {
  for (const char* text : {"", "\177ELF", ".version 8.8\n"})
    EXPECT_THROW(ptx_for_cuda(text), Error) << text;
}

TEST(Ptx, LargeSharedMemoryBecomesDynamic) {
  const Ptx ptx =
      ptx_for_cuda(kHead +
                   ".entry a()\n{\n.shared .align 4 .b8 small[1024];\n.shared .align 16 "
                   ".b8 large[65536];\nmov.u64 %rd1, large;\nld.shared.u32 %r1, "
                   "[small];\n}\n");
  EXPECT_EQ(ptx.dynamic_shared, 65536u);
  EXPECT_EQ(ptx.text,
            ".version 8.8\n.target sm_90\n.address_size 64\n.extern .shared .align 16 .b8 "
            "large[];\n\n.entry a()\n{\n.shared .align 4 .b8 small[1024];\n\nmov.u64 %rd1, "
            "large;\nld.shared.u32 %r1, [small];\n}\n");
}

TEST(Ptx, SharedMemoryThatFitsStaysAsItIs) {
  const std::string text =
      kHead + ".shared .align 16 .b8 tile[49152];\nld.shared.u32 %r1, [tile];\n";
  EXPECT_EQ(ptx_for_cuda(text).text, text);
  EXPECT_EQ(ptx_for_cuda(text).dynamic_shared, 0u);
}

TEST(Ptx, SeveralLargeArraysAreRefused) {
  EXPECT_THROW(ptx_for_cuda(kHead + ".shared .align 16 .b8 a[50000];\n.shared .align 16 .b8 "
                                    "b[50000];\n"),
               Error);
}

}  // namespace
}  // namespace clinfer::cuda
