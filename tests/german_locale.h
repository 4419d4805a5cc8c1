// The locale of an application in Germany, where 1234.5 is written 1.234,5.
#pragma once

#include <clocale>
#include <cstdlib>
#include <locale>

#include "tests/temporary_folder.h"

namespace clinfer {

// While it lives, the process has that locale, for C and C++. The system's sources of locales make
// it; where they are not installed, is_set() is false.
class GermanLocale {
 public:
  GermanLocale() {
    const std::string command =
        "localedef -i de_DE -f UTF-8 '" + folder_ / "de_DE.UTF-8" + "' 2>/dev/null";
    if (std::system(command.c_str()) != 0) return;
    setenv("LOCPATH", (folder_ / "").c_str(), 1);
    is_set_ = std::setlocale(LC_ALL, "de_DE.UTF-8") != nullptr;
    if (is_set_) std::locale::global(std::locale("de_DE.UTF-8"));
  }
  ~GermanLocale() {
    std::locale::global(std::locale::classic());
    std::setlocale(LC_ALL, "C");
    unsetenv("LOCPATH");
  }
  GermanLocale(const GermanLocale&) = delete;
  GermanLocale& operator=(const GermanLocale&) = delete;

  bool is_set() const { return is_set_; }

 private:
  TemporaryFolder folder_;
  bool is_set_ = false;
};

}  // namespace clinfer
