// Assembles, builds and caches OpenCL programs.
#include "engine/ocl/programs.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <set>
#include <sstream>
#include <thread>

namespace clinfer::ocl {

namespace {

// Raised when generated code or its conventions change in a way the sources do not show.
constexpr const char* kEngineVersion = "clinfer 1";
constexpr const char* kOptions = "-cl-mad-enable -cl-no-signed-zeros";

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
};

class Builder {
 public:
  Builder(const Context& context, const BuildOptions& options)
      : context_(context), options_(options), flags_(compiler_options(context.traits)) {
    const DeviceInfo& info = context.device.info;
    identity_ = std::string(kEngineVersion) + "|" + info.platform + "|" + info.name + "|" +
                info.driver + "|" + info.version + "|" + flags_ + "\n";
  }

  void run(Job& job) const {
    const std::string source = program_source(job.instantiation);
    const std::string key = identity_ + source;
    if (options_.cache && from_cache(job, key)) return;
    job.program = cl::Program(context_.context, source);
    std::string log;
    try {
      job.program.build(context_.device.device, flags_.c_str());
    } catch (const cl::Error& error) {
      log = build_log(job.program);
      dump(job, source, log);
      throw Error(ErrorCode::device_failed, "building kernel " + job.instantiation.kernel_name +
                                                " on " + context_.device.info.name + " failed (" +
                                                error_name(error.err()) + "):\n" + log);
    }
    dump(job, source, options_.sources_dumps_dir.empty() ? "" : build_log(job.program));
    if (options_.cache) store(job, key);
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
    const auto binary = options_.cache->load(key);
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

  void store(const Job& job, const std::string& key) const {
    try {
      const auto binaries = job.program.getInfo<CL_PROGRAM_BINARIES>();
      if (!binaries.empty() && !binaries[0].empty()) options_.cache->store(key, binaries[0]);
    } catch (const cl::Error&) {
      // Some drivers give no binaries; then there is nothing to keep.
    }
  }

  void dump(const Job& job, const std::string& source, const std::string& log) const {
    if (options_.sources_dumps_dir.empty()) return;
    std::error_code error;
    std::filesystem::create_directories(options_.sources_dumps_dir, error);
    std::ofstream out(options_.sources_dumps_dir + "/clDNN_program_" +
                      job.instantiation.kernel_name + ".cl");
    out << source << "\n/* Build Log:\n" << log << "\n*/\n";
  }

  const Context& context_;
  const BuildOptions& options_;
  std::string flags_, identity_;
};

}  // namespace

std::string program_source(const Instantiation& instantiation) {
  static const std::string common = common_text();
  return common + instantiation.text;
}

std::string compiler_options(const DeviceTraits& traits) {
  return language_option(traits) + " " + kOptions + (traits.fp16 ? " -DUSE_HALF" : "");
}

Instantiation instantiate(const KernelSpec& spec) {
  const std::string_view source = kernel_source(spec.source);
  std::string body;
  std::set<std::string> macros{"KERNEL_NAME"};
  for (const auto& [name, value] : spec.defines) {
    body += "#define " + name + " " + value + "\n";
    macros.insert(name.substr(0, name.find('(')));
  }
  collect_macros(spec.prologue, macros);
  collect_macros(source, macros);
  body += spec.prologue + "\n#line 1 \"" + spec.source + "\"\n" + std::string(source) + "\n";
  const std::string stem = spec.source.substr(0, spec.source.find('.'));
  Instantiation result;
  result.kernel_name = stem + "_" + hex(fnv1a(body));
  result.text = "#define KERNEL_NAME " + result.kernel_name + "\n" + body;
  for (const std::string& name : macros) result.text += "#undef " + name + "\n";
  return result;
}

std::shared_ptr<const Programs> Programs::build(const Context& context,
                                                std::span<const KernelSpec* const> specs,
                                                const BuildOptions& options) {
  std::map<std::string, Job> jobs;
  for (const KernelSpec* spec : specs) {
    Instantiation instantiation = instantiate(*spec);
    jobs.try_emplace(instantiation.kernel_name, Job{instantiation, {}, false, nullptr});
  }
  std::vector<Job*> order;
  for (auto& [name, job] : jobs) order.push_back(&job);

  const Builder builder(context, options);
  std::atomic<size_t> next{0}, done{0};
  std::atomic<bool> stop{false};
  std::mutex progress_mutex;
  const auto work = [&] {
    for (size_t i; !stop && (i = next++) < order.size();) {
      try {
        builder.run(*order[i]);
      } catch (const cl::Error& error) {
        try {
          rethrow(error, "building kernel " + order[i]->instantiation.kernel_name);
        } catch (...) {
          order[i]->error = std::current_exception();
        }
        stop = true;
      } catch (...) {
        order[i]->error = std::current_exception();
        stop = true;
      }
      const size_t finished = ++done;
      if (options.progress) {
        const std::lock_guard lock(progress_mutex);
        if (!options.progress("building kernels", finished, order.size())) stop = true;
      }
    }
  };
  unsigned threads =
      options.threads ? options.threads : std::max(1u, std::thread::hardware_concurrency());
  threads = static_cast<unsigned>(std::min<size_t>(threads, order.size()));
  std::vector<std::thread> pool;
  for (unsigned i = 1; i < threads; ++i) pool.emplace_back(work);
  work();
  for (std::thread& thread : pool) thread.join();

  auto result = std::make_shared<Programs>();
  for (Job* job : order) {
    if (job->error) std::rethrow_exception(job->error);
    if (!job->program()) throw Error(ErrorCode::cancelled, "building the kernels was cancelled");
    (job->cached ? result->counts_.cached : result->counts_.built)++;
    result->by_kernel_[job->instantiation.kernel_name] = job->program;
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
