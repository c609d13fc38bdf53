#include "etlz/model/model.hpp"

namespace etwrelog::etlz {
namespace {

constexpr HeaderClass class_of(format::HeaderType type) {
  using H = format::HeaderType;
  switch (type) {
  case H::system32:
  case H::system64: return HeaderClass::system;
  case H::compact32:
  case H::compact64: return HeaderClass::compact;
  case H::perfinfo32:
  case H::perfinfo64: return HeaderClass::perfinfo;
  case H::full32:
  case H::full64:
  case H::instance32: // the instance part counts as payload
  case H::instance64: return HeaderClass::classic;
  case H::event32:
  case H::event64: return HeaderClass::event;
  default: return HeaderClass::bare;
  }
}
constexpr auto kClasses = [] {
  std::array<HeaderClass, 256> table{};
  for (unsigned i = 0; i < 256; ++i)
    table[i] = class_of(static_cast<format::HeaderType>(i));
  return table;
}();

} // namespace

HeaderClass header_class(format::HeaderType type) {
  return kClasses[static_cast<std::size_t>(type)];
}

} // namespace etwrelog::etlz
