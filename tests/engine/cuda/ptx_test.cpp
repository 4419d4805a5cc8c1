// PTX of OpenCL's compiler becomes what CUDA launches.
#include "engine/cuda/ptx.h"

#include <gtest/gtest.h>

#include "kernels/base/error.h"

namespace clinfer::cuda {
namespace {

const std::string kHead = ".version 8.8\n.target sm_90\n.address_size 64\n\n";

const std::string kBeginsEarly = "\tgriddepcontrol.wait;\n";

TEST(Ptx, WaitsBeforeItsFirstInstruction) {
  const std::string begin =
      ".func (.reg .b32 r) f()\n{\n\tret;\n}\n.entry a(\n\t.param .u64 a_param_0\n)\n.reqntid 256, "
      "1, "
      "1\n{\n\t.reg .b32 \t%r<3>;\n\t// demoted variable\n\t.shared .align 4 .b8 "
      "tile[64];\n\n";
  for (const std::string first : {"\tmov.u32 \t%r1, 1;\n", "$L__BB0_1:\n",
                                  "\t@%p1 bra \t$L__BB0_1;\n", "\t{ bar.sync 0; }\n"}) {
    const std::string rest = first + "\tret;\n\n}\n";
    const Ptx ptx = ptx_for_cuda(kHead + begin + rest);
    EXPECT_TRUE(ptx.begins_early);
    EXPECT_EQ(ptx.text, kHead + begin + kBeginsEarly + rest);
  }
}

TEST(Ptx, WhereTheInstructionIsMissingNothingWaits) {
  const std::string kernel = ".address_size 64\n.entry a()\n{\n\tret;\n}\n";
  for (const std::string head :
       {".version 8.8\n.target sm_89\n", ".version 7.7\n.target sm_90\n"}) {
    const Ptx ptx = ptx_for_cuda(head + kernel);
    EXPECT_FALSE(ptx.begins_early) << head;
    EXPECT_EQ(ptx.text, head + kernel);
  }
  for (const std::string head :
       {".version 7.8\n.target sm_90a, texmode_independent\n", ".version 9.0\n.target sm_120\n"})
    EXPECT_TRUE(ptx_for_cuda(head + kernel).begins_early) << head;
}

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
            "large[];\n\n.entry a()\n{\n.shared .align 4 .b8 small[1024];\n\n" +
                kBeginsEarly + "mov.u64 %rd1, large;\nld.shared.u32 %r1, [small];\n}\n");
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
