// A folder that is everyone's, and a home of one of two users in it.
#pragma once

#include <sys/stat.h>

#include <string>

#include "tests/another_user.h"
#include "tests/temporary_folder.h"

namespace clinfer::test {

// `tmp_` is as /tmp is: everyone makes files, and nobody touches those of others. `home_` is the victim's.
class TwoUsers : public testing::Test {
 protected:
  void SetUp() override {
    NEEDS_ANOTHER_USER();
    ASSERT_EQ(chmod((folder_ / "").c_str(), 0755), 0);
    ASSERT_EQ(mkdir(tmp_.c_str(), 0), 0);
    ASSERT_EQ(chmod(tmp_.c_str(), 01777), 0);
    ASSERT_EQ(mkdir(home_.c_str(), 0700), 0);
    ASSERT_EQ(chown(home_.c_str(), kVictim, kVictim), 0);
  }

  const TemporaryFolder folder_;
  const std::string tmp_ = folder_ / "tmp", home_ = folder_ / "home";
};

}  // namespace clinfer::test
