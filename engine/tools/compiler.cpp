// The program clinfer-compiler, which the engine starts to compile kernels in a separate process.
// It is installed outside of PATH, and does nothing unless the program that starts it proves to be
// of the same build.
#include <cstdio>
#include <exception>

#include "engine/ocl/compiler/compiler_process.h"

int main(int argc, char** argv) {
  try {
    if (argc == 2) clinfer::ocl::serve_as_compiler(argv[1]);
    std::fprintf(stderr,
                 "clinfer-compiler: clinfer starts this by itself, to compile kernels; of another "
                 "version it does nothing\n");
    return 2;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "clinfer-compiler: %s\n", error.what());
    return 1;
  }
}
