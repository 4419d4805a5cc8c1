// Assembles, builds and caches OpenCL programs.
#include "engine/ocl/compiler/programs.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <optional>
#include <set>
#include <sstream>

#include "engine/ocl/compiler/build_log.h"
#include "engine/ocl/compiler/compiling.h"
#include "engine/ocl/pocl_cache.h"
#include "kernels/base/log.h"
#include "kernels/base/system/files.h"
#include "kernels/base/system/leaving.h"
#include "kernels/base/system/processors.h"
#include "kernels/registers.h"

namespace clinfer::ocl {

namespace {

// To be changed when generated code or its conventions change in a way that the sources do not
// show.
constexpr const char* kEngineVersion = "clinfer 2";
// Disables warnings: PoCL prints their number to stderr, and without AVX-512 each use of a float16
// causes one.
constexpr const char* kOptions = "-cl-mad-enable -cl-no-signed-zeros -w";
constexpr const char* kOrderedOptions = "-DORDERED_SUMS -w";

std::string common_text() {
  std::string text;
  for (std::string_view name : common_sources())
    text += "#line 1 \"" + std::string(name) + "\"\n" + std::string(kernel_source(name)) + "\n";
  return text;
}

// Collects the macros that a piece of source defines, so that they can be undefined after it.
void collect_macros(std::string_view source, std::set<std::string>& names) {
  std::istringstream lines{std::string(source)};
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string word, name;
    if (words >> word >> name && word == "#define") names.insert(name.substr(0, name.find('(')));
  }
}

// Makes Mesa use multiplication and addition where the device lacks fma(), whose emulation takes 16
// times as long.
std::string option_of_fma(const Context& context) {
  const auto abilities = context.device.device.getInfo<CL_DEVICE_SINGLE_FP_CONFIG>();
  return (abilities & CL_FP_FMA) != 0 || context.traits.ordered_sums ? "" : " -DNO_FMA";
}

// Returns the option by which quotients and roots are the nearest floats, as sums in one order need
// them.
std::string option_of_division(const Context& context) {
  const auto abilities = context.device.device.getInfo<CL_DEVICE_SINGLE_FP_CONFIG>();
  return context.traits.ordered_sums && (abilities & CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT) != 0
             ? " -cl-fp32-correctly-rounded-divide-sqrt"
             : "";
}

struct Job {
  Instantiation instantiation;
  cl::Program program;
  bool cached = false;
  std::exception_ptr error;
  bool begun = false, done = false;
};

constexpr auto kPoll = std::chrono::milliseconds(20);  // between calls that ask whether to go on

class Builder {
 public:
  Builder(const Context& context, const BuildOptions& options)
      : held_(context.shared_from_this()),
        context_(context),
        cache_(options.cache ? std::make_optional(*options.cache) : std::nullopt),
        sources_dumps_dir_(options.sources_dumps_dir),
        own_dumps_dir_(options.own_dumps_dir),
        language_(language_option(context.traits)),
        flags_(compiler_options(context.traits) + option_of_fma(context) +
               option_of_division(context)) {
    const DeviceInfo& info = context_.device.info;
    identity_ = std::string(kEngineVersion) + "|" + info.platform + "|" + info.name + "|" +
                info.driver + "|" + info.version + "|";
  }

  CompileRequest request_for(const Job& job) const {
    return {options_of(job),
            program_source(job.instantiation),
            job.instantiation.kernel_name,
            {},
            false};
  }

  // Loads the program from the cache. Returns whether it was there.
  bool load(Job& job, const CompileRequest& request) const {
    if (!cache_) return false;
    const auto binary = cache_->load(key_of(request));
    if (!binary || !from_binary(job, *binary)) return false;
    check_room(job, request.source);
    job.cached = true;
    dump(job, request.source, "not built: it was in the program cache");
    return true;
  }

  // Compiles in a compiler process, or in this process if there is none. A job that was abandoned
  // meanwhile is not cached, because some compilers take as long again to make a binary.
  void compile(Job& job, CompileRequest request, CompilerPool& compilers, const void* owner,
               const std::atomic<bool>& abandoned) {
    const bool pocl = context_.traits.vendor == Vendor::pocl;
    if (pocl) request.launches = job.instantiation.launches;
    // NVIDIA's driver finds on disk what the process has built.
    const bool nvidia = context_.traits.vendor == Vendor::nvidia;
    request.wants_binary = !nvidia && has_binary(job) && (!pocl || !request.launches.empty());
    const CompileAnswer answer = compilers.compile(request, owner, abandoned);
    if (abandoned || answer.outcome == CompileAnswer::Outcome::stopped)
      throw Error(ErrorCode::cancelled, "building the kernels was cancelled");
    if (answer.outcome == CompileAnswer::Outcome::refused) refuse(job, request.source, answer.text);
    if (answer.outcome == CompileAnswer::Outcome::crashed ||
        answer.outcome == CompileAnswer::Outcome::limited)
      refuse(job, request.source, "(" + answer.text + ")");
    const bool made = !answer.binary.empty() && from_binary(job, answer.binary);
    check_room(job, request.source);
    // Does not try a kernel of the user in this process, because it may do anything.
    if (answer.outcome == CompileAnswer::Outcome::built || job.instantiation.own)
      request.launches.clear();
    if (!made) build_here(job, request);
    dump(job, request.source, dump_folders(job).empty() ? "" : build_log(job.program));
    if (!cache_ || abandoned) return;
    // A process that was asked for a binary and gave none may have crashed over it, which would end
    // this process as well.
    const bool gave_none = request.wants_binary && answer.binary.empty() &&
                           answer.outcome == CompileAnswer::Outcome::built;
    if (made)
      cache_->store(key_of(request), answer.binary);
    else if (!gave_none)
      store(job, key_of(request));
  }

  // Returns whether a driver is compiling in this process.
  bool compiles_here() const { return here_ > 0; }

 private:
  std::string key_of(const CompileRequest& request) const {
    return identity_ + request.options + "\n" + request.source;
  }

  std::string options_of(const Job& job) const {
    const auto& own = job.instantiation.own;
    if (!own) return flags_;
    // If the user states a language version, it is the only one.
    return (own->options.find("-cl-std") == own->options.npos ? language_ + " " : "") + "-w" +
           (own->options.empty() ? "" : " " + own->options);
  }

  std::string build_log(const cl::Program& program) const {
    try {
      return program.getBuildInfo<CL_PROGRAM_BUILD_LOG>(context_.device.device);
    } catch (const cl::Error&) {
      return "";
    }
  }

  [[noreturn]] void refuse(const Job& job, const std::string& source, const std::string& why,
                           SourcePlace place = SourcePlace::here()) const {
    dump(job, source, why);
    const auto& own = job.instantiation.own;
    std::string text = own ? own->where + ": " : "";
    text += "building kernel " + (own ? own->entry : job.instantiation.kernel_name) + " on " +
            context_.device.info.name + " failed " + (own ? place_in_files(why, source) : why);
    if (own && why.find("CL_INVALID_KERNEL_NAME") != why.npos)
      text += "; its sources have no kernel of that name (entry)";
    if (context_.traits.vendor == Vendor::pocl)
      if (const std::string full = full_pocl_cache(); !full.empty())
        throw PoclCacheFull(
            ErrorCode::device_failed,
            text + "; " + full +
                ", where PoCL puts what it compiles: POCL_CACHE_DIR names another folder",
            place);
    throw Error(ErrorCode::device_failed, text, place);
  }

  // PoCL ends the process when it launches a kernel that it could not write to its folder. To be
  // called after PoCL wrote, because a disk may fill at any time.
  void check_room(const Job& job, const std::string& source) const {
    if (context_.traits.vendor == Vendor::pocl && !full_pocl_cache().empty())
      refuse(job, source, "(what was compiled cannot be kept)");
  }

  void build_here(Job& job, const CompileRequest& request) {
    struct Counted {
      explicit Counted(std::atomic<unsigned>& all) : count(all) { ++count; }
      ~Counted() { --count; }
      std::atomic<unsigned>& count;
    };
    const Counted counted(here_);
    check_room(job, request.source);
    try {
      job.program = ocl::build_here(context_, request);
      check_room(job, request.source);
    } catch (const cl::BuildError& error) {
      std::string log;
      for (const auto& [device, text] : error.getBuildLog()) log += text;
      refuse(job, request.source, "(" + error_name(error.err()) + "): " + log);
    } catch (const cl::Error& error) {
      refuse(job, request.source, "(" + error_name(error.err()) + ")");
    }
  }

  // Builds from a binary. One that the driver refuses (another build of it with the same version
  // text) is treated as missing.
  bool from_binary(Job& job, const std::vector<unsigned char>& binary) const {
    const auto alone = alone_with_driver(context_.device);
    try {
      job.program =
          cl::Program(context_.context, {context_.device.device}, cl::Program::Binaries{binary});
      job.program.build(context_.device.device, options_of(job).c_str());
      cl::Kernel(job.program, job.instantiation.kernel_name.c_str());
      return true;
    } catch (const cl::Error&) {
      return false;
    }
  }

  // Returns whether the driver may be asked for a binary. PoCL 5.0 aborts the process if another
  // thread runs the same kernel meanwhile, as with elements that start together, and 6.0 if the
  // program has inline assembly: products of bytes have it, and persistent kernels of several cores.
  // Their own caches save most of the time to build again.
  bool has_binary(const Job& job) const {
    const int version = pocl_version(context_.device);
    const auto defines = [&](const char* name) {
      return job.instantiation.text.find(std::string("#define ") + name) != std::string::npos;
    };
    return version < 4 ||
           (version != 5 && !defines("DOT_AVX") && !defines("DOT_PAIRS") && !defines("PK_CORES 1"));
  }

  void store(const Job& job, const std::string& key) const {
    if (!has_binary(job)) return;
    const auto alone = alone_with_driver(context_.device);
    try {
      const auto binaries = job.program.getInfo<CL_PROGRAM_BINARIES>();
      if (!binaries.empty() && !binaries[0].empty()) cache_->store(key, binaries[0]);
    } catch (const cl::Error&) {
      // Some drivers give no binaries, so that nothing can be stored.
    }
  }

  void dump(const Job& job, const std::string& source, const std::string& log) const {
    for (const std::string& folder : dump_folders(job)) {
      make_folders(folder);
      replace_file(folder + "/clDNN_program_" + job.instantiation.kernel_name + ".cl",
                   std::array<std::string_view, 4>{source, "\n/* Build Log:\n", log, "\n*/\n"});
    }
  }

  std::vector<std::string> dump_folders(const Job& job) const {
    std::vector<std::string> folders;
    if (!sources_dumps_dir_.empty()) folders.push_back(sources_dumps_dir_);
    if (!own_dumps_dir_.empty() && job.instantiation.own) folders.push_back(own_dumps_dir_);
    return folders;
  }

  const std::shared_ptr<const Context> held_;
  const Context& context_;
  const std::optional<ProgramCache> cache_;
  const std::string sources_dumps_dir_, own_dumps_dir_;
  const std::string language_, flags_;
  std::string identity_;
  std::atomic<unsigned> here_{0};
};

// Refuses macros that undefine names of the text which all kernels of a program share.
void refuse_common_names(const KernelSpec& spec, const std::set<std::string>& macros) {
  static const auto& common = *new const std::set<std::string>([] {
    std::set<std::string> names;
    collect_macros(common_text(), names);
    return names;
  }());
  for (const std::string& name : macros)
    if (common.count(name) != 0)
      throw std::logic_error(spec.source + " defines " + name + " of kernels/common");
}

// Joins the defines and the prologue of a spec, the source, and #undefs.
Instantiation instance(const KernelSpec& spec, const std::string& source) {
  std::string body;
  std::set<std::string> macros{"KERNEL_NAME"};
  for (const auto& [name, value] : spec.defines) {
    body += "#define " + name + " " + value + "\n";
    macros.insert(name.substr(0, name.find('(')));
  }
  collect_macros(spec.prologue, macros);
  collect_macros(source, macros);
  refuse_common_names(spec, macros);
  body += spec.prologue + "\n#line 1 \"" + spec.source + "\"\n" + source + "\n";
  const std::string stem = spec.source.substr(0, spec.source.find('.'));
  Instantiation result;
  result.kernel_name = stem + "_" + hex(fnv1a(body));
  result.text = "#define KERNEL_NAME " + result.kernel_name + "\n" + body;
  for (const std::string& name : macros) result.text += "#undef " + name + "\n";
  return result;
}

// Returns the source with `function` in place of each kernel's beginning.
std::string with_function(const KernelSpec& spec, const std::string& function) {
  constexpr std::string_view kKernel = "\nKERNEL(";
  std::string source(kernel_source(spec.source));
  for (size_t at; (at = source.find(kKernel)) != std::string::npos;)
    source.replace(at, kKernel.size(), "\n" + function + " ");
  return source;
}

// Returns whether the kernel may become one that calls a function (kernels/outline.cl).
bool can_be_outlined(const KernelSpec& spec) {
  return !spec.own && spec.shared == 0 && spec.local == std::array<size_t, 3>{1, 1, 1} &&
         std::none_of(spec.arguments.begin(), spec.arguments.end(),
                      [](const Argument& a) {
                        return a.kind == Argument::Kind::image || a.address_bytes != 0;
                      }) &&
         // Launches that are cut have other functions.
         std::none_of(spec.defines.begin(), spec.defines.end(),
                      [](const auto& define) { return define.first == "get_group_id(d)"; });
}

// Returns the kernel that calls the function made by outline.cl.
std::string outlined_kernel(const KernelSpec& spec) {
  std::string parameters, call;
  for (size_t i = 0; i < spec.arguments.size(); ++i) {
    const Argument& argument = spec.arguments[i];
    const std::string number = std::to_string(i);
    if (argument.kind == Argument::Kind::value) {
      parameters += "const " + std::string(argument.type) + " v" + number + ", ";
      call += ", v" + number;
    } else {
      parameters += "__global void* b" + number + ", const int o" + number + ", ";
      call += ", b" + number + ", o" + number;
    }
  }
  return R"(
#ifdef POCL_DEVICE_ADDRESS_BITS
#undef get_group_id
#undef get_global_size
__attribute__((reqd_work_group_size(1, 1, 1))) __kernel void KERNEL_NAME()" +
         parameters.substr(0, parameters.rfind(',')) + R"() {
  FN(body)((int4)(get_group_id(0), get_group_id(1), get_group_id(2), get_global_size(0)))" +
         call + R"();
}
#endif
)";
}

// Makes the instantiation of a user's program, whose kernel gets a name that is unique by content.
Instantiation own_program(const KernelSpec& spec) {
  const OwnProgram& own = *spec.own;
  Instantiation result;
  result.kernel_name = own.entry + "_" + hex(fnv1a(own.options + "\n" + own.text));
  result.text = "#define " + own.entry + " " + result.kernel_name + "\n" + own.text;
  result.own = spec.own;
  return result;
}

}  // namespace

std::string program_source(const Instantiation& instantiation) {
  static const auto& common = *new const std::string(common_text());
  if (instantiation.own) return instantiation.text;
  const bool gates = instantiation.text.find("gate_") != std::string::npos;
  return (gates ? "#define GATES\n" : "") + common + instantiation.text;
}

std::string compiler_options(const DeviceTraits& traits) {
  return language_option(traits) + " " + (traits.ordered_sums ? kOrderedOptions : kOptions) +
         (traits.fp16 ? " -DUSE_HALF" : "") + (traits.is_cpu ? " -DON_CPU" : "") +
         // Otherwise the compiler would choose sub-groups of 32 even if these spill registers.
         (has_wide_registers(traits) && !traits.is_cpu ? " -DSUB_GROUP=16" : "");
}

Instantiation instantiate(const KernelSpec& spec) {
  Instantiation result;
  if (spec.own) {
    result = own_program(spec);
  } else if (can_be_outlined(spec)) {
    result = instance(spec, with_function(spec, "OUTLINE") + outlined_kernel(spec));
    result.text = std::string(kernel_source("outline.cl")) + result.text;
  } else {
    result = instance(spec, std::string(kernel_source(spec.source)));
  }
  result.launches.push_back({spec.global, spec.local, spec.arguments});
  return result;
}

namespace {

// Returns all that the text of an instantiation is made of, besides the sources.
std::string ingredients(const KernelSpec& spec) {
  std::string all = spec.source + '\0';
  for (const auto& [name, value] : spec.defines) all += name + '\0' + value + '\0';
  return all + '\1' + spec.prologue + '\0';
}

}  // namespace

const Instantiation& Instantiations::of(const KernelSpec& spec) {
  std::string key = ingredients(spec);
  if (spec.own)
    key += own_program(spec).kernel_name;
  else if (can_be_outlined(spec))
    key += outlined_kernel(spec);
  auto found = known_.find(key);
  if (found == known_.end()) found = known_.emplace(std::move(key), instantiate(spec)).first;
  return found->second;
}

const Instantiation& Instantiations::of_function(const KernelSpec& spec,
                                                 const std::string& caller) {
  std::string key = ingredients(spec) + caller;
  auto found = known_.find(key);
  if (found == known_.end())
    found =
        known_.emplace(std::move(key), instance(spec, with_function(spec, "PK_FUNCTION") + caller))
            .first;
  return found->second;
}

struct ProgramBuilder::State {
  State(const Context& context, const BuildOptions& options)
      : builder(context, options),
        built(options.built),
        compilers(options.compilers ? options.compilers : CompilerPool::of(context)),
        most_threads(threads_for(context, options)) {}

  // Returns the number of threads. In this process PoCL compiles one program at a time, so more
  // threads would only wait for its lock, also at exit. Oclgrind has no such lock and supports one
  // thread only.
  unsigned threads_for(const Context& context, const BuildOptions& options) const {
    if (const unsigned most = compilers->most(); most > 0)
      return options.threads ? std::min(options.threads, most) : most;
    if (options.threads) return options.threads;
    return context.traits.vendor == Vendor::pocl || context.device.info.platform == "Oclgrind"
               ? 1
               : available_processors();
  }

  // Returns the job of an instantiation, and starts a thread for it if possible. Needs the mutex
  // locked.
  std::shared_ptr<Job> job_of(const Instantiation& instantiation,
                              const std::shared_ptr<State>& self) {
    auto& job = jobs[instantiation.kernel_name];
    if (job) return job;
    auto made = std::make_shared<Job>();
    made->instantiation = instantiation;
    queue.push_back(made);
    job = made;
    if (threads < most_threads && start_compiling([self] { self->work(); })) ++threads;
    return job;
  }

  // Runs jobs on a thread until none is left.
  void work() {
    std::unique_lock lock(mutex);
    while (!queue.empty() && !is_leaving()) {
      const std::shared_ptr<Job> job = queue.front();
      queue.pop_front();
      if (!job->begun) run(*job, lock);
    }
    --threads;
  }

  // Runs a job. The caller has locked the mutex, which is released meanwhile.
  void run(Job& job, std::unique_lock<std::mutex>& lock) {
    job.begun = true;
    lock.unlock();
    try {
      CompileRequest request = builder.request_for(job);
      if (!builder.load(job, request)) {
        note_missing();
        builder.compile(job, std::move(request), *compilers, this, abandoned);
      }
      if (built && !abandoned) built(job.instantiation.kernel_name, job.program);
    } catch (const cl::Error& error) {
      try {
        rethrow(error, "building kernel " + job.instantiation.kernel_name);
      } catch (...) {
        job.error = std::current_exception();
      }
    } catch (...) {
      job.error = std::current_exception();
    }
    notice_exit();
    lock.lock();
    job.done = true;
    ++done;
    changed.notify_all();
  }

  // Notes that a program has to be compiled.
  void note_missing() {
    {
      const std::lock_guard lock(mutex);
      missing = true;
    }
    changed.notify_all();
  }

  Builder builder;
  const decltype(BuildOptions::built) built;
  const std::shared_ptr<CompilerPool> compilers;
  const unsigned most_threads;
  std::atomic<bool> abandoned{false};  // nobody wants results any more
  std::mutex mutex;                    // guards the members below
  std::condition_variable changed;
  std::map<std::string, std::shared_ptr<Job>> jobs;  // by kernel name
  std::deque<std::shared_ptr<Job>> queue;
  unsigned threads = 0;
  size_t done = 0;       // number of finished jobs
  bool missing = false;  // a program was not in the cache
};

ProgramBuilder::ProgramBuilder(const Context& context, const BuildOptions& options)
    : state_(std::make_shared<State>(context, options)) {}

ProgramBuilder::~ProgramBuilder() {
  state_->abandoned = true;
  {
    const std::lock_guard lock(state_->mutex);
    state_->queue.clear();
    // Releases programs now and not when a thread ends, because oclgrind counts their users without
    // atomics.
    state_->jobs.clear();
  }
  state_->compilers->abandon(state_.get());
  // Waits for a driver that compiles in this process, which must not go on while the process ends.
  for (std::unique_lock lock(state_->mutex); state_->builder.compiles_here() && !is_leaving();)
    state_->changed.wait_for(lock, kPoll);
}

void ProgramBuilder::want(const Instantiation& instantiation) {
  const std::lock_guard lock(state_->mutex);
  state_->job_of(instantiation, state_);
}

ProgramBuilder::Built ProgramBuilder::get(const Instantiation& instantiation,
                                          const std::function<bool()>& go_on) {
  std::unique_lock lock(state_->mutex);
  const std::shared_ptr<Job> job = state_->job_of(instantiation, state_);
  if (!job->begun) state_->queue.push_front(job);  // its old entry in the queue is skipped
  while (!job->done) {
    if (state_->threads == 0 && !job->begun && !is_leaving()) {
      state_->run(*job, lock);  // no thread could be started
      continue;
    }
    lock.unlock();
    if (is_leaving() || !go_on())
      throw Error(ErrorCode::cancelled, "building the kernels was cancelled");
    lock.lock();
    state_->changed.wait_for(lock, kPoll, [&] { return job->done; });
  }
  if (job->error) std::rethrow_exception(job->error);
  return {job->program, job->cached};
}

bool ProgramBuilder::has_to_compile(const std::function<bool()>& go_on) {
  std::unique_lock lock(state_->mutex);
  while (!state_->missing && state_->done < state_->jobs.size()) {
    if (state_->threads == 0) return true;
    lock.unlock();
    if (is_leaving() || !go_on())
      throw Error(ErrorCode::cancelled, "building the kernels was cancelled");
    lock.lock();
    state_->changed.wait_for(
        lock, kPoll, [&] { return state_->missing || state_->done == state_->jobs.size(); });
  }
  return state_->missing;
}

void add_launches(std::vector<TrialLaunch>& launches, const std::vector<TrialLaunch>& others) {
  const auto kind = [](const TrialLaunch& launch) {
    return *std::max_element(launch.global.begin(), launch.global.end()) >= kWideLaunch;
  };
  for (const TrialLaunch& other : others)
    if (std::none_of(launches.begin(), launches.end(), [&](const TrialLaunch& launch) {
          return kind(launch) == kind(other) && launch.local == other.local &&
                 launch.offset == other.offset;
        }))
      launches.push_back(other);
}

Programs::Building::Building(const Context& context, std::span<const Instantiation> instantiations,
                             const BuildOptions& options)
    : progress_(options.progress),
      keeps_kernels_(context.traits.vendor == Vendor::pocl),
      builder_(context, options) {
  for (const Instantiation& instantiation : instantiations) {
    if (options.known != nullptr) {
      const auto known = options.known->by_kernel_.find(instantiation.kernel_name);
      if (known != options.known->by_kernel_.end()) {
        result_->by_kernel_.insert(*known);
        continue;
      }
    }
    const auto [known, is_new] = wanted_.try_emplace(instantiation.kernel_name, instantiation);
    if (!is_new) add_launches(known->second.launches, instantiation.launches);
  }
  // Builds the longest first, so that those that take longest do not begin last.
  for (const auto& [name, instantiation] : wanted_) order_.push_back(&instantiation);
  std::ranges::stable_sort(order_, std::greater<>(),
                           [](const Instantiation* one) { return one->text.size(); });
  for (const Instantiation* instantiation : order_) builder_.want(*instantiation);
}

bool Programs::Building::go_on() const {
  const BuildCounts& counts = result_->counts_;
  return !progress_ || progress_("building kernels", counts.cached + counts.built, wanted_.size());
}

bool Programs::Building::has_to_compile() {
  return builder_.has_to_compile([this] { return go_on(); });
}

std::shared_ptr<const Programs> Programs::Building::finish() {
  BuildCounts& counts = result_->counts_;
  for (const Instantiation* instantiation : order_) {
    const std::string& name = instantiation->kernel_name;
    const ProgramBuilder::Built built = builder_.get(*instantiation, [this] { return go_on(); });
    result_->by_kernel_[name] = std::make_shared<Made>(built.program, keeps_kernels_);
    (built.cached ? counts.cached : counts.built)++;
    log(LogArea::programs, LogLevel::debug,
        [&] { return name + (built.cached ? ": from the cache" : ": compiled"); });
    if (!go_on()) throw Error(ErrorCode::cancelled, "building the kernels was cancelled");
  }
  log(LogArea::programs, LogLevel::info, [&] {
    return std::to_string(counts.built) + " programs compiled, " + std::to_string(counts.cached) +
           " from the cache";
  });
  return std::move(result_);
}

struct Programs::Made {
  Made(cl::Program program_, bool keeps_) : program(std::move(program_)), keeps(keeps_) {}
  ~Made() {
    idle.clear();
    while (!kept.empty()) kept.pop_back();
  }
  Made(const Made&) = delete;
  Made& operator=(const Made&) = delete;

  const cl::Program program;
  const bool keeps;                      // false: each kernel object is released by its holder
  mutable std::mutex mutex;              // guards the members below
  mutable std::vector<cl::Kernel> kept;  // all that were taken, from the oldest to the newest
  mutable std::vector<cl::Kernel> idle;  // those among them that were given back
};

const Programs::Made& Programs::made(const std::string& kernel_name) const {
  const auto found = by_kernel_.find(kernel_name);
  if (found == by_kernel_.end())
    throw Error(ErrorCode::device_failed, "kernel " + kernel_name + " was not built");
  return *found->second;
}

std::string Programs::binary(const cl::Program& program) {
  const auto binaries = program.getInfo<CL_PROGRAM_BINARIES>();
  return binaries.empty() ? "" : std::string(binaries[0].begin(), binaries[0].end());
}

std::string Programs::binary(const std::string& kernel_name) const {
  return binary(made(kernel_name).program);
}

cl::Kernel Programs::kernel(const std::string& kernel_name) const {
  const cl::Program& program = made(kernel_name).program;
  try {
    return cl::Kernel(program, kernel_name.c_str());
  } catch (const cl::Error& error) {
    rethrow(error, "creating kernel " + kernel_name);
  }
}

cl::Kernel Programs::take_kernel(const std::string& kernel_name) const {
  const Made& from = made(kernel_name);
  if (!from.keeps) return kernel(kernel_name);
  const std::lock_guard lock(from.mutex);
  if (from.idle.empty()) {
    from.kept.push_back(kernel(kernel_name));
    return from.kept.back();
  }
  cl::Kernel taken = std::move(from.idle.back());
  from.idle.pop_back();
  return taken;
}

void Programs::give_back(cl::Kernel kernel) const {
  const Made& to = made(kernel.getInfo<CL_KERNEL_FUNCTION_NAME>());
  if (!to.keeps) return;
  const std::lock_guard lock(to.mutex);
  to.idle.push_back(std::move(kernel));
}

}  // namespace clinfer::ocl
