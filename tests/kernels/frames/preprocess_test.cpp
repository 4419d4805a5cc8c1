// The preprocess kernel against its reference, and the reference against values computed by hand
// and the two programs that it reproduces.
#include "kernels/frames/preprocess.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <set>

#include "engine/ocl/device.h"
#include "tests/kernels/op_runner.h"
#include "tests/kernels/op_test.h"
#include "tuning/op_key.h"
#include "tuning/tuner.h"

namespace clinfer {
namespace {

const ocl::Context& context() {
  static const auto shared = ocl::Context::create(ocl::select_device("GPU"));
  return *shared;
}

// A frame of noise, with gaps after its rows, that owns its memory.
struct Picture {
  Frame frame;
  std::array<std::vector<uint8_t>, 3> memory;
};

Picture noise(PixelFormat format, int width, int height, int gap = 0) {
  Picture picture;
  picture.frame = {format, width, height};
  const auto sizes = plane_sizes(picture.frame);
  std::mt19937 generator(static_cast<unsigned>(width * 31 + height));
  for (int i = 0; i < 3; ++i) {
    if (sizes[i].rows == 0) continue;
    picture.frame.strides[i] = sizes[i].row_bytes + gap;
    picture.memory[i].resize(static_cast<size_t>(picture.frame.strides[i]) * sizes[i].rows);
    for (uint8_t& byte : picture.memory[i]) byte = static_cast<uint8_t>(generator());
    picture.frame.planes[i] = picture.memory[i].data();
  }
  return picture;
}

Picture flat(PixelFormat format, int width, int height, std::array<uint8_t, 3> values) {
  Picture picture = noise(format, width, height);
  for (int i = 0; i < 3; ++i)
    std::fill(picture.memory[i].begin(), picture.memory[i].end(), values[i]);
  return picture;
}

TuningPoint default_point() { return kPreprocessFamily.heuristic({}, context().traits); }

// Runs the kernel on planes at an offset in their buffers; compares with the reference.
void check_frame(const Picture& picture, const FrameTransform& transform, TensorDesc out,
                 float tolerance = 1e-5f, const TuningPoint& point = default_point()) {
  OpDesc desc;
  desc.type = "Preprocess";
  std::vector<Tensor> planes;
  std::array<DevicePlane, 3> where{};
  for (int i = 0; i < 3; ++i) {
    const auto& memory = picture.memory[i].empty() ? picture.memory[0] : picture.memory[i];
    constexpr int kOffset = 7;
    std::vector<uint8_t> moved(kOffset);
    moved.insert(moved.end(), memory.begin(), memory.end());
    planes.push_back(Tensor::of(ElementType::u8, {static_cast<int64_t>(moved.size())}, moved));
    desc.inputs.push_back(TensorDesc::row_major(ElementType::u8, planes.back().shape()));
    where[i] = {kOffset, picture.frame.strides[i]};
  }
  const int dims[] = {transform.nhwc ? 3 : 1, transform.nhwc ? 1 : 2, transform.nhwc ? 2 : 3};
  const KernelPlan plan = plan_preprocess(picture.frame, where, transform, out, 0, point);
  desc.outputs = {out};
  const OpRun run = run_op(context(), desc, plan, planes);
  EXPECT_TRUE(run.stray.empty()) << run.stray.size() << " stray bytes";
  Tensor want = evaluate_preprocess(picture.frame, transform, static_cast<int>(out.shape[dims[2]]),
                                    static_cast<int>(out.shape[dims[1]]),
                                    static_cast<int>(out.shape[dims[0]]));
  const std::vector<float> got = run.outputs[0].to_floats(), expected = want.to_floats();
  ASSERT_EQ(got.size(), expected.size());
  size_t wrong = 0, first = 0;
  for (size_t i = 0; i < got.size(); ++i)
    if (!(std::fabs(got[i] - expected[i]) <= tolerance * std::max(1.f, std::fabs(expected[i]))) &&
        wrong++ == 0)
      first = i;
  EXPECT_EQ(wrong, 0u) << "of " << got.size() << ", first " << first << ": " << got[first]
                       << ", expected " << expected[first];
}

constexpr PixelFormat kFormats[] = {
    PixelFormat::nv12, PixelFormat::nv21, PixelFormat::i420,   PixelFormat::yv12, PixelFormat::yuy2,
    PixelFormat::uyvy, PixelFormat::rgb,  PixelFormat::bgr,    PixelFormat::rgbx, PixelFormat::bgrx,
    PixelFormat::xrgb, PixelFormat::xbgr, PixelFormat::gray8,  PixelFormat::nv16, PixelFormat::y42b,
    PixelFormat::y444, PixelFormat::p010, PixelFormat::i420_10};

TEST(Preprocess, AllFormatsOfOddSizes) {
  for (PixelFormat format : kFormats)
    for (auto [w, h] : {std::pair{33, 21}, {2, 2}, {1, 1}, {64, 17}}) {
      SCOPED_TRACE(testing::Message()
                   << "format " << static_cast<int>(format) << " " << w << "x" << h);
      Picture picture = noise(format, w, h, 5);
      FrameTransform transform;
      transform.mean = {104, 117, 123};
      transform.scale = {58.5f, 57.1f, 57.4f};
      for (const auto arithmetic : {ColorArithmetic::exact, ColorArithmetic::videoconvert}) {
        transform.color_arithmetic = arithmetic;
        check_frame(picture, transform,
                    TensorDesc::channels_last(ElementType::f32, {1, 3, 13, 19}));
      }
    }
}

TEST(Preprocess, RegionsAreMadeFromTheirRowsAlone) {
  for (const PixelFormat format : kFormats)
    for (const Rect& region : {Rect{},
                               {2, 0, 9, 1},
                               {0, 3, 11, 4},
                               {3, 4, 5, 7},
                               {1, 6, 9, 7},
                               {-3, -2, 8, 9},
                               {5, 8, 20, 20}}) {
      Picture picture = noise(format, 11, 13, 2);
      picture.frame.region = region;
      const Tensor expected = evaluate_preprocess(picture.frame, {}, 8, 6, 3);
      const auto rows = rows_of_region(picture.frame);
      const auto sizes = plane_sizes(picture.frame);
      for (size_t p = 0; p < 3; ++p) {
        ASSERT_GE(rows[p].first, 0);
        ASSERT_LE(rows[p].first + rows[p].count, sizes[p].rows);
        for (int row = 0; row < sizes[p].rows; ++row)
          if (row < rows[p].first || row >= rows[p].first + rows[p].count)
            for (int at = 0; at < sizes[p].row_bytes; ++at)
              picture.memory[p][static_cast<size_t>(row * picture.frame.strides[p] + at)] ^= 0x5a;
      }
      EXPECT_EQ(evaluate_preprocess(picture.frame, {}, 8, 6, 3).to_floats(), expected.to_floats())
          << static_cast<int>(format) << " from row " << region.y;
      if (region.width != 0) {
        EXPECT_EQ(rows[0].count, std::min(region.y + region.height, 13) - std::max(region.y, 0));
        const bool halved = sizes[1].rows == 7;  // chroma of 4:2:0
        EXPECT_LE(rows[1].count, halved ? region.height / 2 + 1 : rows[0].count);
      }
    }
}

// Points of CPUs and of GPUs, on pictures whose sizes are no multiple of a vector or group.
TEST(Preprocess, AllPoints) {
  const Picture yuv = noise(PixelFormat::nv12, 131, 67, 3), rgb = noise(PixelFormat::bgr, 77, 45);
  FrameTransform boxed;
  boxed.resize = ResizeMode::letterbox;
  boxed.pad_value = {114, 7, 255};
  DeviceTraits traits = context().traits;
  for (const bool cpu : {true, false}) {
    traits.is_cpu = cpu;
    traits.vector_width = cpu ? 8 : 1;
    std::vector<TuningPoint> points = test::points_of(kPreprocessFamily, {}, traits);
    points.push_back(kPreprocessFamily.space({}, traits)[cpu ? 12 : 8]);  // other vectors
    for (const TuningPoint& point : points) {
      SCOPED_TRACE(to_string(KernelChoice{&kPreprocessFamily, point}));
      check_frame(yuv, boxed, TensorDesc::channels_last(ElementType::f32, {1, 3, 37, 51}), 1e-5f,
                  point);
      check_frame(rgb, {}, TensorDesc::row_major(ElementType::u8, {1, 3, 40, 50}), 1e-5f, point);
    }
  }
}

TEST(Preprocess, IsAnOperationForTheTuner) {
  const TensorDesc out = TensorDesc::channels_last(ElementType::f32, {2, 3, 20, 30});
  std::set<std::string> keys;
  for (const PictureKind kind : {PictureKind::yuv, PictureKind::rgb, PictureKind::surface}) {
    const auto op = preprocess_op(kind, out);
    ASSERT_TRUE(op);
    EXPECT_EQ(kind_of(*op), kind);
    EXPECT_EQ(op->outputs[0].shape, (Shape{1, 3, 20, 30}));  // the shape that one launch fills
    keys.insert(op_key(*op));
    const KernelPlan plan =
        kPreprocessFamily.plan(*op, context().traits, kPreprocessFamily.heuristic(*op, {}));
    EXPECT_EQ(plan.launches.size(), 1u);
  }
  EXPECT_EQ(keys.size(), 3u);
  EXPECT_TRUE(
      preprocess_op(PictureKind::yuv, TensorDesc::row_major(ElementType::f32, {1, 9, 9, 3})));
  EXPECT_FALSE(
      preprocess_op(PictureKind::yuv, TensorDesc::row_major(ElementType::f32, {1, 4, 9, 9})));
  EXPECT_FALSE(preprocess_op(PictureKind::yuv, TensorDesc::row_major(ElementType::f32, {3, 9, 9})));
  EXPECT_FALSE(
      preprocess_op(PictureKind::yuv, TensorDesc::row_major(ElementType::i64, {1, 3, 9, 9})));
}

TEST(Preprocess, RangesAndMatrices) {
  for (YuvMatrix matrix : {YuvMatrix::bt601, YuvMatrix::bt709, YuvMatrix::bt2020})
    for (bool full : {false, true}) {
      Picture picture = noise(PixelFormat::nv12, 20, 10);
      picture.frame.matrix = matrix;
      picture.frame.full_range = full;
      FrameTransform transform;
      transform.color = ColorOrder::rgb;
      for (const auto arithmetic : {ColorArithmetic::exact, ColorArithmetic::videoconvert}) {
        transform.color_arithmetic = arithmetic;
        check_frame(picture, transform, TensorDesc::row_major(ElementType::f32, {1, 3, 10, 20}));
      }
    }
}

// The colours that the standards' formulas give in floating point, of any sample.
TEST(Preprocess, ColoursAreExact) {
  const struct {
    std::array<uint8_t, 3> yuv;
    std::array<float, 3> bgr;
  } cases[] = {{{128, 90, 160}, {54, 119, 181}},
               {{235, 128, 128}, {255, 255, 255}},
               {{200, 128, 128}, {214, 214, 214}},
               {{16, 128, 128}, {0, 0, 0}}};
  for (const auto& c : cases) {
    const Picture picture = flat(PixelFormat::i420, 4, 4, c.yuv);
    const Tensor out = evaluate_preprocess(picture.frame, {}, 1, 1, 3);
    for (int k = 0; k < 3; ++k) EXPECT_EQ(out.data<float>()[k], c.bgr[k]);
  }
  for (const PixelFormat format : {PixelFormat::y444, PixelFormat::p010})
    for (const YuvMatrix matrix : {YuvMatrix::bt601, YuvMatrix::bt709, YuvMatrix::bt2020})
      for (const bool full : {false, true}) {
        Picture picture = noise(format, 32, 16);
        picture.frame.matrix = matrix;
        picture.frame.full_range = full;
        FrameTransform transform;
        transform.color = ColorOrder::rgb;
        transform.nhwc = true;
        const Tensor out = evaluate_preprocess(picture.frame, transform, 32, 16, 3);
        const double kr = matrix == YuvMatrix::bt601   ? 0.299
                          : matrix == YuvMatrix::bt709 ? 0.2126
                                                       : 0.2627;
        const double kb = matrix == YuvMatrix::bt601   ? 0.114
                          : matrix == YuvMatrix::bt709 ? 0.0722
                                                       : 0.0593;
        for (int y = 0; y < 16; ++y)
          for (int x = 0; x < 32; ++x) {
            std::array<double, 3> yuv{};
            const bool deep = format == PixelFormat::p010;
            for (int i = 0; i < 3; ++i) {
              const int plane = deep ? std::min(i, 1) : i;
              const uint8_t* row = picture.memory[plane].data() +
                                   (deep && i > 0 ? y / 2 : y) * picture.frame.strides[plane];
              const int at = !deep ? x : i == 0 ? 2 * x : x / 2 * 4 + 2 * (i - 1);
              yuv[i] = deep ? (row[at] | row[at + 1] << 8) >> 6 : row[at];
            }
            const double unit = deep ? 4 : 1, most = deep ? 1023 : 255;
            const double l = full ? yuv[0] / most : (yuv[0] - 16 * unit) / (219 * unit);
            const double u = (yuv[1] - 128 * unit) / (full ? most : 224 * unit);
            const double v = (yuv[2] - 128 * unit) / (full ? most : 224 * unit);
            const double r = l + 2 * (1 - kr) * v, b = l + 2 * (1 - kb) * u;
            const double rgb[] = {r, (l - kr * r - kb * b) / (1 - kr - kb), b};
            for (int k = 0; k < 3; ++k) {
              const double value = std::clamp(rgb[k] * 255, 0.0, 255.0);
              // Halves may be rounded either way.
              EXPECT_NEAR(out.data<float>()[(y * 32 + x) * 3 + k], value, 0.5005)
                  << static_cast<int>(format) << " " << x << "," << y;
            }
          }
      }
}

TEST(Preprocess, LayoutsAndTypes) {
  const Picture picture = noise(PixelFormat::i420, 50, 40);
  FrameTransform transform;
  check_frame(picture, transform, TensorDesc::row_major(ElementType::f32, {1, 3, 16, 24}));
  check_frame(picture, transform, TensorDesc::row_major(ElementType::f16, {1, 3, 16, 24}), 1e-3f);
  check_frame(picture, transform, TensorDesc::channels_last(ElementType::u8, {1, 3, 16, 24}));
  check_frame(picture, transform, TensorDesc::channels_last(ElementType::i32, {1, 3, 16, 24}));
  FrameTransform centred;
  centred.mean = {128};
  for (const ElementType type : {ElementType::i8, ElementType::i32}) {
    check_frame(picture, centred, TensorDesc::channels_last(type, {1, 3, 16, 24}));
    check_frame(picture, centred, TensorDesc::row_major(type, {1, 3, 16, 24}));
  }
  check_frame(picture, transform,
              test::with_gaps(TensorDesc::channels_last(ElementType::f32, {1, 3, 16, 24})));
  transform.nhwc = true;
  check_frame(picture, transform, TensorDesc::row_major(ElementType::f32, {1, 16, 24, 3}));
  transform.color = ColorOrder::gray;
  check_frame(picture, transform, TensorDesc::row_major(ElementType::f32, {1, 16, 24, 1}));
  transform.nhwc = false;
  check_frame(picture, transform, TensorDesc::row_major(ElementType::f32, {1, 3, 16, 24}));
}

TEST(Preprocess, ResizeModes) {
  for (ResizeMode mode : {ResizeMode::stretch, ResizeMode::letterbox, ResizeMode::crop})
    for (auto [w, h] : {std::pair{64, 36}, {36, 64}, {7, 50}, {300, 11}})
      for (bool centered : {false, true}) {
        SCOPED_TRACE(testing::Message() << static_cast<int>(mode) << " " << w << "x" << h);
        Picture picture = noise(PixelFormat::bgr, w, h);
        FrameTransform transform;
        transform.resize = mode;
        transform.pad_value = {114};
        transform.mean = {3};
        transform.scale.assign(1, 2.0f);
        transform.centered = centered;
        check_frame(picture, transform, TensorDesc::row_major(ElementType::f32, {1, 3, 40, 40}));
        picture.frame.region = {w / 3, h / 3, std::max(1, w / 2), std::max(1, h / 2)};
        check_frame(picture, transform, TensorDesc::row_major(ElementType::f32, {1, 3, 40, 40}));
      }
}

// The second image of a batch is located by the strides.
TEST(Preprocess, PlaceOfImage) {
  const Picture picture = noise(PixelFormat::gray8, 8, 8);
  const TensorDesc out = TensorDesc::row_major(ElementType::f32, {2, 1, 8, 8});
  FrameTransform transform;
  OpDesc desc;
  Tensor plane = Tensor::of(ElementType::u8, {64}, picture.memory[0]);
  for (int i = 0; i < 3; ++i) desc.inputs.push_back(TensorDesc::row_major(ElementType::u8, {64}));
  desc.outputs = {out};
  const std::vector<Tensor> planes(3, plane);
  const OpRun run =
      run_op(context(), desc,
             plan_preprocess(picture.frame, {{{0, 8}, {}, {}}}, transform, out, 1, default_point()),
             planes);
  for (int i = 0; i < 64; ++i) {
    EXPECT_TRUE(std::isnan(run.outputs[0].data<float>()[i]));
    EXPECT_NEAR(run.outputs[0].data<float>()[64 + i], picture.memory[0][i], 1e-3);
  }
}

// Values of videoconvert (GStreamer 1.22, I420 to BGR) for flat pictures, bt601 video range.
TEST(Preprocess, ColoursOfVideoconvert) {
  const struct {
    std::array<uint8_t, 3> yuv;
    std::array<float, 3> bgr;
  } cases[] = {{{235, 128, 128}, {253, 253, 253}}, {{16, 128, 128}, {0, 0, 0}},
               {{81, 90, 240}, {0, 0, 253}},       {{145, 54, 34}, {0, 250, 0}},
               {{41, 240, 110}, {253, 0, 0}},      {{255, 255, 255}, {255, 122, 255}},
               {{100, 60, 200}, {0, 63, 211}}};
  for (const auto& c : cases) {
    const Picture picture = flat(PixelFormat::i420, 4, 4, c.yuv);
    FrameTransform transform;
    transform.color_arithmetic = ColorArithmetic::videoconvert;
    const Tensor out = evaluate_preprocess(picture.frame, transform, 1, 1, 3);
    for (int k = 0; k < 3; ++k)
      EXPECT_EQ(out.data<float>()[k], c.bgr[k]) << static_cast<int>(c.yuv[0]);
  }
}

// cv2.resize of the 4x4 picture 0, 10, ... 150 to 3x3 (OpenCV 5.0).
TEST(Preprocess, ResizesAsOpenCv) {
  Picture picture = noise(PixelFormat::gray8, 4, 4);
  for (int i = 0; i < 16; ++i) picture.memory[0][i] = static_cast<uint8_t>(10 * i);
  FrameTransform transform;
  transform.color = ColorOrder::gray;
  const Tensor out = evaluate_preprocess(picture.frame, transform, 3, 3, 1);
  const float expected[] = {8, 22, 35, 62, 75, 88, 115, 128, 142};
  for (int i = 0; i < 9; ++i) EXPECT_NEAR(out.data<float>()[i], expected[i], 1e-4);
}

TEST(Preprocess, Placement) {
  Frame frame{PixelFormat::nv12, 1920, 1080};
  FrameTransform transform;
  transform.resize = ResizeMode::letterbox;
  Placement p = placement_of(frame, transform, 416, 416);
  EXPECT_FLOAT_EQ(p.top, 91);
  EXPECT_FLOAT_EQ(p.x_scale, 1920 / 416.f);
  EXPECT_FLOAT_EQ(p.y_scale, 1080 / 234.f);
  transform.resize = ResizeMode::crop;
  p = placement_of(frame, transform, 100, 100);
  EXPECT_FLOAT_EQ(p.origin_x, 420);
  EXPECT_FLOAT_EQ(p.x_scale, 10.8f);
  transform.resize = ResizeMode::stretch;
  frame.region = {100, 200, 50, 60};
  p = placement_of(frame, transform, 100, 100);
  EXPECT_FLOAT_EQ(p.origin_y, 200);
  EXPECT_FLOAT_EQ(p.y_scale, 0.6f);
}

// Recorders that save half of the columns say so: 960x1080 with pixels twice as wide as high is a picture of
// 16:9.
TEST(Preprocess, ProportionsAreThoseThatAreShown) {
  Frame frame{PixelFormat::nv12, 960, 1080};
  frame.pixel_aspect = 2;
  FrameTransform transform;
  transform.resize = ResizeMode::letterbox;
  Placement p = placement_of(frame, transform, 416, 416);
  EXPECT_FLOAT_EQ(p.left, 0);
  EXPECT_FLOAT_EQ(p.top, 91);
  EXPECT_FLOAT_EQ(p.x_scale, 960 / 416.f);
  EXPECT_FLOAT_EQ(p.y_scale, 1080 / 234.f);
  transform.resize = ResizeMode::crop;
  p = placement_of(frame, transform, 100, 100);
  EXPECT_FLOAT_EQ(p.origin_x, 210);
  EXPECT_FLOAT_EQ(p.x_scale, 5.4f);
  EXPECT_FLOAT_EQ(p.y_scale, 10.8f);
  transform.resize = ResizeMode::stretch;
  EXPECT_FLOAT_EQ(placement_of(frame, transform, 100, 100).x_scale, 9.6f);
  frame.pixel_aspect = 0;
  EXPECT_THROW(placement_of(frame, transform, 100, 100), Error);
}

constexpr Orientation kOrientations[] = {
    {false, false, false}, {true, true, false},  {false, true, true},  {true, false, true},
    {false, true, false},  {false, false, true}, {true, false, false}, {true, true, true}};

// Where pixel x, y of a stored picture of width x height is in the upright one.
std::pair<int, int> upright(const Orientation& turn, int width, int height, int x, int y) {
  if (turn.transpose) std::swap(x, y), std::swap(width, height);
  return {turn.mirror_x ? width - 1 - x : x, turn.mirror_y ? height - 1 - y : y};
}

// The network's turn comes after the one that makes the picture upright.
TEST(Preprocess, NetworksGetUprightPicturesTurned) {
  const Picture stored = noise(PixelFormat::rgb, 21, 13);
  FrameTransform transform;
  for (const Orientation& first : kOrientations)
    for (const Orientation& second : kOrientations) {
      Frame frame = stored.frame;
      frame.orientation = first;
      const int width = second.transpose ? 20 : 32, height = second.transpose ? 32 : 20;
      const auto once = evaluate_preprocess(frame, transform, width, height, 3).to_floats();
      transform.turn = second;
      const auto both = evaluate_preprocess(frame, transform, 32, 20, 3).to_floats();
      transform.turn = {};
      float worst = 0;
      for (int y = 0; y < height; ++y)
        for (int x = 0; x < width; ++x) {
          const auto [to_x, to_y] = upright(second, width, height, x, y);
          for (int c = 0; c < 3; ++c)
            worst =
                std::max(worst, std::fabs(once[static_cast<size_t>((c * height + y) * width + x)] -
                                          both[static_cast<size_t>((c * 20 + to_y) * 32 + to_x)]));
        }
      EXPECT_LE(worst, 2) << first.transpose << first.mirror_x << first.mirror_y << ", then "
                          << second.transpose << second.mirror_x << second.mirror_y;
    }
}

TEST(Preprocess, TurnedPicturesAreInferredUpright) {
  constexpr int kWidth = 21, kHeight = 13;
  const Picture stored = noise(PixelFormat::rgb, kWidth, kHeight);
  for (const Orientation& turn : kOrientations) {
    Picture turned = turn.transpose ? noise(PixelFormat::rgb, kHeight, kWidth)
                                    : noise(PixelFormat::rgb, kWidth, kHeight);
    for (int y = 0; y < kHeight; ++y)
      for (int x = 0; x < kWidth; ++x) {
        const auto [to_x, to_y] = upright(turn, kWidth, kHeight, x, y);
        for (int c = 0; c < 3; ++c)
          turned.memory[0][static_cast<size_t>(to_y * turned.frame.strides[0] + to_x * 3 + c)] =
              stored.memory[0][static_cast<size_t>(y * stored.frame.strides[0] + x * 3 + c)];
      }
    Frame frame = stored.frame;
    frame.orientation = turn;
    for (const ResizeMode mode : {ResizeMode::stretch, ResizeMode::letterbox, ResizeMode::crop})
      for (const bool centered : {true, false}) {
        FrameTransform transform;
        transform.resize = mode;
        transform.centered = centered;
        transform.pad_value = {114};
        const auto got = evaluate_preprocess(frame, transform, 32, 20, 3).to_floats();
        const auto wanted = evaluate_preprocess(turned.frame, transform, 32, 20, 3).to_floats();
        // Resizing rounds after the first axis, so that a transposed picture is a little different;
        // a crop's odd pixel is on the stored picture's right.
        const float tolerance = mode == ResizeMode::crop ? 256 : 2;
        float worst = 0;
        for (size_t i = 0; i < got.size(); ++i)
          worst = std::max(worst, std::fabs(got[i] - wanted[i]));
        EXPECT_LE(worst, tolerance) << turn.transpose << turn.mirror_x << turn.mirror_y << " mode "
                                    << static_cast<int>(mode) << centered;
        // The placement leads back to the stored picture.
        const Placement here = placement_of(frame, transform, 32, 20);
        const Placement there = placement_of(turned.frame, transform, 32, 20);
        for (const auto& [u, v] : {std::pair(9.f, 7.f), {20.f, 12.f}}) {
          const float p = here.transposed ? v : u, q = here.transposed ? u : v;
          const float x = (p - here.left) * here.x_scale + here.origin_x;
          const float y = (q - here.top) * here.y_scale + here.origin_y;
          float to_x = turn.transpose ? y : x, to_y = turn.transpose ? x : y;
          if (turn.mirror_x) to_x = static_cast<float>(turned.frame.width) - to_x;
          if (turn.mirror_y) to_y = static_cast<float>(turned.frame.height) - to_y;
          const float tolerated = mode == ResizeMode::crop ? 1.01f : 1e-4f;
          EXPECT_NEAR(to_x, (u - there.left) * there.x_scale + there.origin_x, tolerated);
          EXPECT_NEAR(to_y, (v - there.top) * there.y_scale + there.origin_y, tolerated);
        }
      }
  }
}

TEST(Preprocess, TurnedPicturesOnTheDevice) {
  for (const Orientation& turn : kOrientations)
    for (const PixelFormat format : {PixelFormat::nv12, PixelFormat::rgb, PixelFormat::p010})
      for (const bool nhwc : {false, true}) {
        Picture picture = noise(format, 33, 21, 5);
        picture.frame.orientation = turn;
        FrameTransform transform;
        transform.resize = ResizeMode::letterbox;
        transform.centered = nhwc;
        transform.nhwc = nhwc;
        check_frame(picture, transform,
                    nhwc ? TensorDesc::row_major(ElementType::f32, {1, 15, 23, 3})
                         : TensorDesc::channels_last(ElementType::f32, {1, 3, 15, 23}));
        check_frame(picture, transform,
                    nhwc ? TensorDesc::row_major(ElementType::f32, {1, 40, 23, 3})
                         : TensorDesc::row_major(ElementType::f32, {1, 3, 40, 23}));
      }
}

// A picture whose red says the column and whose green says the row, by which a pixel tells where it
// was.
Picture ramp(int width, int height) {
  Picture picture = noise(PixelFormat::rgb, width, height);
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < width; ++x) {
      uint8_t* pixel =
          picture.memory[0].data() + static_cast<ptrdiff_t>(y) * picture.frame.strides[0] + 3 * x;
      pixel[0] = static_cast<uint8_t>(x);
      pixel[1] = static_cast<uint8_t>(y);
    }
  return picture;
}

TEST(Preprocess, PlacementLeadsBackFromTurnedRegions) {
  const Picture picture = ramp(240, 160);
  FrameTransform transform;
  transform.color = ColorOrder::rgb;
  for (const float angle : {0.f, 0.4f, -1.2f, 2.5f, 1.5707963f})
    for (const Orientation& turn : kOrientations)
      for (const ResizeMode mode : {ResizeMode::stretch, ResizeMode::letterbox, ResizeMode::crop})
        for (const double aspect : {1.0, 1.5}) {
          Frame frame = picture.frame;
          frame.region = {90, 50, 56, 60};
          frame.angle = angle;
          frame.orientation = turn;
          frame.pixel_aspect = aspect;
          transform.resize = mode;
          constexpr int kWidth = 70, kHeight = 50;
          const Tensor out = evaluate_preprocess(frame, transform, kWidth, kHeight, 3);
          const PointMap map = to_frame(placement_of(frame, transform, kWidth, kHeight));
          for (const auto& [u, v] : {std::pair(35, 25), {30, 8}, {40, 40}}) {
            const double x = u + 0.5, y = v + 0.5;
            const float* pixel = out.data<float>() + static_cast<ptrdiff_t>(v) * kWidth + u;
            EXPECT_NEAR(pixel[0], map.xx * x + map.xy * y + map.x0 - 0.5, 1)
                << angle << " " << static_cast<int>(mode);
            EXPECT_NEAR(pixel[kWidth * kHeight], map.yx * x + map.yy * y + map.y0 - 0.5, 1)
                << angle << " " << static_cast<int>(mode);
          }
        }
}

// A region turned clockwise is a picture turned back.
TEST(Preprocess, TurnedByQuartersIsTheSame) {
  const Picture picture = noise(PixelFormat::rgb, 40, 40);
  for (const auto& [angle, turn] : {std::pair(0.f, Orientation{}),
                                    {1.5707963f, Orientation{true, false, true}},
                                    {3.1415927f, Orientation{false, true, true}},
                                    {-1.5707963f, Orientation{true, true, false}}}) {
    Frame frame = picture.frame;
    frame.region = {5, 7, 20, 20};
    FrameTransform transform;
    transform.turn = turn;
    const auto expected = evaluate_preprocess(frame, transform, 32, 32, 3).to_floats();
    frame.angle = angle;
    const auto got = evaluate_preprocess(frame, {}, 32, 32, 3).to_floats();
    size_t far = 0;  // the region's edge is not repeated where it is turned
    for (size_t i = 0; i < got.size(); ++i) {
      const size_t x = i % 32, y = i / 32 % 32;
      far += x > 0 && x < 31 && y > 0 && y < 31 && std::fabs(got[i] - expected[i]) > 2;
    }
    EXPECT_EQ(far, 0u) << angle;
  }
}

TEST(Preprocess, TurnedRegionsRepeatTheOutermostPixels) {
  Picture picture = flat(PixelFormat::gray8, 8, 8, {});
  for (int y = 0; y < 8; ++y)
    for (int x = 0; x < 8; ++x)
      picture.memory[0][static_cast<size_t>(8 * y + x)] = x < 4 ? 50 : 200;
  picture.frame.region = {-8, -8, 24, 24};
  picture.frame.angle = 0;
  const Tensor out = evaluate_preprocess(picture.frame, {}, 24, 24, 1);
  for (const int row : {0, 12, 23})
    for (const auto& [column, value] : {std::pair(0, 50.f), {9, 50.f}, {14, 200.f}, {23, 200.f}})
      EXPECT_FLOAT_EQ(out.data<float>()[row * 24 + column], value) << row << ", " << column;
}

// Decoders pad their planes; what viewers do not see is no part of the picture.
TEST(Preprocess, TurnedRegionsRepeatThePixelsThatViewersSee) {
  for (const PixelFormat format : kFormats) {
    Picture picture = noise(format, 40, 30, 3);
    picture.frame.visible = {8, 4, 24, 18};
    picture.frame.region = {2, -3, 37, 33};
    picture.frame.angle = 0.3f;
    const auto expected = evaluate_preprocess(picture.frame, {}, 20, 20, 3).to_floats();
    FrameTransform transform;
    transform.scale = {255};
    check_frame(picture, transform, TensorDesc::row_major(ElementType::f32, {1, 3, 20, 20}),
                0.0045f);
    // Changes all that lies outside.
    const auto sizes = plane_sizes(picture.frame);
    for (size_t p = 0; p < 3; ++p) {
      const int step = sizes[p].rows < picture.frame.height ? 2 : 1;
      for (int row = 0; row < sizes[p].rows; ++row)
        for (int at = 0; at < sizes[p].row_bytes; ++at) {
          const int y = row * step;
          const double x = at * 40.0 / sizes[p].row_bytes;
          if (y < 4 || y >= 22 || x < 8 || x >= 32)
            picture.memory[p][static_cast<size_t>(row * picture.frame.strides[p] + at)] ^= 0x5a;
        }
    }
    EXPECT_EQ(evaluate_preprocess(picture.frame, {}, 20, 20, 3).to_floats(), expected)
        << static_cast<int>(format);
  }
}

TEST(Preprocess, TurnedRegionsOnTheDevice) {
  for (const PixelFormat format : kFormats)
    for (const float angle : {0.f, 0.7f, -2.1f}) {
      Picture picture = noise(format, 33, 21, 5);
      picture.frame.region = format == PixelFormat::rgb ? Rect{-6, 4, 30, 25} : Rect{10, 5, 14, 9};
      picture.frame.angle = angle;
      picture.frame.orientation = kOrientations[angle > 0 ? 1 : 0];
      FrameTransform transform;
      transform.scale = {255};
      transform.resize = angle < 0 ? ResizeMode::letterbox : ResizeMode::stretch;
      constexpr float kOneLevel = 0.0045f;
      check_frame(picture, transform, TensorDesc::channels_last(ElementType::f32, {1, 3, 15, 23}),
                  kOneLevel);
      check_frame(picture, transform, TensorDesc::row_major(ElementType::f16, {1, 3, 15, 23}),
                  kOneLevel);
      transform.nhwc = true;
      check_frame(picture, transform, TensorDesc::row_major(ElementType::f32, {1, 40, 23, 3}),
                  kOneLevel);
    }
  // Every width of vectors.
  Picture picture = noise(PixelFormat::nv12, 64, 48);
  picture.frame.region = {20, 10, 30, 30};
  picture.frame.angle = 0.5f;
  FrameTransform transform;
  transform.scale = {255};
  for (const int vector : {1, 4, 8, 16})
    for (const int rows : {1, 4})
      check_frame(picture, transform, TensorDesc::row_major(ElementType::f32, {1, 3, 17, 37}),
                  0.0045f, {{{"V", vector}, {"ROWS", rows}, {"GROUP_X", 1}, {"GROUP_Y", 1}}});
}

TEST(Preprocess, TurnedRegionsAreMadeFromTheirRowsAlone) {
  for (const PixelFormat format : {PixelFormat::nv12, PixelFormat::rgb, PixelFormat::i420_10})
    for (const float angle : {0.3f, 1.5f, -2.8f})
      for (const Rect& region : {Rect{10, 20, 9, 7}, {-5, -9, 20, 18}, {2, 33, 30, 30}}) {
        Picture picture = noise(format, 21, 43, 2);
        picture.frame.region = region;
        picture.frame.angle = angle;
        const Tensor expected = evaluate_preprocess(picture.frame, {}, 8, 6, 3);
        const auto rows = rows_of_region(picture.frame);
        const auto sizes = plane_sizes(picture.frame);
        for (size_t p = 0; p < 3; ++p)
          for (int row = 0; row < sizes[p].rows; ++row)
            if (row < rows[p].first || row >= rows[p].first + rows[p].count)
              for (int at = 0; at < sizes[p].row_bytes; ++at)
                picture.memory[p][static_cast<size_t>(row * picture.frame.strides[p] + at)] ^= 0x5a;
        EXPECT_EQ(evaluate_preprocess(picture.frame, {}, 8, 6, 3).to_floats(), expected.to_floats())
            << static_cast<int>(format) << " by " << angle;
        EXPECT_LE(rows[0].count, 43);
      }
}

TEST(Preprocess, RefusesWhatCannotBe) {
  const Picture picture = noise(PixelFormat::nv12, 8, 8);
  const std::array<DevicePlane, 3> planes{{{0, 8}, {0, 8}, {}}};
  const TensorDesc out = TensorDesc::row_major(ElementType::f32, {1, 3, 8, 8});
  const auto plan = [&](const Frame& frame, const std::array<DevicePlane, 3>& where,
                        const FrameTransform& transform, const TensorDesc& to) {
    plan_preprocess(frame, where, transform, to, 0, default_point());
  };
  EXPECT_NO_THROW(plan(picture.frame, planes, {}, out));
  FrameTransform transform;
  transform.scale = {0};
  EXPECT_THROW(plan(picture.frame, planes, transform, out), Error);
  transform.scale = {1, 2};
  EXPECT_THROW(plan(picture.frame, planes, transform, out), Error);
  Frame outside = picture.frame;
  outside.region = {8, 0, 4, 4};
  EXPECT_THROW(plan(outside, planes, {}, out), Error);
  outside.region = {0, 0, -4, 4};
  EXPECT_THROW(plan(outside, planes, {}, out), Error);
  EXPECT_THROW(plan(picture.frame, {{{0, 7}, {0, 8}, {}}}, {}, out), Error);
  EXPECT_THROW(
      plan(picture.frame, planes, {}, TensorDesc::row_major(ElementType::f32, {1, 5, 8, 8})),
      Error);
  EXPECT_THROW(plan({PixelFormat::nv12, 0, 8}, planes, {}, out), Error);
  Frame turned = picture.frame;
  turned.angle = 1;
  EXPECT_NO_THROW(plan(turned, planes, {}, out));
  for (const Rect& region : {Rect{-40, 0, 8, 8}, {0, 0, -4, 4}, {1 << 30, 0, 4, 4}}) {
    turned.region = region;
    EXPECT_THROW(plan(turned, planes, {}, out), Error) << region.x;
  }
  turned.region = {};
  turned.visible = {4, 0, 5, 8};
  EXPECT_THROW(plan(turned, planes, {}, out), Error);
  turned.visible = {};
  turned.angle = std::numeric_limits<float>::quiet_NaN();
  EXPECT_THROW(plan(turned, planes, {}, out), Error);
}

}  // namespace
}  // namespace clinfer
