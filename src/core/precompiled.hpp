// Compiled once a library (cpp_pch), since reading these costs most files more than their own lines do. Nothing of this
// project is here, and files include what they use all the same: -Db_pch=false builds without it. (No #pragma once:
// compilers warn of one in the file that they are given.)
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>
