// As kernels/pch/standard.hpp, for test programs.
#include <gtest/gtest.h>

#include "kernels/pch/standard.hpp"
