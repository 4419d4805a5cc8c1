// Marks in PTX.
#include "engine/ocl/compiler/marked_ptx.h"

#include <gtest/gtest.h>

#include "kernels/base/error.h"

namespace clinfer::ocl {
namespace {

// Of two kernels, each has its own size.
TEST(MarkedPtx, InstructionsAndSizesOfLocalMemory) {
  const std::string ptx =
      ".entry a(\n)\n{\n\t.shared .align 1024 .b8 a_$_tiles[16384];\n"
      "\t//#local 232448\n\t//@wgmma.fence.sync.aligned;\n\tret;\n}\n"
      ".entry b(\n)\n{\n\t.shared .align 1024 .b8 b_$_tiles[16384];\n"
      "\t//#local 8192\n\t//@wgmma.fence.sync.aligned;\n\tret;\n}\n";
  EXPECT_EQ(with_marks_in_force(ptx),
            ".entry a(\n)\n{\n\t.shared .align 1024 .b8 a_$_tiles[232448];\n"
            "\t//#local 232448\n\twgmma.fence.sync.aligned;\n\tret;\n}\n"
            ".entry b(\n)\n{\n\t.shared .align 1024 .b8 b_$_tiles[8192];\n"
            "\t//#local 8192\n\twgmma.fence.sync.aligned;\n\tret;\n}\n");
  EXPECT_EQ(with_marks_in_force("ret; // @ local"), "ret; // @ local");
}

TEST(MarkedPtx, LimitsRegistersOfOneKernelEach) {
  const std::string ptx =
      ".entry a(\n)\n.reqntid 128, 1, 1\n{\n\t//#groups 3\n\tret;\n}\n"
      ".entry b(\n)\n.reqntid 256, 1, 1\n{\n\tret;\n}\n"
      ".entry c(\n)\n.reqntid 64, 2, 1\n{\n\t//#groups 12\n\tret;\n}\n";
  EXPECT_EQ(with_marks_in_force(ptx),
            ".entry a(\n)\n.reqntid 128, 1, 1\n.minnctapersm 3\n{\n\t//#groups 3\n\tret;\n}\n"
            ".entry b(\n)\n.reqntid 256, 1, 1\n{\n\tret;\n}\n"
            ".entry c(\n)\n.reqntid 64, 2, 1\n.minnctapersm 12\n{\n\t//#groups 12\n\tret;\n}\n");
  for (const char* broken : {"//#groups 2", ".entry a(\n)\n{\n//#groups 2",
                             ".reqntid 64\n{\n//#groups x", ".reqntid 64, 1, 1 //#groups 2"})
    EXPECT_THROW(with_marks_in_force(broken), Error) << broken;
  EXPECT_TRUE(has_marked_ptx("asm volatile(\"//#groups 2\")"));
}

TEST(MarkedPtx, RefusesASizeOfNothing) {
  for (const char* ptx : {"//#local 4096", "//#local x\n.shared .b8 t[16];",
                          ".shared .b8 t;\n//#local 4096", ".shared .b8 t[16];\n//#local"})
    if (std::string(ptx).find("//#local ") != std::string::npos) {
      EXPECT_THROW(with_marks_in_force(ptx), Error) << ptx;
    }
}

}  // namespace
}  // namespace clinfer::ocl
