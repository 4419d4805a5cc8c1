// Finds, starts and shares the processes that compile.
#include "engine/ocl/compiler/compiler_pool.h"

#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string_view>

#include "engine/ocl/compiler/compiler_path.h"
#include "engine/ocl/compiler/compiling.h"
#include "kernels/base/log.h"
#include "kernels/base/system/paths.h"
#include "kernels/base/system/processors.h"

namespace clinfer::ocl {

namespace fs = std::filesystem;

namespace {

std::atomic<bool> leaving{false};  // true when the process ends

struct Pools {
  std::mutex mutex;
  std::map<std::string, std::weak_ptr<CompilerPool>> by_device;
  std::map<std::string, std::string>
      useless;  // programs that never worked, and why, so that each is waited for once only
};

Pools& pools() {
  static Pools* const all = new Pools;  // never destroyed, because threads may outlive statics
  return *all;
}

constexpr unsigned kMostProcesses = 16;

// Returns how many processes are useful. Oclgrind gets none, because it has to observe everything.
unsigned worth_having(const Context& context) {
  const unsigned cores = available_processors();
  if (context.device.info.platform == "Oclgrind") return 0;
  if (context.traits.vendor != Vendor::nvidia) return std::min(cores, kMostProcesses);
  // NVIDIA's driver keeps everything that it has built on disk, for all processes of the user, so
  // that a program built by another process is there in milliseconds.
  const char* off = std::getenv("CUDA_CACHE_DISABLE");
  if (off != nullptr && std::string_view(off) == "1") return 0;
  // Each process has a context of some hundred MiB; all together may use an eighth of the memory.
  constexpr uint64_t kMemory = uint64_t{512} << 20;
  const auto fit = static_cast<unsigned>(context.device.info.memory / 8 / kMemory);
  return std::clamp(fit, 1u, cores);
}

// NVIDIA's driver makes contexts one after the other, in 0.15 s each: of many processes that start
// together none compiles before all contexts exist. With this limit the first ones begin, and take
// work from those that start later.
constexpr unsigned kMostStartingOfNvidia = 2;

}  // namespace

std::string find_compiler() {
  std::error_code error;
  const fs::path self = fs::read_symlink("/proc/self/exe", error);
  Dl_info here{};
  fs::path code = self;  // or the library that contains this code
  if (dladdr(reinterpret_cast<const void*>(&find_compiler), &here) != 0) {
    const fs::path file = fs::weakly_canonical(here.dli_fname, error);
    if (!error && fs::exists(file, error)) code = file;
  }
  const fs::path folder = code.parent_path();
  const fs::path candidates[] = {
      folder / kCompilerFromLibrary,
      folder / "tools/clinfer-compiler",            // for the library in a build folder
      folder / "../engine/tools/clinfer-compiler",  // for a test in a build folder
  };
  std::string looked_at;
  for (const fs::path& candidate : candidates) {
    const fs::path program = candidate.lexically_normal();
    std::string why = access(program.c_str(), X_OK) != 0 ? "" : who_else_replaces(program, code);
    if (access(program.c_str(), X_OK) == 0 && why.empty() && program != self) return program;
    if (!why.empty()) why = ", which is not started: " + why;
    looked_at += (looked_at.empty() ? "" : "; ") + program.string() + why;
  }
  throw Error(ErrorCode::not_found,
              "the program clinfer-compiler was not found (looked at " + looked_at + ")");
}

std::shared_ptr<CompilerPool> CompilerPool::of(const Context& context) {
  const std::lock_guard lock(pools().mutex);
  std::weak_ptr<CompilerPool>& known = pools().by_device[context.device.info.id];
  if (auto pool = known.lock()) return pool;
  unsigned most = worth_having(context);
  std::string program, problem;
  try {
    if (most > 0) program = find_compiler();
    if (const auto found = pools().useless.find(program); found != pools().useless.end()) {
      problem = found->second;
      most = 0;
    }
  } catch (const Error& error) {
    problem = error.what();
    most = 0;
  }
  auto made = std::make_shared<CompilerPool>(
      context.device.info, program, most,
      context.traits.vendor == Vendor::nvidia ? kMostStartingOfNvidia : most);
  made->none_ = problem;
  known = made;
  return made;
}

CompilerPool::CompilerPool(const DeviceInfo& device, std::string program, unsigned most,
                           unsigned most_starting)
    : device_(device), program_(std::move(program)), most_(most), most_starting_(most_starting) {}

CompilerPool::~CompilerPool() {
  if (idle_.empty()) return;
  for (const auto& process : idle_) process->stop();
  // Ends the processes on another thread: NVIDIA's driver takes 70 ms for each, for which the
  // compiled model need not wait.
  try {
    start_compiling([gone = std::make_shared<decltype(idle_)>(std::move(idle_))] {});
  } catch (const std::bad_alloc&) {
    // If there is no memory for that, the pool waits for them here.
  }
}

std::unique_ptr<CompilerProcess> CompilerPool::take(const void* owner,
                                                    const std::atomic<bool>& abandoned,
                                                    size_t length) {
  std::unique_lock lock(mutex_);
  const auto place = waiting_.insert(length);
  changed_.wait(lock, [&] {
    if (abandoned || leaving || allowed_ == 0) return true;
    const bool can_start = starting_ < most_starting_ && busy_.size() < allowed_;
    const bool can_use = !idle_.empty() && busy_.size() < allowed_;
    return place == waiting_.begin() && (can_use || can_start);
  });
  waiting_.erase(place);
  changed_.notify_all();  // another waiter is the first now
  if (abandoned || leaving || allowed_ == 0) return nullptr;
  std::unique_ptr<CompilerProcess> process;
  const bool starts = idle_.empty();
  if (starts) {
    process = std::make_unique<CompilerProcess>(program_, device_);
  } else {
    process = std::move(idle_.back());
    idle_.pop_back();
  }
  idle_.reserve(most_);  // so that giving back a process needs no memory
  busy_[process.get()] = owner;
  if (!starts) return process;
  ++starting_;
  lock.unlock();
  const auto started = [&] {
    lock.lock();
    --starting_;
    lock.unlock();
    changed_.notify_all();
  };
  try {
    process->wait_until_ready();
  } catch (...) {
    started();
    give_back(std::move(process), false);
    throw;
  }
  started();
  return process;
}

void CompilerPool::give_back(std::unique_ptr<CompilerProcess> process, bool works) {
  {
    const std::lock_guard lock(mutex_);
    busy_.erase(process.get());
    // abandon() may have stopped the process after its last answer.
    if (works && !process->is_stopped()) idle_.push_back(std::move(process));
  }
  changed_.notify_all();
}

CompileAnswer CompilerPool::compile(const CompileRequest& request, const void* owner,
                                    const std::atomic<bool>& abandoned) {
  using Outcome = CompileAnswer::Outcome;
  CompileRequest now = request;
  for (int crashes = 0;;) {
    unsigned allowed = 0;
    {
      const std::lock_guard lock(mutex_);
      if (allowed_ == 0) return {Outcome::none, none_, {}};
      allowed = allowed_;
    }
    std::unique_ptr<CompilerProcess> process = take(owner, abandoned, now.source.size());
    if (!process && (abandoned || leaving)) return {Outcome::stopped, "", {}};
    if (!process) continue;
    CompileAnswer answer;
    try {
      answer = process->compile(now);
    } catch (...) {
      give_back(std::move(process), false);
      throw;
    }
    const bool works = answer.outcome == Outcome::built || answer.outcome == Outcome::refused;
    if (works) any_worked_ = true;
    give_back(std::move(process), works);
    if (works || answer.outcome == Outcome::stopped) return answer;
    log(LogArea::programs, LogLevel::warning,
        [&] { return "a compiler process failed: " + answer.text; });
    if (answer.outcome == Outcome::crashed) {
      if (++crashes == 2) return answer;
      now.launches.clear();
      now.wants_binary = false;
    } else if (!go_on_with_fewer(answer, allowed)) {
      return answer;
    }
  }
}

bool CompilerPool::go_on_with_fewer(const CompileAnswer& failed, unsigned allowed) {
  using Outcome = CompileAnswer::Outcome;
  {
    const std::lock_guard lock(mutex_);
    // Reduces the number once for several processes that failed together.
    if (allowed != allowed_) return true;
    // If some processes cannot start while others work, the number of those is the limit.
    const bool others_can = any_worked_ || failed.outcome == Outcome::limited;
    const auto others = others_can ? static_cast<unsigned>(busy_.size() + idle_.size()) : 0;
    const unsigned fewer =
        failed.outcome == Outcome::lost ? allowed_ / 2 : std::min(others, allowed_ - 1);
    if (fewer == 0 && failed.outcome == Outcome::limited) return false;
    allowed_ = fewer;
    (fewer == 0 ? none_ : fewer_) = failed.text;
  }
  if (failed.outcome == Outcome::none && !any_worked_) {
    const std::lock_guard all(pools().mutex);
    pools().useless[program_] = failed.text;
  }
  changed_.notify_all();
  return true;
}

void CompilerPool::abandon(const void* owner) {
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [process, whose] : busy_)
      if (whose == owner) process->stop();
  }
  changed_.notify_all();
}

void CompilerPool::stop_all() {
  leaving = true;
  const std::lock_guard all(pools().mutex);
  for (const auto& [device, weak] : pools().by_device) {
    const std::shared_ptr<CompilerPool> pool = weak.lock();
    if (!pool) continue;
    {
      const std::lock_guard lock(pool->mutex_);
      for (const auto& [process, whose] : pool->busy_) process->stop();
    }
    pool->changed_.notify_all();
  }
}

bool CompilerPool::has_problem() {
  const std::lock_guard lock(mutex_);
  return !none_.empty();
}

std::string CompilerPool::take_problem() {
  static std::atomic<bool> said_none{false}, said_fewer{false};
  const std::lock_guard lock(mutex_);
  if (!none_.empty() && !said_none.exchange(true))
    return "kernels are compiled in the application's own process, one at a time, and whoever "
           "leaves meanwhile waits for them: " +
           none_;
  if (none_.empty() && !fewer_.empty() && !said_fewer.exchange(true))
    return "kernels are compiled by " + std::to_string(allowed_) + " of " + std::to_string(most_) +
           " processes: " + fewer_;
  return "";
}

}  // namespace clinfer::ocl
