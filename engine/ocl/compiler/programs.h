// Builds kernel instantiations (KernelSpec) into programs: in parallel, with a cache of binaries on
// disk.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "engine/ocl/compiler/compiler_pool.h"
#include "engine/ocl/compiler/program_cache.h"
#include "engine/ocl/device.h"

namespace clinfer::ocl {

// The text of one instantiation, which becomes a part of a program. Equal texts are the same
// kernel.
struct Instantiation {
  std::string kernel_name;  // unique by content
  std::string text;
  // The launches that the kernel will get, one of each kind, for drivers that compile for them.
  std::vector<TrialLaunch> launches{};
  // The compiler's options of a user's kernel, and where it is described; its text is a whole
  // program. Null for other kernels.
  std::shared_ptr<const OwnProgram> own{};
};
Instantiation instantiate(const KernelSpec& spec);

// Instantiates the launches of a network. Makes the text of each kernel once, since a text is tens
// of kilobytes and a network may have as many launches of one kernel as it has layers.
class Instantiations {
 public:
  // Returns what instantiate() does. The reference stays valid; its launches are those of the first
  // call with an equal kernel.
  const Instantiation& of(const KernelSpec& spec);
  // Makes a kernel a function of a persistent kernel (kernels/persistent.cl). `caller` follows it,
  // calls it and may use the source's macros.
  const Instantiation& of_function(const KernelSpec& spec, const std::string& caller);

 private:
  std::unordered_map<std::string, Instantiation> known_;  // by all that the text is made of
};

// Adds those of `others` that differ in kind, since drivers may compile another variant for wide
// ones.
void add_launches(std::vector<TrialLaunch>& launches, const std::vector<TrialLaunch>& others);

// Return the program that consists of one instantiation, and the compiler's options for all kernels
// that are not a user's.
std::string program_source(const Instantiation& instantiation);
std::string compiler_options(const DeviceTraits& traits);

struct BuildOptions {
  const ProgramCache* cache = nullptr;        // may be nullptr
  unsigned threads = 0;                       // 0: one for each core
  std::string sources_dumps_dir;              // "": no dumps
  Progress progress;                          // may cancel by returning false
  const class Programs* known = nullptr;      // programs from which kernels are taken that it has
  std::shared_ptr<CompilerPool> compilers{};  // the device's pool, if null
  std::string own_dumps_dir{};  // second folder for programs of users' kernels; "": none
  // Called with each kernel's name and its program once that is built, also from the cache, by
  // several threads at a time. An exception becomes the failure of that program.
  std::function<void(const std::string& kernel_name, const cl::Program& program)> built{};
};

struct BuildCounts {
  size_t cached = 0, built = 0;
};

// Compiles by processes (CompilerPool), each of which has a thread here that waits for it. Without
// processes, a thread compiles in this process, which cannot be interrupted: it finishes its work
// even if nobody wants the result any more, and only the end of the process waits for it.
// Thread-safe.
class ProgramBuilder {
 public:
  // `options`: progress is ignored. The context stays alive while something is compiled.
  ProgramBuilder(const Context& context, const BuildOptions& options);
  ~ProgramBuilder();  // waits only for a driver that compiles in this process
  ProgramBuilder(const ProgramBuilder&) = delete;
  ProgramBuilder& operator=(const ProgramBuilder&) = delete;

  // Queues an instantiation for compiling, in the order of the calls, and only once.
  void want(const Instantiation& instantiation);

  struct Built {
    cl::Program program;
    bool cached = false;  // true if it came from disk
  };
  // Waits for a program, and moves it ahead of others that were not begun. Asks `go_on` every few
  // milliseconds. Throws Error{device_failed} with the compiler's log (file and line are those of
  // the .cl sources) or the reason of its crash, and Error{cancelled}.
  Built get(const Instantiation& instantiation, const std::function<bool()>& go_on);
  // Waits until it is known whether a wanted program has to be compiled. Returns false if all came
  // from the cache; true also if no thread could be started. Throws Error{cancelled}.
  bool has_to_compile(const std::function<bool()>& go_on);

 private:
  struct State;
  std::shared_ptr<State> state_;
};

// Programs by kernel name. Immutable after build; shareable between threads.
class Programs {
 public:
  // Builds each distinct instantiation once. Throws Error{device_failed} with the compiler's log
  // (file and line are those of the .cl sources), and Error{cancelled}.
  static std::shared_ptr<const Programs> build(const Context& context,
                                               std::span<const Instantiation> instantiations,
                                               const BuildOptions& options) {
    return Building(context, instantiations, options).finish();
  }
  // Does what build() does, in steps. The constructor begins; both functions throw as build() does.
  class Building {
   public:
    Building(const Context& context, std::span<const Instantiation> instantiations,
             const BuildOptions& options);
    // See ProgramBuilder::has_to_compile().
    bool has_to_compile();
    std::shared_ptr<const Programs> finish();  // to be called once

   private:
    bool go_on() const;

    const Progress progress_;
    std::shared_ptr<Programs> result_ = std::make_shared<Programs>();
    const bool keeps_kernels_;
    std::map<std::string, Instantiation> wanted_;
    std::vector<const Instantiation*> order_;
    ProgramBuilder builder_;
  };
  // Makes a new kernel object, whose arguments belong to its holder.
  cl::Kernel kernel(const std::string& kernel_name) const;
  // Returns a kernel object that was given back, whose arguments have to be set anew, or makes a
  // new one. Requests take all of their kernels so. PoCL looks for each kernel that is released
  // among all of its program's, from the newest on, which takes minutes where two requests have
  // 50,000 of one program; kernels that were given back are released with the program, from the
  // newest to the oldest.
  cl::Kernel take_kernel(const std::string& kernel_name) const;
  // Takes a kernel of take_kernel() back, with which no work is left to be done.
  void give_back(cl::Kernel kernel) const;
  // Return the driver's binary of a program; PTX on NVIDIA. Throw cl::Error.
  static std::string binary(const cl::Program& program);
  std::string binary(const std::string& kernel_name) const;
  BuildCounts counts() const { return counts_; }

 private:
  // A program and the kernel objects of its kernel, for all Programs that share it.
  struct Made;
  const Made& made(const std::string& kernel_name) const;

  std::map<std::string, std::shared_ptr<Made>> by_kernel_;
  BuildCounts counts_;
};

}  // namespace clinfer::ocl
