// Code that a runtime made: which method lay at an address of a process, when.
#pragma once

#include "profile/records.hpp"

#include <unordered_map>

namespace etwrelog::profile {

struct MethodRecord {
  Moment at;
  enum class What : std::uint8_t {
    load,
    unload,
    rundown
  } what = What::load; // a rundown was there before, too
  std::uint32_t pid = 0, flags = 0;
  std::uint64_t id = 0, rejit = 0, module = 0, start = 0, size = 0;
  std::string name; // "Namespace.Type.Method", the function's name for scripts
  bool script = false;
};
struct ManagedModuleRecord {
  std::uint32_t pid = 0;
  std::uint64_t id = 0;
  std::string path;
};

class Methods {
public:
  static constexpr std::uint32_t kNone = 0xFFFF'FFFF;
  struct Method {
    std::uint32_t pid = 0;
    std::uint64_t start = 0, end = 0;
    std::int64_t from = 0, to = 0;
    std::string name, tier, module; // module: of the runtime, "Contoso.dll"; empty if not known
    bool script = false;
  };
  [[nodiscard]] std::uint32_t find(std::uint32_t, std::int64_t, std::uint64_t) const { return kNone; }
  [[nodiscard]] std::uint32_t epoch(std::uint32_t, std::int64_t) const { return 0; }
  [[nodiscard]] const Method &operator[](std::uint32_t i) const { return methods_[i]; }

private:
  std::vector<Method> methods_;
};

} // namespace etwrelog::profile
