// Assembles, builds and caches OpenCL programs.
#include "engine/ocl/programs.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <deque>
#include <exception>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <optional>
#include <set>
#include <sstream>
#include <thread>

namespace clinfer::ocl {

namespace {

// Raised when generated code or its conventions change in a way the sources do not show.
constexpr const char* kEngineVersion = "clinfer 1";
// Without warnings: PoCL counts them on stderr, and without AVX-512 each use of a float16 is one.
constexpr const char* kOptions = "-cl-mad-enable -cl-no-signed-zeros -w";

std::string common_text() {
  std::string text;
  for (std::string_view name : common_sources())
    text += "#line 1 \"" + std::string(name) + "\"\n" + std::string(kernel_source(name)) + "\n";
  return text;
}

// Names that a piece of source defines, to undefine them behind it.
void collect_macros(std::string_view source, std::set<std::string>& names) {
  std::istringstream lines{std::string(source)};
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string word, name;
    if (words >> word >> name && word == "#define") names.insert(name.substr(0, name.find('(')));
  }
}

struct Job {
  Instantiation instantiation;
  cl::Program program;
  bool cached = false;
  std::exception_ptr error;
  bool begun = false, done = false;
};

constexpr auto kPoll = std::chrono::milliseconds(20);  // between two questions whether to go on

// To start a process and its driver takes as long as to compile a few programs.
constexpr size_t kWorthAProcess = 3;

// Threads that run compilers. The process must not tear down what they use before they are through.
class Compiling {
 public:
  static void start(std::function<void()> work) {
    Compiling& all = instance();
    wait_at_exit();
    {
      const std::lock_guard lock(all.mutex_);
      ++all.threads_;
    }
    std::thread([work = std::move(work), &all]() mutable {
      work();
      work = nullptr;  // what it holds goes before the process may
      const std::lock_guard lock(all.mutex_);
      if (--all.threads_ == 0) all.idle_.notify_all();
    }).detach();
  }

  // What is registered last runs first at exit, so this is called whenever a compiler has run: what
  // it left to be torn down (LLVM does at the first use of many of its parts) must not go before
  // the compilers that still run are through.
  static void wait_at_exit() {
    std::atexit([] {
      Compiling& compiling = instance();
      std::unique_lock lock(compiling.mutex_);
      compiling.idle_.wait(lock, [&] { return compiling.threads_ == 0; });
    });
  }

 private:
  static Compiling& instance() {
    static Compiling* const all = new Compiling;  // never destroyed
    return *all;
  }
  std::mutex mutex_;
  std::condition_variable idle_;
  size_t threads_ = 0;
};

class Builder {
 public:
  Builder(const Context& context, const BuildOptions& options)
      : held_(context.shared_from_this()),
        context_(context),
        cache_(options.cache ? std::make_optional(*options.cache) : std::nullopt),
        sources_dumps_dir_(options.sources_dumps_dir),
        flags_(compiler_options(context.traits)) {
    const DeviceInfo& info = context_.device.info;
    identity_ = std::string(kEngineVersion) + "|" + info.platform + "|" + info.name + "|" +
                info.driver + "|" + info.version + "|" + flags_ + "\n";
  }

  // What is abandoned meanwhile is not kept: to make a binary takes some compilers as long again.
  // `elsewhere` may compile it first, so that the driver has it.
  void run(Job& job, const std::atomic<bool>& abandoned,
           const std::function<void(const std::string& options, const std::string& source)>&
               elsewhere) const {
    const std::string source = program_source(job.instantiation);
    const std::string key = identity_ + source;
    if (cache_ && from_cache(job, key)) return;
    elsewhere(flags_, source);
    if (abandoned) throw Error(ErrorCode::cancelled, "nobody wants it any more");
    job.program = cl::Program(context_.context, source);
    std::string log;
    try {
      job.program.build(context_.device.device, flags_.c_str());
    } catch (const cl::Error& error) {
      log = build_log(job.program);
      dump(job, source, log);
      throw Error(ErrorCode::device_failed, "building kernel " + job.instantiation.kernel_name +
                                                " on " + context_.device.info.name + " failed (" +
                                                error_name(error.err()) + "): " + log);
    }
    dump(job, source, sources_dumps_dir_.empty() ? "" : build_log(job.program));
    if (cache_ && !abandoned) store(job, key);
  }

 private:
  std::string build_log(const cl::Program& program) const {
    try {
      return program.getBuildInfo<CL_PROGRAM_BUILD_LOG>(context_.device.device);
    } catch (const cl::Error&) {
      return "";
    }
  }

  // A binary that the driver refuses (another build of it under the same version text) is as good
  // as none.
  bool from_cache(Job& job, const std::string& key) const {
    const auto binary = cache_->load(key);
    if (!binary) return false;
    try {
      job.program =
          cl::Program(context_.context, {context_.device.device}, cl::Program::Binaries{*binary});
      job.program.build(context_.device.device, flags_.c_str());
      cl::Kernel(job.program, job.instantiation.kernel_name.c_str());
      job.cached = true;
      return true;
    } catch (const cl::Error&) {
      return false;
    }
  }

  // PoCL 5.0 aborts the process when it is asked for a binary while another thread runs the same
  // kernel, as elements that start together do, and 6.0 when the program has inline assembly. What
  // they keep themselves saves most of the time to build it again.
  bool has_binary(const Job& job) const {
    const int version = pocl_version(context_.device);
    const auto defines = [&](const char* name) {
      return job.instantiation.text.find(std::string("#define ") + name) != std::string::npos;
    };
    return version < 4 || (version != 5 && !defines("DOT_AVX") && !defines("DOT_PAIRS"));
  }

  void store(const Job& job, const std::string& key) const {
    if (!has_binary(job)) return;
    try {
      const auto binaries = job.program.getInfo<CL_PROGRAM_BINARIES>();
      if (!binaries.empty() && !binaries[0].empty()) cache_->store(key, binaries[0]);
    } catch (const cl::Error&) {
      // Some drivers give no binaries; then there is nothing to keep.
    }
  }

  void dump(const Job& job, const std::string& source, const std::string& log) const {
    if (sources_dumps_dir_.empty()) return;
    std::error_code error;
    std::filesystem::create_directories(sources_dumps_dir_, error);
    std::ofstream out(sources_dumps_dir_ + "/clDNN_program_" + job.instantiation.kernel_name +
                      ".cl");
    out << source << "\n/* Build Log:\n" << log << "\n*/\n";
  }

  const std::shared_ptr<const Context> held_;
  const Context& context_;
  const std::optional<ProgramCache> cache_;
  const std::string sources_dumps_dir_, flags_;
  std::string identity_;
};

// What all kernels of a program share stands before the first of them, so none may undefine it.
void refuse_common_names(const KernelSpec& spec, const std::set<std::string>& macros) {
  static const std::set<std::string> common = [] {
    std::set<std::string> names;
    collect_macros(common_text(), names);
    return names;
  }();
  for (const std::string& name : macros)
    if (common.count(name) != 0)
      throw std::logic_error(spec.source + " defines " + name + " of kernels/common");
}

// The defines and the prologue of a spec, the source, and #undefs.
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

}  // namespace

std::string program_source(const Instantiation& instantiation) {
  static const std::string common = common_text();
  return common + instantiation.text;
}

std::string compiler_options(const DeviceTraits& traits) {
  return language_option(traits) + " " + kOptions + (traits.fp16 ? " -DUSE_HALF" : "") +
         (traits.is_cpu ? " -DON_CPU" : "");
}

Instantiation instantiate(const KernelSpec& spec) {
  return instance(spec, std::string(kernel_source(spec.source)));
}

Instantiation instantiate_function(const KernelSpec& spec, const std::string& caller) {
  static const std::string kKernel = "\nKERNEL(", kFunction = "\nPK_FUNCTION ";
  std::string source(kernel_source(spec.source));
  for (size_t at; (at = source.find(kKernel)) != std::string::npos;)
    source.replace(at, kKernel.size(), kFunction);
  return instance(spec, source + caller);
}

struct ProgramBuilder::State {
  State(const Context& context, const BuildOptions& options)
      : builder(context, options),
        device_id(context.device.info.id),
        processes(options.processes ? *options.processes : compiler_processes(context)),
        most_threads(threads_for(context, options)) {}

  // PoCL compiles one program at a time: others would only wait for its lock, also at exit. Two at
  // a time are one too many for oclgrind, which has no such lock.
  unsigned threads_for(const Context& context, const BuildOptions& options) const {
    if (processes.most > 0)
      return options.threads ? std::min(options.threads, processes.most) : processes.most;
    if (options.threads) return options.threads;
    return context.traits.vendor == Vendor::pocl || context.device.info.platform == "Oclgrind"
               ? 1
               : std::max(1u, std::thread::hardware_concurrency());
  }

  // The job of an instantiation, with a thread that will come to it. Under the mutex.
  std::shared_ptr<Job> job_of(const Instantiation& instantiation,
                              const std::shared_ptr<State>& self) {
    auto& job = jobs[instantiation.kernel_name];
    if (job) return job;
    job = std::make_shared<Job>();
    job->instantiation = instantiation;
    queue.push_back(job);
    const size_t worth_it = processes.most > 0 ? kWorthAProcess * threads : 0;
    if (threads < most_threads && queue.size() > worth_it) {
      ++threads;
      Compiling::start([self] { self->work(); });
    }
    return job;
  }

  // A thread's process, from its first program that is not cached until it ends.
  class Process {
   public:
    explicit Process(State& state) : state_(state) {}
    ~Process() {  // with the mutex held
      if (!process_) return;
      state_.busy.erase(process_.get());
      state_.idle.push_back(std::move(process_));
    }
    void compile(const std::string& options, const std::string& source) {
      if (state_.processes.most == 0) return;
      if (!process_) take();
      process_->compile(options, source);
    }

   private:
    void take() {
      const std::lock_guard lock(state_.mutex);
      if (state_.idle.empty()) {
        process_ = std::make_unique<CompilerProcess>(state_.processes.program, state_.device_id);
      } else {
        process_ = std::move(state_.idle.back());
        state_.idle.pop_back();
      }
      state_.busy.insert(process_.get());
      if (state_.abandoned) process_->stop();
    }
    State& state_;
    std::unique_ptr<CompilerProcess> process_;
  };

  // A thread's life: until there is nothing to do.
  void work() {
    std::unique_lock lock(mutex);
    Process process(*this);
    while (!queue.empty()) {
      const std::shared_ptr<Job> job = queue.front();
      queue.pop_front();
      if (job->begun) continue;
      job->begun = true;
      lock.unlock();
      try {
        builder.run(*job, abandoned, [&](const std::string& options, const std::string& source) {
          process.compile(options, source);
        });
      } catch (const cl::Error& error) {
        try {
          rethrow(error, "building kernel " + job->instantiation.kernel_name);
        } catch (...) {
          job->error = std::current_exception();
        }
      } catch (...) {
        job->error = std::current_exception();
      }
      Compiling::wait_at_exit();
      lock.lock();
      job->done = true;
      changed.notify_all();
    }
    --threads;
  }

  const Builder builder;
  const std::string device_id;
  const CompilerProcesses processes;
  const unsigned most_threads;
  std::atomic<bool> abandoned{false};  // nobody wants results any more
  std::mutex mutex;                    // guards what follows
  std::condition_variable changed;
  std::map<std::string, std::shared_ptr<Job>> jobs;  // by kernel name
  std::deque<std::shared_ptr<Job>> queue;
  unsigned threads = 0;
  std::set<CompilerProcess*> busy;  // threads have them
  std::vector<std::unique_ptr<CompilerProcess>> idle;
};

ProgramBuilder::ProgramBuilder(const Context& context, const BuildOptions& options)
    : state_(std::make_shared<State>(context, options)) {}

ProgramBuilder::~ProgramBuilder() {
  state_->abandoned = true;
  const std::lock_guard lock(state_->mutex);
  state_->queue.clear();
  // Programs go now, not when a thread ends: oclgrind counts who uses them without atomics.
  state_->jobs.clear();
  for (CompilerProcess* process : state_->busy) process->stop();
}

void ProgramBuilder::want(const Instantiation& instantiation) {
  const std::lock_guard lock(state_->mutex);
  state_->job_of(instantiation, state_);
}

ProgramBuilder::Built ProgramBuilder::get(const Instantiation& instantiation,
                                          const std::function<bool()>& go_on) {
  std::unique_lock lock(state_->mutex);
  const std::shared_ptr<Job> job = state_->job_of(instantiation, state_);
  if (!job->begun) state_->queue.push_front(job);  // its old place is passed over
  while (!job->done) {
    lock.unlock();
    if (!go_on()) throw Error(ErrorCode::cancelled, "building the kernels was cancelled");
    lock.lock();
    state_->changed.wait_for(lock, kPoll, [&] { return job->done; });
  }
  if (job->error) std::rethrow_exception(job->error);
  return {job->program, job->cached};
}

std::shared_ptr<const Programs> Programs::build(const Context& context,
                                                std::span<const Instantiation> instantiations,
                                                const BuildOptions& options) {
  std::map<std::string, const Instantiation&> wanted;
  auto result = std::make_shared<Programs>();
  for (const Instantiation& instantiation : instantiations) {
    if (options.known != nullptr) {
      const auto known = options.known->by_kernel_.find(instantiation.kernel_name);
      if (known != options.known->by_kernel_.end()) {
        result->by_kernel_.insert(*known);
        continue;
      }
    }
    wanted.try_emplace(instantiation.kernel_name, instantiation);
  }
  BuildOptions suitable = options;
  if (wanted.size() <= kWorthAProcess) suitable.processes = CompilerProcesses{};
  ProgramBuilder builder(context, suitable);
  for (const auto& [name, instantiation] : wanted) builder.want(instantiation);
  const auto go_on = [&] {
    return !options.progress ||
           options.progress("building kernels", result->counts_.cached + result->counts_.built,
                            wanted.size());
  };
  for (const auto& [name, instantiation] : wanted) {
    const ProgramBuilder::Built built = builder.get(instantiation, go_on);
    result->by_kernel_[name] = built.program;
    (built.cached ? result->counts_.cached : result->counts_.built)++;
    if (!go_on()) throw Error(ErrorCode::cancelled, "building the kernels was cancelled");
  }
  return result;
}

cl::Kernel Programs::kernel(const std::string& kernel_name) const {
  const auto found = by_kernel_.find(kernel_name);
  if (found == by_kernel_.end())
    throw Error(ErrorCode::device_failed, "kernel " + kernel_name + " was not built");
  try {
    return cl::Kernel(found->second, kernel_name.c_str());
  } catch (const cl::Error& error) {
    rethrow(error, "creating kernel " + kernel_name);
  }
}

}  // namespace clinfer::ocl
