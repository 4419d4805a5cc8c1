// clinfer bench: measures load time, first inference, then latency and throughput of overlapping
// inferences, as applications have them.
#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <exception>
#include <iostream>
#include <mutex>
#include <optional>
#include <string_view>
#include <thread>
#include <utility>

#include "engine/compile/model_compiler.h"
#include "engine/measure/tuning.h"
#include "engine/tools/commands.h"
#include "engine/tools/measure/throughput.h"
#include "engine/tools/output/report.h"
#include "engine/tools/output/text.h"
#include "kernels/base/system/files.h"
#include "kernels/base/text.h"

namespace clinfer {

namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t kReportedLatencies = 20000;

double ms_between(Clock::time_point from, Clock::time_point to) {
  return std::chrono::duration<double, std::milli>(to - from).count();
}

void print_profile(std::vector<StepProfile> rows) {
  using Status = StepProfile::Status;
  for (StepProfile& row : rows)
    for (std::string* text : {&row.layer, &row.type, &row.kernel, &row.reason, &row.fused_into})
      *text = safe_line(*text);
  double total = 0;
  size_t layer_width = 5, type_width = 4, executed = 0, constants = 0;
  for (const StepProfile& row : rows) {
    total += row.device_us + row.host_us;
    layer_width = std::max(layer_width, std::min<size_t>(row.layer.size(), 40));
    type_width = std::max(type_width, std::min<size_t>(row.type.size(), 24));
    executed += row.status == Status::executed && row.type != "Transfer";
  }
  const auto cell = [](const std::string& text, size_t width) {
    return text.size() <= width ? text + std::string(width - text.size(), ' ')
                                : std::string(utf8_prefix(text, width - 3)) + "...";
  };
  std::printf("%s  %s  %-13s  %10s  %10s  %6s  %s\n", cell("layer", layer_width).c_str(),
              cell("type", type_width).c_str(), "status", "device us", "host us", "share",
              "kernel, or what it is part of");
  for (const StepProfile& row : rows) {
    if (row.status == Status::not_run && row.reason == "constant") {
      ++constants;
      continue;
    }
    std::printf("%s  %s  %-13s", cell(row.layer, layer_width).c_str(),
                cell(row.type, type_width).c_str(), name_of(row.status).c_str());
    if (row.status == Status::executed)
      std::printf("  %10.1f  %10.1f  %5.1f%%  %s\n", row.device_us, row.host_us,
                  total > 0 ? 100 * (row.device_us + row.host_us) / total : 0, row.kernel.c_str());
    else
      std::printf("  %10s  %10s  %6s  %s\n", "", "", "",
                  (row.fused_into.empty() ? row.reason : "in " + row.fused_into).c_str());
  }
  std::printf("%s  %s  %10.1f us in %zu steps\n", cell("total", layer_width).c_str(),
              cell("", type_width).c_str(), total, executed);
  if (constants > 0) std::printf("%zu constants are not listed\n", constants);
}

std::string json_of(const std::vector<StepProfile>& rows) {
  std::vector<std::string> layers;
  for (const StepProfile& row : rows)
    layers.push_back(json_object({{"layer", json_quoted(row.layer)},
                                  {"type", json_quoted(row.type)},
                                  {"status", json_quoted(name_of(row.status))},
                                  {"kernel", json_quoted(row.kernel)},
                                  {"fused_into", json_quoted(row.fused_into)},
                                  {"reason", json_quoted(row.reason)},
                                  {"device_us", json_number(row.device_us)},
                                  {"host_us", json_number(row.host_us)}}));
  return json_array(layers);
}

// Writes the columns of the GPU plug-in's report, with times in milliseconds, and the layer that
// each layer was fused into.
std::string csv_of(const std::vector<StepProfile>& rows) {
  std::string text =
      "layerName;execStatus;layerType;execType;realTime (ms);cpuTime (ms);fusedInto\n";
  const auto field = [](const std::string& value) {
    if (value.find_first_of(";\"\r\n") == std::string::npos) return value;
    std::string quoted = "\"";
    for (const char c : value) quoted += c == '"' ? "\"\"" : std::string(1, c);
    return quoted + "\"";
  };
  for (const StepProfile& row : rows) {
    char times[80];
    std::snprintf(times, sizeof times, "%.6f;%.6f;", (row.device_us + row.host_us) / 1e3,
                  row.host_us / 1e3);
    text += field(row.layer) + ";" + name_of(row.status) + ";" + field(row.type) + ";" +
            field(row.kernel.empty() ? row.reason : row.kernel) + ";" + times +
            field(row.fused_into) + "\n";
  }
  return text;
}

// One of several devices, with all parts of the network that it computes.
struct DeviceCount {
  std::string id, name;
  unsigned long long parts = 0, inferences = 0;
};

std::vector<DeviceCount> by_device(const std::vector<DeviceUse>& uses) {
  std::vector<DeviceCount> devices;
  for (const DeviceUse& use : uses) {
    auto known = std::find_if(devices.begin(), devices.end(),
                              [&](const DeviceCount& other) { return other.id == use.device.id; });
    if (known == devices.end()) known = devices.insert(known, {use.device.id, use.device.name});
    ++known->parts;
    known->inferences += use.inferences->load();
  }
  return devices;
}

void print_devices(const std::vector<DeviceUse>& uses) {
  if (uses.size() == 1) return;
  const std::vector<DeviceCount> devices = by_device(uses);
  for (const DeviceCount& device : devices) {
    std::printf("%s (%s): %llu inferences", device.id.c_str(), device.name.c_str(),
                device.inferences);
    if (uses.size() != devices.size()) std::printf(" of its %llu subgraphs", device.parts);
    std::printf("\n");
  }
}

std::string json_of(const std::vector<DeviceCount>& devices) {
  std::vector<std::string> all;
  for (const DeviceCount& device : devices)
    all.push_back(json_object({{"id", json_quoted(device.id)},
                               {"name", json_quoted(device.name)},
                               {"inferences", std::to_string(device.inferences)},
                               {"subgraphs", std::to_string(device.parts)}}));
  return json_array(all);
}

// Times the layers by inferences of a model of its own, so that counting them delays none of those
// that are measured.
template <typename FeedFor>
std::vector<StepProfile> timed_layers(const std::shared_ptr<const Model>& model, Config config,
                                      const FeedFor& feed_for) {
  constexpr int kInferences = 10;
  config.perf_count = true;
  const auto compiled = CompiledModel::compile(model, config);
  const auto request = compiled->create_request();
  Feed feed = feed_for(*compiled);
  feed.prepare(*request);
  for (int i = 0; i < kInferences; ++i) {
    feed.before_start(*request);
    request->start();
    request->wait();
  }
  return compiled->profile();
}

// Peaks of matrix products of halves in TFLOP/s, dense, as the vendor states them for the SXM
// cards.
constexpr std::pair<const char*, double> kPeaks[] = {{"H200", 989}, {"H100", 989}, {"A100", 312}};

// Returns the operations of the layers that have products, the rate that they were computed at, and
// the device's peak where it is known, as JSON; null for networks on several devices.
std::string work_of(const std::shared_ptr<const Model>& model, const Config& config,
                    const CompiledModel& compiled, const Measured& measured) {
  if (compiled.devices().size() != 1) return "null";
  double operations = 0;
  for (const ProblemRecord& record : find_records(model, config))
    operations += 2 * record.multiply_adds;
  operations /= static_cast<double>(batch_of(compiled));
  const bool halves = std::string_view(name_of(compiled.precision())) == "f16";
  std::string peak = "null";
  for (const auto& [name, tflops] : kPeaks)
    if (halves && compiled.device().name.find(name) != std::string::npos)
      peak = json_number(tflops);
  return json_object({{"operations_per_image", json_number(operations)},
                      {"tflops", json_number(operations * measured.images_per_second / 1e12)},
                      {"peak_tflops", peak}});
}

void run(const Arguments& arguments) {
  Config config = read_config(arguments);
  const auto csv = arguments.value("--perf-csv"), report = arguments.value("--report");
  config.perf_count |= arguments.has("--perf-count") || csv;
  config.half_outputs = arguments.has("--half-outputs");
  const double seconds = arguments.seconds("--seconds", 10);
  constexpr unsigned kMostRequests = 256;  // the same limit as the element's nireq
  constexpr unsigned kMostRepeated = 1'000'000'000;
  const unsigned asked =
      arguments.has("--sync") ? 1 : arguments.number("--nireq", 0, 1, kMostRequests);
  const size_t repeated = arguments.number("--repeat", 0, 1, kMostRepeated);
  std::optional<SyntheticFrame> frame;
  if (const auto text = arguments.value("--frames")) frame.emplace(*text);

  const auto feed_for = [&](const CompiledModel& compiled) {
    Feed feed(compiled);
    feed.uploads = !arguments.has("--inputs-once");
    if (frame) {
      feed.image = find_image_input(compiled.inputs());
      feed.frame = &frame->frame();
    }
    return feed;
  };
  const auto begin = Clock::now();
  const auto model = read_model(arguments);
  // The device that computed the first inference, and the time at which it ended.
  std::optional<std::string> first_device;  // the device that computed it while the model was
                                            // compiled
  double first_ms = 0, first_result_ms = 0;
  const auto infer_first = [&](InferRequest& request, Feed& feed) {
    const auto first = Clock::now();
    feed.before_start(request);
    request.start();
    request.wait();
    first_ms = ms_between(first, Clock::now());
    first_result_ms = ms_between(begin, Clock::now());
  };
  const auto task = CompiledModel::begin(model, config);
  task->wait_for_change(nullptr);
  if (const auto first = task->newest(); !task->is_over()) {
    first_device = first->device().id;
    Feed feed = feed_for(*first);
    const auto request = first->create_request();
    feed.prepare(*request);
    infer_first(*request, feed);
  }
  const auto compiled = task->wait();
  say_warnings(*compiled);
  const double load_ms = ms_between(begin, Clock::now());
  Feed feed = feed_for(*compiled);
  const unsigned nireq = asked != 0 ? asked : std::max(compiled->optimal_requests(), 1u);
  std::vector<std::unique_ptr<InferRequest>> requests;
  for (unsigned i = 0; i < nireq; ++i) {
    requests.push_back(compiled->create_request());
    feed.prepare(*requests.back());
  }
  if (!first_device) infer_first(*requests[0], feed);

  const size_t batch = batch_of(*compiled);
  const Measured measured = measure(requests, feed, seconds, batch);
  const size_t different = repeated == 0 ? 0 : count_different(*compiled, requests, feed, repeated);
  say_problems(*compiled);

  const DeviceInfo& device = compiled->device();
  const char* precision = name_of(compiled->precision());
  const bool json = arguments.has("--json");
  const std::string launch = compiled->launch();
  if (!json) {
    std::printf("%s on %s (%s), %s, %zu launches an inference, by %s\n", model->path().c_str(),
                device.name.c_str(), device.id.c_str(), precision, compiled->kernel_count(),
                launch.c_str());
    std::printf(
        "load %.1f ms (programs: %zu from the cache, %zu built), first inference %.2f ms%s, its "
        "result "
        "after %.1f ms\n",
        load_ms, compiled->cached_programs(), compiled->built_programs(), first_ms,
        !first_device             ? ""
        : *first_device == "host" ? " (first tier)"
                                  : (" (" + *first_device + ")").c_str(),
        first_result_ms);
    std::printf("%zu inferences in %.2f s: %u streams, %u requests, batch %zu\n",
                measured.latencies_ms.size(), measured.seconds, compiled->streams(), nireq, batch);
    std::printf("latency p50 %.2f ms, p95 %.2f ms, p99 %.2f ms; %.2f images/s\n",
                measured.percentile(50), measured.percentile(95), measured.percentile(99),
                measured.images_per_second);
    if (repeated != 0)
      std::printf("%zu of %zu inferences gave other results than the first\n", different, repeated);
    const TuningReport& tuning = compiled->tuning();
    if (tuning.mode != TuningMode::disabled) {
      std::printf("tuning: %s: %zu hits, %zu misses, %zu lapsed, %zu measured, %zu taken back",
                  tuning.file.c_str(), tuning.hits, tuning.misses, tuning.lapsed, tuning.measured,
                  tuning.taken_back);
      if (tuning.gain > 0) std::printf(", gain %.3f", tuning.gain);
      std::printf("\n");
    }
    print_devices(compiled->devices());
  }
  std::vector<StepProfile> profile;
  if (config.perf_count) profile = compiled->profile();
  if (arguments.has("--perf-count") && !json) print_profile(profile);
  if (csv) write_named_file(*csv, std::array{std::string_view(csv_of(profile))});
  if (json || report) {
    JsonMembers members{
        {"model", json_quoted(model->path())},
        {"device", json_quoted(device.name)},
        {"precision", json_quoted(precision)},
        {"launch", json_quoted(launch)},
        {"streams", std::to_string(compiled->streams())},
        {"nireq", std::to_string(nireq)},
        {"batch", std::to_string(batch)},
        {"load_ms", json_number(load_ms)},
        {"cached_programs", std::to_string(compiled->cached_programs())},
        {"built_programs", std::to_string(compiled->built_programs())},
        {"first_ms", json_number(first_ms)},
        {"first_device", json_quoted(first_device ? *first_device : device.id)},
        {"first_result_ms", json_number(first_result_ms)},
        {"images_per_second", json_number(measured.images_per_second)},
        {"latency_ms", json_object({{"p50", json_number(measured.percentile(50))},
                                    {"p95", json_number(measured.percentile(95))},
                                    {"p99", json_number(measured.percentile(99))}})},
        {"devices", json_of(by_device(compiled->devices()))}};
    if (repeated != 0) {
      members.emplace_back("repeated", std::to_string(repeated));
      members.emplace_back("different", std::to_string(different));
    }
    if (config.perf_count) members.emplace_back("layers", json_of(profile));
    if (json) std::printf("%s\n", json_object(members).c_str());
    if (report) {
      if (!config.perf_count)
        members.emplace_back("layers", json_of(timed_layers(model, config, feed_for)));
      std::vector<std::string> latencies;
      for (const double ms : thinned(measured.latencies_ms, kReportedLatencies))
        latencies.push_back(json_number(ms));
      members.emplace_back("latencies", json_array(latencies));
      members.emplace_back("inferences", std::to_string(measured.latencies_ms.size()));
      members.emplace_back("work", work_of(model, config, *compiled, measured));
      write_report(*report, "bench", json_object(members));
    }
  }
  if (different != 0)
    throw Error(ErrorCode::device_failed, std::to_string(different) + " of " +
                                              std::to_string(repeated) +
                                              " inferences gave other results than the first");
}

}  // namespace

Command bench_command() {
  return {
      {"bench",
       "load time, first inference, then latency and images per second",
       {"MODEL"},
       {device_option(),
        reshape_option(),
        {"--streams", "N", "inferences that run side by side, 0 = AUTO (1)"},
        {"--nireq", "N", "requests in flight (2 x streams)"},
        {"--batch", "N", "images per inference, 0 = AUTO; what the model states unless given"},
        {"--seconds", "S", "how long to measure (10)"},
        {"--sync", "", "one request at a time"},
        {"--inputs-once", "",
         "upload the inputs once; else each inference uploads them, converted before"},
        {"--half-outputs", "", "read results as f16 where the device has them in f16; else as f32"},
        {"--repeat", "N",
         "then compare the results of N inferences with those of the first, bit by bit"},
        {"--frames", "WxH:FORMAT",
         "feed video frames (NV12, I420, BGR ...) through preprocess, upload included"},
        {"--perf-count", "", "print each layer's time, or what it was fused into"},
        {"--perf-csv", "FILE", "write that as the GPU plug-in's report has it"},
        {"--report", "F.html",
         "write a page: histogram of latencies, time by type and layer, rate and share of the "
         "peak"},
        {"--json", "", "one line of JSON instead of text, with the layers where they are timed"},
        config_option()}},
      run};
}

}  // namespace clinfer
