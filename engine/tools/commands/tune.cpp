// clinfer tune: measures the kernels of a model on a device, keeps the best in a tuning file, and
// prints the gain.
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>

#include "engine/compile/model_compiler.h"
#include "engine/measure/ab_comparison.h"
#include "engine/measure/noise.h"
#include "engine/measure/tuning.h"
#include "engine/tools/commands.h"
#include "engine/tools/commands/tune_pipeline.h"
#include "engine/tools/output/progress.h"
#include "engine/tools/output/report.h"
#include "engine/tools/output/text.h"
#include "kernels/base/text.h"

namespace clinfer {

namespace {

using Clock = std::chrono::steady_clock;

constexpr auto kRedraw = std::chrono::milliseconds(200);  // of the bar, on a terminal
constexpr auto kLine = std::chrono::seconds(5);           // between lines elsewhere
constexpr double kCompareSeconds = 4;

std::string duration(double seconds) {
  char text[32];
  if (seconds < 60)
    std::snprintf(text, sizeof text, "%.0f s", seconds);
  else
    std::snprintf(text, sizeof text, "%d min %02d s", static_cast<int>(seconds) / 60,
                  static_cast<int>(seconds) % 60);
  return text;
}

// Shortens a layer's name for a table.
std::string cell(const std::string& layer) {
  constexpr size_t kWidth = 40;
  return safe_line(utf8_prefix(layer, kWidth));
}

// Shows a bar on a terminal, or a line now and then elsewhere. Writes to stderr, since stdout is
// for results.
class ProgressBar {
 public:
  bool operator()(const TuningStatus& status) {
    if (interrupted()) return false;
    if (Clock::now() - drawn_ < (terminal_ ? Clock::duration(kRedraw) : Clock::duration(kLine)))
      return true;
    drawn_ = Clock::now();
    std::string bar;
    if (terminal_) {
      constexpr size_t kWidth = 24;
      const size_t filled = kWidth * status.index / std::max<size_t>(status.layers, 1);
      bar = "[" + std::string(filled, '#') + std::string(kWidth - filled, '.') + "] ";
    }
    char text[160] = "";
    if (status.best_ns > 0)
      std::snprintf(text, sizeof text, "%zu points, best %.2f x default", status.tried,
                    status.default_ns / status.best_ns);
    std::fprintf(stderr, "%s%s", terminal_ ? "\r\033[K" : "", bar.c_str());
    if (status.index < status.layers)
      std::fprintf(stderr, "layer %zu of %zu %s: %s; %s", status.index + 1, status.layers,
                   cell(status.layer).c_str(), *text ? text : "building",
                   duration(status.seconds).c_str());
    else
      std::fprintf(stderr, "the whole network, tuned and untuned by turns; %s",
                   duration(status.seconds).c_str());
    if (status.seconds_left > 0)
      std::fprintf(stderr, ", about %s left", duration(status.seconds_left).c_str());
    if (!terminal_) std::fprintf(stderr, "\n");
    std::fflush(stderr);
    return true;
  }
  void clear() const {
    if (terminal_) std::fprintf(stderr, "\r\033[K");
  }

 private:
  const bool terminal_ = isatty(STDERR_FILENO) != 0;
  Clock::time_point drawn_ = Clock::now();
};

// Compares with two requests for each stream in flight, the default for users.
ABComparison compare(CompiledModel& untuned, CompiledModel& tuned) {
  Requests requests[2];
  for (const auto& [compiled, of] : {std::pair{&untuned, &requests[0]}, {&tuned, &requests[1]}})
    for (unsigned i = 0; i < 2 * compiled->streams(); ++i) {
      of->push_back(compiled->create_request());
      set_noise(*of->back(), compiled->inputs());
    }
  return compare_alternately(requests[0], requests[1], kCompareSeconds,
                             [] { return !interrupted(); });
}

void print_table(const TuningReport& report) {
  size_t width = 5;
  for (const LayerTuning& layer : report.layers) width = std::max(width, cell(layer.layer).size());
  const int w = static_cast<int>(width);
  std::printf("%-*s  %-8s  %10s  %10s  %5s  %6s  %s\n", w, "layer", "from", "default us", "best us",
              "gain", "points", "kernel");
  for (const LayerTuning& layer : report.layers)
    std::printf("%-*s  %-8s  %10.1f  %10.1f  %5.2f  %6zu  %s\n", w, cell(layer.layer).c_str(),
                name_of(layer.source).c_str(), layer.default_ns / 1e3, layer.ns / 1e3,
                layer.ns > 0 ? layer.default_ns / layer.ns : 1.0, layer.tried,
                layer.kernel.c_str());
  for (const LayerTuning& layer : report.layers) {
    if (!layer.lapsed.empty())
      std::printf("lapsed: %s\n", safe_line(layer.layer + ": " + layer.lapsed).c_str());
    for (const std::string& failed : layer.failed)
      std::printf("failed: %s\n", safe_line(layer.layer + ": " + failed).c_str());
  }
  std::printf("%zu layers measured in %s, %zu records from %s, %zu lapsed\n", report.measured,
              duration(report.seconds).c_str(), report.hits, report.file.c_str(), report.lapsed);
  if (report.taken_back > 0)
    std::printf(
        "%zu layers are untuned again: faster alone, their kernels made the network slower\n",
        report.taken_back);
}

std::string json_of(const LayerTuning& layer) {
  return json_object({{"layer", json_quoted(layer.layer)},
                      {"type", json_quoted(layer.type)},
                      {"from", json_quoted(name_of(layer.source))},
                      {"default_us", json_number(layer.default_ns / 1e3)},
                      {"best_us", json_number(layer.ns / 1e3)},
                      {"points", std::to_string(layer.tried)},
                      {"default_kernel", json_quoted(layer.default_kernel)},
                      {"kernel", json_quoted(layer.kernel)},
                      {"lapsed", json_quoted(layer.lapsed)},
                      {"failed", json_strings(layer.failed)}});
}

// Returns the report as JSON. `pipeline` is the choice of streams as JSON, or null.
std::string json_of(const CompiledModel& tuned, const std::string& model, const ABComparison& all,
                    const std::string& pipeline) {
  const TuningReport& report = tuned.tuning();
  std::vector<std::string> layers;
  for (const LayerTuning& layer : report.layers) layers.push_back(json_of(layer));
  return json_object({{"model", json_quoted(model)},
                      {"device", json_quoted(tuned.device().name)},
                      {"file", json_quoted(report.file)},
                      {"measured", std::to_string(report.measured)},
                      {"seconds", json_number(report.seconds)},
                      {"records", std::to_string(report.hits)},
                      {"lapsed", std::to_string(report.lapsed)},
                      {"taken_back", std::to_string(report.taken_back)},
                      {"untuned_ms", json_number(all.first_ms)},
                      {"tuned_ms", json_number(all.second_ms)},
                      {"gain", json_number(all.gain)},
                      {"gain_quartiles", json_array({json_number(all.low), json_number(all.high)})},
                      {"rounds", std::to_string(all.rounds)},
                      {"pipeline", pipeline},
                      {"layers", json_array(layers)}});
}

// Reports which of the model's problems have a record for the device, and their share of the work.
void check(const Arguments& arguments, Config config) {
  if (const auto file = arguments.value("--tuning-file")) {
    config.tuning_file = *file;
    config.tuning_mode = TuningMode::use_existing;
  }
  size_t problems = 0, with_record = 0, counted = 0;
  double all = 0, covered = 0;
  std::vector<ProblemRecord> records = find_records(read_model(arguments), config);
  for (const ProblemRecord& record : records) all += record.multiply_adds;
  const bool json = arguments.has("--json");
  std::vector<std::string> lines;
  if (!json) std::printf("%-8s  %6s  %6s  %s\n", "from", "layers", "work %", "kernel: problem");
  for (const ProblemRecord& record : records) {
    const bool hit = record.source != LayerTuning::Source::untuned;
    const double share = all > 0 ? record.multiply_adds / all : 0;
    if (json)
      lines.push_back(json_object({{"from", json_quoted(name_of(record.source))},
                                   {"layers", std::to_string(record.layers)},
                                   {"work_share", json_number(share)},
                                   {"kernel", json_quoted(record.kernel)},
                                   {"problem", json_quoted(record.op)}}));
    else
      std::printf("%-8s  %6zu  %6.1f  %s: %s\n", name_of(record.source).c_str(), record.layers,
                  100 * share, record.kernel.c_str(), record.op.c_str());
    ++problems;
    with_record += hit;
    counted += record.layers;
    if (hit) covered += record.multiply_adds;
  }
  if (json) {
    std::printf("%s\n", json_object({{"model", json_quoted(arguments.positional(0))},
                                     {"problems", std::to_string(problems)},
                                     {"with_record", std::to_string(with_record)},
                                     {"layers", std::to_string(counted)},
                                     {"work_covered", json_number(all > 0 ? covered / all : 0)},
                                     {"records", json_array(lines)}})
                            .c_str());
    return;
  }
  std::printf("records for %zu of %zu problems of %zu layers, with %.1f %% of the multiply-adds\n",
              with_record, problems, counted, all > 0 ? 100 * covered / all : 0);
}

void run(const Arguments& arguments) {
  Config config = read_config(arguments);
  if (arguments.has("--check")) return check(arguments, std::move(config));
  const auto file = arguments.value("--tuning-file");
  if (!file || file->empty())
    throw Error(ErrorCode::bad_argument,
                "--tuning-file F is needed: where to keep what is measured");
  config.tuning_file = *file;
  config.tuning_mode = arguments.has("--retune") ? TuningMode::retune : TuningMode::create;
  config.tuning_seconds = arguments.seconds("--seconds", 0);
  config.tuning_exhaustive = arguments.has("--exhaustive");
  if (config.batch == kAutoBatch)
    throw Error(ErrorCode::bad_argument,
                "--batch 0 (AUTO) is what tuning finds: give a number, or none");

  const auto model = read_model(arguments);
  catch_interrupts();
  ProgressBar bar;
  const Progress unless_interrupted = [](const std::string&, size_t, size_t) {
    return !interrupted();
  };
  const auto tuned = compile_model(model, config, unless_interrupted, std::ref(bar));
  bar.clear();
  say_warnings(*tuned);
  const bool json = arguments.has("--json");
  if (!json) print_table(tuned->tuning());

  Config plain = config;
  plain.tuning_mode = TuningMode::disabled;
  plain.tuning_db = false;
  const auto untuned = compile_model(model, plain, unless_interrupted);
  const ABComparison all = compare(*untuned, *tuned);
  if (all.rounds == 0)
    throw Error(ErrorCode::cancelled,
                "stopped before the whole network was compared; what was measured is in " + *file);
  if (!json)
    std::printf(
        "whole network on %s: untuned %.3f ms, tuned %.3f ms, gain %.3f (quartiles %.3f to %.3f of "
        "%zu rounds by turns)\n",
        tuned->device().name.c_str(), all.first_ms, all.second_ms, all.gain, all.low, all.high,
        all.rounds);
  std::string pipeline = "null";
  if (arguments.has("--pipeline")) {
    const PipelineChoice best = tune_pipeline(
        model, config, arguments.has("--batch") ? config.batch : 0, [] { return !interrupted(); },
        json ? stderr : stdout);
    pipeline = json_object({{"streams", std::to_string(best.streams)},
                            {"requests", std::to_string(best.requests)},
                            {"batch", std::to_string(best.batch)},
                            {"images_per_second", json_number(best.images_per_second)}});
  }
  const std::string all_json = json_of(*tuned, model->path(), all, pipeline);
  if (json) std::printf("%s\n", all_json.c_str());
  if (const auto report = arguments.value("--report")) write_report(*report, "tune", all_json);
}

}  // namespace

Command tune_command() {
  return {{"tune",
           "measure the kernels of a model on a device and keep the best in a file",
           {"MODEL"},
           {{"--tuning-file", "F", "JSON file; made, or extended by what it lacks"},
            device_option(),
            reshape_option(),
            {"--seconds", "S", "about how long to measure (until the search is through)"},
            {"--batch", "N", "images per inference; what the model states unless given"},
            {"--check", "",
             "instead of measuring, say which problems have a record, in the file or shipped"},
            {"--pipeline", "", "also find the best streams, requests and batch; AUTO uses them"},
            {"--retune", "", "measure everything anew, whatever the file says"},
            {"--exhaustive", "",
             "measure every point of every kernel that can win instead of searching"},
            {"--report", "F.html", "write a page: layers and network, tuned against untuned"},
            {"--json", "", "one line of JSON at the end instead of text"},
            config_option()}},
          run};
}

}  // namespace clinfer
