#include "schema/io_requests.hpp"

namespace etwrelog::schema {

std::optional<std::uint16_t> disk_request_begin(std::uint16_t hook) {
  constexpr std::uint16_t kRead = 0x010A, kWrite = 0x010B, kReadInit = 0x010C, kWriteInit = 0x010D,
                          kFlush = 0x010E, kFlushInit = 0x010F;
  switch (hook) {
  case kRead:
  case kReadInit: return kReadInit;
  case kWrite:
  case kWriteInit: return kWriteInit;
  case kFlush:
  case kFlushInit: return kFlushInit;
  default: return std::nullopt;
  }
}

std::optional<std::uint64_t> io_request(const EventView &event, std::uint16_t hook) {
  const kernel::Layout *layout = kernel::find_layout(hook, event.version());
  if (layout == nullptr) return std::nullopt;
  kernel::FieldWalk walk(layout->fields, event.payload(), event.pointer_size());
  const kernel::Field *field = nullptr;
  for (Bytes data; walk.next(field, data);)
    if (const std::string_view name = field->name; name == "IrpPtr" || name == "Irp" || name == "IRP")
      return kernel::field_value(data);
  return std::nullopt;
}

} // namespace etwrelog::schema
