// Builds kernel instantiations (KernelSpec) into programs: in parallel, with a cache of binaries on
// disk.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "engine/ocl/compiler_pool.h"
#include "engine/ocl/device.h"
#include "engine/ocl/program_cache.h"

namespace clinfer::ocl {

// The text of one instantiation: everything between two kernels of a program. Equal texts are one
// kernel.
struct Instantiation {
  std::string kernel_name;  // unique by content
  std::string text;
  // How it will be launched, for drivers that compile for that: one of each kind.
  std::vector<TrialLaunch> launches{};
  // Of a user's kernel, whose text is a whole program: the compiler's options, and where it is
  // described. Null otherwise.
  std::shared_ptr<const OwnProgram> own{};
};
Instantiation instantiate(const KernelSpec& spec);
// A kernel as a function of a persistent kernel (kernels/persistent.cl). `caller` follows it, calls
// it and may use the source's macros.
Instantiation instantiate_function(const KernelSpec& spec, const std::string& caller);
// A whole program of one instantiation, and the compiler's options for all that are not a user's.
std::string program_source(const Instantiation& instantiation);
std::string compiler_options(const DeviceTraits& traits);

struct BuildOptions {
  const ProgramCache* cache = nullptr;        // nullptr: none
  unsigned threads = 0;                       // 0: all cores
  std::string sources_dumps_dir;              // "": none
  Progress progress;                          // may cancel
  const class Programs* known = nullptr;      // kernels that it has are taken from it
  std::shared_ptr<CompilerPool> compilers{};  // unless stated, that of the device
  std::string own_dumps_dir{};  // where programs of users' kernels go besides; "": nowhere
};

struct BuildCounts {
  size_t cached = 0, built = 0;
};

// Compiles by processes (CompilerPool), each of which has a thread here that waits for it. Where
// there are none, a thread compiles in this process, which cannot be interrupted: what it works on
// when its result is no longer wanted, it finishes without us, and only the end of the process
// waits for it. Thread-safe.
class ProgramBuilder {
 public:
  // `options` without progress. The context stays alive for as long as something is being compiled.
  ProgramBuilder(const Context& context, const BuildOptions& options);
  ~ProgramBuilder();  // waits for nothing but what a driver compiles in this process
  ProgramBuilder(const ProgramBuilder&) = delete;
  ProgramBuilder& operator=(const ProgramBuilder&) = delete;

  // To be compiled when a thread is free, in the order of the calls; once, however often wanted.
  void want(const Instantiation& instantiation);

  struct Built {
    cl::Program program;
    bool cached = false;  // came from disk
  };
  // Waits for it, ahead of what is wanted and was not begun. `go_on` is asked every few
  // milliseconds. Throws Error{device_failed} with the compiler's log (file and line are those of
  // the .cl sources) or by what it crashed, Error{cancelled}.
  Built get(const Instantiation& instantiation, const std::function<bool()>& go_on);
  // Waits until one of those that are wanted has to be compiled (true), or all came from the cache.
  // True also where no thread could be started. Throws Error{cancelled}.
  bool has_to_compile(const std::function<bool()>& go_on);

 private:
  struct State;
  std::shared_ptr<State> state_;
};

// Programs by kernel name. Immutable after build; shareable between threads.
class Programs {
 public:
  // Builds each distinct one once. Throws Error{device_failed} with the compiler's log (file and
  // line are those of the .cl sources), Error{cancelled}.
  static std::shared_ptr<const Programs> build(const Context& context,
                                               std::span<const Instantiation> instantiations,
                                               const BuildOptions& options) {
    return Building(context, instantiations, options).finish();
  }
  // As build(), in steps. The constructor begins; both functions throw as build() does.
  class Building {
   public:
    Building(const Context& context, std::span<const Instantiation> instantiations,
             const BuildOptions& options);
    // As ProgramBuilder::has_to_compile().
    bool has_to_compile();
    std::shared_ptr<const Programs> finish();  // once

   private:
    bool go_on() const;

    const Progress progress_;
    std::shared_ptr<Programs> result_ = std::make_shared<Programs>();
    std::map<std::string, Instantiation> wanted_;
    std::vector<const Instantiation*> order_;
    ProgramBuilder builder_;
  };
  // A new kernel object: arguments belong to its holder.
  cl::Kernel kernel(const std::string& kernel_name) const;
  // The binary that the driver gives of its program; PTX on NVIDIA. Throws cl::Error.
  std::string binary(const std::string& kernel_name) const;
  BuildCounts counts() const { return counts_; }

 private:
  std::map<std::string, cl::Program> by_kernel_;
  BuildCounts counts_;
};

}  // namespace clinfer::ocl
