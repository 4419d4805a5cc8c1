// Tuning of a model: modes, files, what counts as a hit, what has lapsed, and that results stay
// right.
#include "engine/measure/tuning.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <filesystem>

#include "engine/compile/model_compiler.h"
#include "engine/engine.h"
#include "engine/measure/noise.h"
#include "engine/measure/pipeline.h"
#include "engine/ocl/device.h"
#include "engine/passes/passes.h"
#include "tests/devices.h"
#include "tests/engine/test_files.h"
#include "tests/foreign_tuning_file.h"
#include "tuning/op_key.h"
#include "tuning/tuning_cache.h"

namespace clinfer {
namespace {

class Tuned : public testing::Test {
 protected:
  std::shared_ptr<CompiledModel> compile(TuningMode mode, const TuningObserver& observer = {}) {
    return CompiledModel::compile(model(), config(mode), {}, observer);
  }
  static std::shared_ptr<const Model> model() {
    static const auto model = Model::read(test_data("models/tunable.xml"));
    return model;
  }
  // The network that layers are measured in: each has a launch of its own.
  std::shared_ptr<const DeviceNetwork> bench() const {
    Config launches = config(TuningMode::disabled);
    launches.persistent = Config::Persistent::no;
    return compile_model(model(), launches)->shared_network();
  }
  Config config(TuningMode mode) const {
    static const TemporaryFolder programs;  // built once for all cases
    Config config;
    config.device = list_devices().devices.at(0).id;
    config.cache_dir = programs / "cache";
    config.tuning_mode = mode;
    config.tuning_file = mode == TuningMode::disabled ? "" : file_;
    config.tuning_db = false;
    return config;
  }
  std::string refusal(TuningMode mode) {
    try {
      compile(mode);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  }
  // The record of the first layer, changed; the others as they are.
  void change_first(const std::function<void(TuningRecord&)>& change) {
    update_tuning_file(file_, [&](TuningCache& cache) {
      const auto [hash, record] = cache.records().at(0);
      TuningRecord changed = *record;
      change(changed);
      cache.set(units_, hash, changed);
    });
  }
  static std::vector<float> infer(CompiledModel& compiled) {
    const auto request = compiled.create_request();
    request->set_input(0, synthetic_tensor(compiled.inputs()[0]));
    request->start();
    request->wait();
    return request->output(0).to_floats();
  }

  TemporaryFolder folder_;
  const std::string file_ = folder_ / "t.json";
  const unsigned units_ = ocl::select_device("GPU").info.compute_units;
};

TEST_F(Tuned, CreateMeasuresAndUseExistingFinds) {
  const auto plain = compile(TuningMode::disabled);
  const size_t layers = plain->tuning().layers.size();
  EXPECT_GE(layers, 2u);
  EXPECT_EQ(plain->tuning().misses, layers);

  size_t calls = 0;
  const auto created = compile(TuningMode::create, [&](const TuningStatus& status) {
    EXPECT_EQ(status.layers, layers);
    EXPECT_LE(status.index, layers);
    ++calls;
    return true;
  });
  EXPECT_GT(calls, layers);
  EXPECT_EQ(created->tuning().measured, layers);
  for (const LayerTuning& layer : created->tuning().layers) {
    EXPECT_EQ(layer.source, LayerTuning::Source::measured);
    EXPECT_GT(layer.tried, 0u);
    EXPECT_GT(layer.ns, 0);
    EXPECT_LE(layer.ns, layer.default_ns);
    EXPECT_TRUE(layer.failed.empty()) << layer.failed[0];
  }
  const TuningCache written = TuningCache::read(file_);
  EXPECT_EQ(written.size(), layers);
  for (const auto& [hash, record] : written.records()) {
    EXPECT_EQ(hash, record_hash(record->op, record->device));
    EXPECT_EQ(written.find(units_, hash), record);
  }

  const auto used = compile(TuningMode::use_existing);
  EXPECT_EQ(used->tuning().hits, layers);
  EXPECT_EQ(used->tuning().misses, 0u);
  for (size_t i = 0; i < layers; ++i)
    EXPECT_EQ(used->tuning().layers[i].kernel, created->tuning().layers[i].kernel);
  const std::vector<float> want = infer(*plain), got = infer(*used);
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], want[i], 1e-5);

  // A second run has nothing to do, and does not touch the file; even a file that cannot be written
  // will do.
  const std::string before = read_file(file_);
  EXPECT_EQ(compile(TuningMode::create)->tuning().measured, 0u);
  EXPECT_EQ(read_file(file_), before);
  EXPECT_EQ(compile(TuningMode::retune)->tuning().measured, layers);
}

// TUNING_SECONDS counts by the clock that is given, which a test moves as it likes: one that stands
// still gives each layer a whole search, one that is over with the first build only that layer.
TEST_F(Tuned, SecondsAreLookedAtBetweenBuildsOfAllLayers) {
  const auto untuned = bench();
  const Plan& plan = untuned->plan();
  const auto tune = [&](double step) {
    std::filesystem::remove(file_);
    Config create = config(TuningMode::create);
    create.tuning_seconds = 5;
    create.max_num_threads = 1;
    std::atomic<double> now = 0;
    Tuning tuning(create, *untuned->context, untuned->traits, [&] { return now.load(); });
    for (const Step& layer : plan.steps)
      if (!layer.on_host)
        tuning.choose(layer.desc,
                      accepting_families(*layer.node->def, layer.desc, untuned->traits));
    tuning.measure(untuned, [&](const TuningStatus& status) {
      // Time passes while a layer's kernels are built, not while layers are ordered.
      if (!status.layer.empty()) now = now + step;
      return true;
    });
    return tuning.finish(plan);
  };
  const TuningReport whole = tune(0), one = tune(100);
  EXPECT_EQ(whole.measured, whole.layers.size());
  EXPECT_EQ(one.measured, 1u);
  for (const LayerTuning& layer : whole.layers) EXPECT_GT(layer.tried, 1u) << layer.layer;
  for (const LayerTuning& layer : one.layers) EXPECT_LE(layer.tried, 1u) << layer.layer;
  EXPECT_EQ(TuningCache::read(file_).records().size(), 1u) << "and the file has it";
}

TEST_F(Tuned, WhatDoesNotPayIsTakenBackHereAndInTheFile) {
  const auto untuned = bench();
  const Plan& plan = untuned->plan();
  const Config create = config(TuningMode::create);
  Tuning tuning(create, *untuned->context, untuned->traits);
  for (const Step& step : plan.steps)
    if (!step.on_host)
      tuning.choose(step.desc, accepting_families(*step.node->def, step.desc, untuned->traits));
  tuning.measure(untuned, {});
  EXPECT_TRUE(tuning.is_not_slower(untuned, untuned, {})) << "a model is not slower than itself";
  size_t changed = 0;
  for (const LayerTuning& layer : tuning.finish(plan).layers)
    changed += layer.kernel != layer.default_kernel;

  size_t times = 0;
  while (tuning.revert_least_gains(plan)) ++times;
  EXPECT_LE(times, 3u);
  const TuningReport report = tuning.finish(plan);
  EXPECT_EQ(report.taken_back, changed);
  EXPECT_EQ(report.measured, report.layers.size());
  for (const LayerTuning& layer : report.layers) {
    EXPECT_EQ(layer.kernel, layer.default_kernel);
    EXPECT_EQ(layer.ns, layer.default_ns);
  }
  const TuningReport read = compile(TuningMode::use_existing)->tuning();
  EXPECT_EQ(read.hits, report.layers.size());
  for (const LayerTuning& layer : read.layers) EXPECT_EQ(layer.kernel, layer.default_kernel);
}

TEST_F(Tuned, SaysWhatAModelOfTimesAloneChose) {
  const auto untuned = bench();
  const Plan& plan = untuned->plan();
  const Config usual;
  const auto report_on = [&](const DeviceTraits& traits) {
    Tuning tuning(usual, *untuned->context, traits);
    for (const Step& step : plan.steps)
      if (!step.on_host)
        tuning.choose(step.desc, accepting_families(*step.node->def, step.desc, traits));
    return tuning.finish(plan);
  };
  const TuningReport unknown = report_on(test::intel_gpu("skl", 24));
  EXPECT_GT(unknown.modelled, 0u);
  EXPECT_EQ(unknown.modelled, unknown.layers.size());
  const TuningReport known = report_on(test::hopper("NVIDIA H200"));
  EXPECT_GT(known.layers.size(), 0u);
  EXPECT_EQ(known.modelled, 0u);
}

// Two layers on a device that nobody measured: the one that takes longest has a clear best point, the
// other one many that are equal by the model.
TEST(TuningOrder, IsThatOfWhatAModelDoubtsOnDevicesThatNobodyMeasured) {
  static const auto space = [](const OpDesc&, const DeviceTraits&) {
    return std::vector<TuningPoint>{{{{"P", 0}}}, {{{"P", 1}}}, {{{"P", 2}}}};
  };
  KernelFamily clear, open;
  clear.space = open.space = space;
  clear.costs = [](const OpDesc&, const DeviceTraits&) { return std::vector<double>{1, 1.1, 2}; };
  open.costs = [](const OpDesc&, const DeviceTraits&) { return std::vector<double>{1, 1, 1}; };
  const OpDesc desc;
  TuningProblem problems[3];
  const auto order_on = [&](const DeviceTraits& traits) {
    const TuningPoint first = space(desc, traits)[0];
    problems[0].fallback = {&clear, first};
    problems[1].fallback = problems[2].fallback = {&open, first};
    std::vector<TuningTask> tasks;
    for (const auto& [problem, name, seconds] :
         {std::tuple(&problems[0], "clear", 10e-3), std::tuple(&problems[1], "open", 8e-3),
          std::tuple(&problems[2], "short", 0.1e-3)})
      tasks.push_back({problem, &desc, name, {}, TuningTask::kNoStep, 1, seconds});
    order_by_worth(tasks, traits);
    std::vector<std::string> names;
    for (const TuningTask& task : tasks) names.push_back(task.name);
    return names;
  };
  EXPECT_EQ(order_on(test::intel_gpu("skl", 24)),
            (std::vector<std::string>{"open", "clear", "short"}));
  EXPECT_EQ(order_on(test::hopper("NVIDIA H200")),
            (std::vector<std::string>{"clear", "open", "short"}));
}

TEST_F(Tuned, AFileChoosesThePoint) {
  compile(TuningMode::create);
  const TuningCache cache = TuningCache::read(file_);
  const auto [hash, record] = cache.records().at(0);
  std::string kernels[2];
  for (const int index : {0, 1}) {
    // Two elements, as the documented format has: the point is the index into the family's space.
    std::ofstream(file_) << "{\"" << units_ << "\": {\"" << hash << "\": [\"" << record->family
                         << "\", " << index << "]}}";
    const TuningReport report = compile(TuningMode::use_existing)->tuning();
    EXPECT_EQ(report.hits, 1u);
    for (const LayerTuning& layer : report.layers)
      if (layer.source == LayerTuning::Source::file) kernels[index] = layer.kernel;
  }
  EXPECT_NE(kernels[0], kernels[1]);
}

TEST_F(Tuned, LapsedRecordsAreReportedAndMeasuredAgain) {
  const size_t layers = compile(TuningMode::create)->tuning().layers.size();
  const std::pair<const char*, std::function<void(TuningRecord&)>> cases[] = {
      {"driver 0.1", [](TuningRecord& r) { r.driver = "0.1"; }},
      {"version 99", [](TuningRecord& r) { r.family_version = 99; }},
      {"no kernel gone", [](TuningRecord& r) { r.family = "gone"; }},
      {"no such point", [](TuningRecord& r) { r.point->values[0].second = 12345; }},
      {"no point 4000", [](TuningRecord& r) { r.point.reset(), r.index = 4000; }},
      {"another operation", [](TuningRecord& r) { r.op += " more"; }},
      {"measured on a toaster", [](TuningRecord& r) { r.device = "a toaster"; }},
  };
  for (const auto& [why, change] : cases) {
    SCOPED_TRACE(why);
    change_first(change);
    const std::string before = read_file(file_);
    const TuningReport used = compile(TuningMode::use_existing)->tuning();
    EXPECT_EQ(used.hits, layers - 1);
    EXPECT_EQ(used.lapsed, 1u);
    bool said = false;
    for (const LayerTuning& layer : used.layers)
      said |= layer.lapsed.find(why) != std::string::npos;
    EXPECT_TRUE(said);
    EXPECT_EQ(read_file(file_), before) << "use-existing only reads";
    EXPECT_EQ(compile(TuningMode::create)->tuning().measured, 1u);
    EXPECT_EQ(compile(TuningMode::use_existing)->tuning().hits, layers);
  }
}

// A search that found nothing faster than the untuned kernel did not compare a kernel that came later.
TEST_F(Tuned, ThatTheUntunedKernelWasBestSaysNothingOfANewerOne) {
  compile(TuningMode::create);
  const auto untuned = bench();
  const DeviceTraits& traits = untuned->traits;
  const auto step = std::find_if(untuned->plan().steps.begin(), untuned->plan().steps.end(),
                                 [](const Step& s) { return !s.on_host; });
  const KernelFamily* const old = accepting_families(*step->node->def, step->desc, traits).front();
  KernelFamily newer = *old;
  newer.name = "newer";
  const KernelFamily* const before[] = {old};
  const KernelFamily* const now[] = {&newer, old};
  for (const double untuned_ns : {1000., 1100.}) {
    update_tuning_file(file_, [&](TuningCache& cache) {
      const TuningCache found = cache;
      for (const auto& [hash, record] : found.records()) {
        TuningRecord changed = *record;
        changed.ns = 1000, changed.default_ns = untuned_ns;
        cache.set(units_, hash, changed);
      }
    });
    const Config use = config(TuningMode::use_existing);
    EXPECT_EQ(Tuning(use, *untuned->context, traits).choose(step->desc, before).family, old);
    EXPECT_EQ(Tuning(use, *untuned->context, traits).choose(step->desc, now).family,
              untuned_ns > 1000 ? old : &newer);
  }
}

TEST_F(Tuned, UpdateRemovesWhatHasLapsedAndMeasuresNothing) {
  const size_t layers = compile(TuningMode::create)->tuning().layers.size();
  change_first([](TuningRecord& r) { r.driver = "0.1"; });
  update_tuning_file(file_, [&](TuningCache& cache) {  // of another device
    TuningRecord other = *cache.records().at(0).second;
    other.device = "a toaster";
    cache.set(units_, record_hash(other.op, other.device), other);
  });
  const TuningReport report = compile(TuningMode::update)->tuning();
  EXPECT_EQ(report.measured, 0u);
  EXPECT_EQ(report.lapsed, 1u);
  EXPECT_EQ(TuningCache::read(file_).size(), layers);
  EXPECT_EQ(compile(TuningMode::use_existing)->tuning().lapsed, 0u);
}

TEST_F(Tuned, StoppingKeepsWhatWasMeasured) {
  try {
    compile(TuningMode::create, [](const TuningStatus& status) { return status.index < 1; });
    FAIL() << "was not stopped";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::cancelled);
  }
  const size_t kept = TuningCache::read(file_).size();
  EXPECT_EQ(kept, 1u);
  const TuningReport rest = compile(TuningMode::create)->tuning();
  EXPECT_EQ(rest.hits, kept);
  EXPECT_EQ(rest.measured, rest.layers.size() - kept);
}

// Also in the inferences before and between the measuring: they take long in large networks.
TEST_F(Tuned, StoppingWaitsForOneLayerOfAnInferenceAtMost) {
  for (size_t last = 1; last < 12; ++last) {
    size_t asked = 0;
    try {
      compile(TuningMode::retune, [&](const TuningStatus&) { return ++asked < last; });
      FAIL() << "was not stopped";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::cancelled);
    }
    EXPECT_EQ(asked, last) << "went on after it was told to stop";
    EXPECT_EQ(TuningCache::read(file_).size(), 0u) << "had measured a layer by question " << last;
  }
}

TEST_F(Tuned, AFolderThatCannotBeWrittenIsSaidBeforeAnythingIsMeasured) {
  Config config;
  config.tuning_mode = TuningMode::create;
  config.tuning_file = "/proc/clinfer-tuning.json";  // where not even root can make files
  bool measured = false;
  try {
    CompiledModel::compile(Model::read(test_data("models/tunable.xml")), config, {},
                           [&](const TuningStatus&) { return measured = true; });
    FAIL() << "was not refused";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::io) << error.what();
    EXPECT_NE(std::string(error.what()).find(config.tuning_file), std::string::npos);
  }
  EXPECT_FALSE(measured);
}

// The GPU plug-in's own example names a file and no mode.
TEST_F(Tuned, AFileWithoutAModeIsUsedWhereItIs) {
  Config unset = config(TuningMode::create);
  unset.tuning_mode.reset();
  const auto untuned = CompiledModel::compile(model(), unset);
  EXPECT_EQ(untuned->tuning().mode, TuningMode::disabled);
  ASSERT_EQ(untuned->warnings().size(), 1u);
  EXPECT_NE(untuned->warnings()[0].find(file_ + " is not there"), std::string::npos)
      << untuned->warnings()[0];

  compile(TuningMode::create);
  const auto tuned = CompiledModel::compile(model(), unset);
  EXPECT_EQ(tuned->tuning().mode, TuningMode::use_existing);
  EXPECT_GT(tuned->tuning().hits, 0u);
  EXPECT_TRUE(tuned->warnings().empty());

  unset.tuning_mode = TuningMode::disabled;
  EXPECT_EQ(CompiledModel::compile(model(), unset)->tuning().hits, 0u) << "stated";
}

TEST_F(Tuned, RecordsOfAnotherEngineAreSaidAndKept) {
  for (const TuningMode mode :
       {TuningMode::create, TuningMode::use_existing, TuningMode::update, TuningMode::retune}) {
    folder_.write("t.json", test::kFileOfAnotherEngine);
    const auto compiled = compile(mode);
    ASSERT_EQ(compiled->warnings().size(), 1u);
    const std::string& warning = compiled->warnings()[0];
    EXPECT_NE(warning.find("3 records are of another engine"), std::string::npos) << warning;
    const bool measures = mode == TuningMode::create || mode == TuningMode::retune;
    EXPECT_EQ(warning.find("TUNING_CREATE") == std::string::npos, measures) << warning;
    test::expect_kept(file_);
    EXPECT_EQ(TuningCache::read(file_).records().size() > 0, measures);
  }
}

TEST_F(Tuned, TheBatchOnAutoIsTheFiles) {
  const auto model = Model::read(test_data("models/tunable.xml"));
  Config config;
  config.tuning_mode = TuningMode::use_existing;
  config.tuning_file = file_;
  config.batch = kAutoBatch;
  update_tuning_file(file_, [](TuningCache&) {});
  const auto stated = CompiledModel::compile(model, config);
  EXPECT_EQ(stated->inputs()[0].shape, model->inputs()[0].shape) << "the file says nothing";
  store_pipeline(*model, config, stated->device(), {1, 2, 3, 100}, true);
  const auto found = CompiledModel::compile(model, config);
  EXPECT_EQ(found->inputs()[0].shape[0], 3);
}

// The kernel that frames go through is tuned like a layer, and the file's point is what runs.
TEST_F(Tuned, FramesAreTunedAsLayersAre) {
  const auto model = Model::read(test_data("models/picture.xml"));
  Config config;
  config.cache_dir = folder_ / "cache";
  config.tuning_db = false;
  config.tuning_mode = TuningMode::create;
  config.tuning_file = file_;
  const auto frames_of = [](const TuningReport& report) {
    std::vector<LayerTuning> layers;
    for (const LayerTuning& layer : report.layers)
      if (layer.type == "preprocess") layers.push_back(layer);
    return layers;
  };
  const auto tuned = CompiledModel::compile(model, config);
  for (const LayerTuning& layer : frames_of(tuned->tuning())) {
    EXPECT_EQ(layer.source, LayerTuning::Source::measured) << layer.layer;
    EXPECT_GT(layer.tried, 1u);
    EXPECT_GT(layer.ns, 0);
    EXPECT_TRUE(layer.failed.empty()) << layer.failed[0];
  }
  EXPECT_EQ(frames_of(tuned->tuning()).size(), 2u) << "Y'CbCr and RGB";

  std::vector<uint8_t> bytes(64 * 48 * 4);
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<uint8_t>(i * 37 >> 2);
  Frame frame{PixelFormat::bgrx, 64, 48, {bytes.data()}, {64 * 4}};
  const auto result = [&](CompiledModel& compiled) {
    const auto request = compiled.create_request();
    request->set_frame(0, frame, {});
    request->start();
    request->wait();
    return request->output(0).to_floats();
  };
  const std::vector<float> expected = result(*tuned);
  config.tuning_mode = TuningMode::use_existing;
  for (const int vector : {4, 16, 5}) {
    update_tuning_file(file_, [&](TuningCache& cache) {
      const TuningCache before = cache;
      for (const auto& [hash, record] : before.records()) {
        if (record->family != "preprocess") continue;
        TuningRecord changed = *record;
        changed.point = TuningPoint{{{"V", vector}, {"ROWS", 8}, {"GROUP_X", 16}, {"GROUP_Y", 1}}};
        cache.set(units_, hash, changed);
      }
    });
    const auto used = CompiledModel::compile(model, config);
    for (const LayerTuning& layer : frames_of(used->tuning())) {
      const bool known = vector != 5;
      EXPECT_EQ(layer.kernel.find("V=" + std::to_string(vector)) != std::string::npos, known);
      EXPECT_EQ(layer.lapsed.empty(), known) << layer.lapsed;
    }
    EXPECT_EQ(result(*used), expected) << "vectors of " << vector;
  }
}

TEST_F(Tuned, FilesThatCannotServeAreRefused) {
  EXPECT_NE(refusal(TuningMode::use_existing).find("is not there"), std::string::npos);
  EXPECT_NE(refusal(TuningMode::update).find("is not there"), std::string::npos);
  folder_.write("t.json", "{\"2\": 7}");
  for (const TuningMode mode :
       {TuningMode::use_existing, TuningMode::create, TuningMode::update, TuningMode::retune})
    EXPECT_NE(refusal(mode).find("is not an object"), std::string::npos);
  EXPECT_EQ(read_file(file_), "{\"2\": 7}");
  Config config;
  config.tuning_mode = TuningMode::create;
  EXPECT_THROW(CompiledModel::compile(Model::read(test_data("models/tunable.xml")), config), Error)
      << "no file named";
}

}  // namespace
}  // namespace clinfer
