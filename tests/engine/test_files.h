// Files for tests: the models that tests/data/make_models.py writes, and temporary ones.
#pragma once

#include <cstdlib>
#include <string>

#include "tests/temporary_folder.h"

namespace clinfer {

// A file that tests/data/make_models.py wrote; the build names the folder.
inline std::string test_data(const std::string& name) {
  const char* folder = std::getenv("CLINFER_TEST_DATA");
  return std::string(folder ? folder : "") + "/" + name;
}

}  // namespace clinfer
