// The sink that writes a run of a program as JSON.
#pragma once

#include "schema/program.hpp"
#include "schema/value_text.hpp"

namespace etwrelog::schema {

// One value; strings with their quotes.
void append_value(std::string &out, const Op &op, Bytes data, unsigned pointer_size, const ValueMap *map);

class JsonSink {
public:
  JsonSink(std::string &out, const Decoder::Program &program, unsigned pointer_size,
           const JsonOptions &options)
      : out_(out), program_(program), pointer_size_(pointer_size), maps_(options.maps), start_(out.size()) {}

  void value(const Op &op, Bytes data) {
    key(op);
    append_value(out_, op, data, pointer_size_, map_of(op));
    odd_ = odd_ || (op.type >= FieldType::astr && op.type <= FieldType::wstr && has_control(op, data));
  }
  void begin_structure(const Op &op) { key(op), open('{'); }
  void end_structure(const Op &) { close('}'); }
  void begin_array(const Op &op, Bytes) { key(op), open('['); }
  void end_array(const Op &, std::uint32_t, Bytes) { close(']'); }
  void begin_element(const Op &) { separate(), open('{'); }
  void end_element(const Op &) { close('}'); }
  void element(const Op &op, Bytes data) {
    separate();
    append_value(out_, op, data, pointer_size_, map_of(op));
  }
  [[nodiscard]] std::size_t mark() const { return out_.size(); }
  void rollback(std::size_t mark) { out_.resize(mark); }
  [[nodiscard]] bool full() const { return out_.size() - start_ > kMaxText; }

  // A string holds control characters: it may be none at all.
  [[nodiscard]] bool odd() const { return odd_; }

private:
  void separate() {
    const char last = out_.empty() ? '{' : out_.back();
    if (last != '{' && last != '[') out_ += ',';
  }
  void key(const Op &op) {
    separate();
    out_ += program_.key(op);
  }
  void open(char c) { out_ += c; }
  void close(char c) { out_ += c; }
  [[nodiscard]] const ValueMap *map_of(const Op &op) const {
    return maps_ && op.map >= 0 ? program_.schema->maps[static_cast<std::size_t>(op.map)].get() : nullptr;
  }
  [[nodiscard]] static bool has_control(const Op &op, Bytes data) {
    const std::size_t unit = op.type == FieldType::wstr ? 2 : 1;
    for (std::size_t i = 0; i + unit <= data.size(); i += unit) {
      const unsigned c = unit == 2 ? load<std::uint16_t>(data.data() + i) : data[i];
      if (c > 0 && c < 0x20) return true;
    }
    return false;
  }

  std::string &out_;
  const Decoder::Program &program_;
  unsigned pointer_size_;
  bool maps_, odd_ = false;
  std::size_t start_;
};

} // namespace etwrelog::schema
