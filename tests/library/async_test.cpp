// Inferences that tell of their end, and requests that take turns.
#include "engine/async.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>

#include "tests/engine/ball_model.h"
#include "tests/kernels/op_test.h"

namespace clinfer {
namespace {

class Async : public ::testing::Test {
 protected:
  static Tensor picture(unsigned seed) {
    return test::random_tensor({1, 3, 192, 256}, 0, 255, seed);
  }
  std::vector<float> wanted(unsigned seed) const {
    return test::infer(*model_->create_request(), picture(seed));
  }
  static std::string what(const std::exception_ptr& error) {
    try {
      if (error != nullptr) std::rethrow_exception(error);
    } catch (const Error& thrown) {
      return thrown.what();
    }
    return "";
  }

  const std::shared_ptr<CompiledModel> model_ =
      CompiledModel::compile(Model::read(test::ball_model()), {});
};

TEST_F(Async, IsCalledAfterEachInferenceAndMayStartTheNext) {
  std::vector<std::vector<float>> results;
  std::promise<void> looked;
  AsyncRequest request(model_->create_request());
  request.set_completed([&](InferRequest& of, std::exception_ptr error) {
    if (results.empty()) looked.get_future().wait();
    EXPECT_EQ(what(error), "");
    results.push_back(of.output(0).to_floats());
    EXPECT_THROW(request.wait(), Error) << "within its own call";
    if (results.size() == 3) return;
    request.request().set_input(0, picture(static_cast<unsigned>(results.size())));
    request.start();
  });
  request.request().set_input(0, picture(0));
  request.start();
  EXPECT_THROW(request.start(), Error);
  EXPECT_THROW(request.request(), Error);
  EXPECT_THROW(request.set_completed({}), Error);
  EXPECT_FALSE(request.wait(std::chrono::milliseconds(1)));
  looked.set_value();
  for (int n = 0; n < 3; ++n) EXPECT_TRUE(request.wait());
  ASSERT_EQ(results.size(), 3u);
  for (unsigned n = 0; n < 3; ++n) EXPECT_EQ(results[n], wanted(n)) << n;
  request.set_completed({});
  request.start();
  EXPECT_TRUE(request.wait(std::chrono::minutes(1)));
  EXPECT_EQ(results.size(), 3u);
  EXPECT_EQ(request.request().output(0).to_floats(), wanted(2)) << "the input stays";
}

TEST_F(Async, WithoutACallItIsARequest) {
  AsyncRequest request(model_->create_request());
  request.request().set_input(0, picture(1));
  request.start();
  EXPECT_TRUE(request.wait());
  EXPECT_EQ(request.request().output(0).to_floats(), wanted(1));
}

TEST_F(Async, EndsWhileItStartsItselfAgain) {
  std::atomic<int> calls = 0;
  std::promise<void> begun;
  {
    AsyncRequest request(model_->create_request());
    request.set_completed([&](InferRequest&, std::exception_ptr) {
      if (++calls == 1) begun.set_value();
      try {
        request.start();
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::cancelled);
      }
    });
    request.start();
    begun.get_future().wait();
  }
  EXPECT_GE(calls, 1);
}

TEST_F(Async, AQueueGivesEachInferenceItsOwnResult) {
  constexpr unsigned kCount = 12;
  std::vector<std::vector<float>> results(kCount);
  AsyncQueue queue(model_, 3);
  EXPECT_EQ(queue.size(), 3u);
  for (unsigned n = 0; n < kCount; ++n)
    queue.start([&](InferRequest& request) { request.set_input(0, picture(n)); },
                [&, n](InferRequest& request, std::exception_ptr error) {
                  EXPECT_EQ(what(error), "");
                  results[n] = request.output(0).to_floats();
                });
  queue.wait();
  for (unsigned n = 0; n < kCount; ++n) EXPECT_EQ(results[n], wanted(n)) << n;
  EXPECT_THROW(queue.start([&](InferRequest& request) { request.set_input(7, picture(0)); }, {}),
               Error);
  queue.wait();
  EXPECT_EQ(AsyncQueue(model_).size(), model_->optimal_requests());
}

}  // namespace
}  // namespace clinfer
