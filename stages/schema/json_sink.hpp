// The sink that writes a run of a program as JSON.
#pragma once

#include "schema/program.hpp"
#include "schema/value_text.hpp"

namespace etwrelog::schema {

// One value; strings with their quotes. `numbers`: as in JsonOptions.
void append_value(std::string &out, const Op &op, Bytes data, unsigned pointer_size, const ValueMap *map,
                  bool numbers = false);

class JsonSink {
public:
  // `payload`: the size of the event's.
  JsonSink(std::string &out, const Decoder::Program &program, unsigned pointer_size, std::size_t payload,
           const JsonOptions &options)
      : program_(program), pointer_size_(pointer_size), maps_(options.maps), numbers_(options.numbers),
        start_(out.size()), most_(max_text(payload)), out_(out), pen_(out) {}

  void value(const Op &op, Bytes data) {
    key(op);
    put(op, data);
  }
  void begin_structure(const Op &op) { key(op), open('{'); }
  void end_structure(const Op &) { close('}'); }
  void begin_array(const Op &op, Bytes) { key(op), open('['); }
  void end_array(const Op &, std::uint32_t, Bytes) { close(']'); }
  void begin_element(const Op &) { separate(), open('{'); }
  void end_element(const Op &) { close('}'); }
  void element(const Op &op, Bytes data) {
    separate();
    put(op, data);
  }
  void elements(const Op &op, Bytes data, std::size_t unit) {
    if (op.way == JsonWay::hex && !numbers_ && !(maps_ && op.map >= 0) && unit >= 4 && !data.empty()) {
      comma_ = true; // they are the first of their array
      return put_quoted_hexes(pen_, data, unit);
    }
    for (std::size_t at = 0; at < data.size(); at += unit)
      element(op, data.subspan(at, unit));
  }
  [[nodiscard]] std::size_t mark() const { return pen_.size(); }
  void rollback(std::size_t mark) { pen_.cut(mark); } // nothing but closing signs can follow
  [[nodiscard]] bool full() const { return pen_.size() - start_ > most_; }
  void flush() { pen_.flush(); } // what was written is in the string only then, or when this ends

private:
  void separate() {
    if (comma_) pen_.put(',');
    comma_ = true;
  }
  void key(const Op &op) {
    pen_.put_padded(program_.key(op).substr(comma_ ? 0 : 1));
    comma_ = true;
  }
  void open(char c) {
    pen_.put(c);
    comma_ = false;
  }
  void close(char c) {
    pen_.put(c);
    comma_ = true;
  }
  // The most frequent kinds of values; append_value() knows all.
  void put(const Op &op, Bytes data) {
    if (maps_ && op.map >= 0) return put_other(op, data);
    switch (op.way) {
    case JsonWay::number: return put_unsigned(pen_, load_unsigned(data));
    case JsonWay::signed_number: return put_signed(pen_, load_signed(data));
    case JsonWay::hex:
      return numbers_ ? put_unsigned(pen_, load_unsigned(data)) : put_quoted_hex(pen_, load_unsigned(data));
    case JsonWay::wide_text: return pen_.put('"'), put_json_utf16(pen_, data), pen_.put('"');
    case JsonWay::narrow_text: return pen_.put('"'), put_json_cp1252(pen_, data), pen_.put('"');
    case JsonWay::other: return put_other(op, data);
    }
  }
  void put_other(const Op &op, Bytes data) {
    pen_.flush();
    append_value(out_, op, data, pointer_size_, map_of(op), numbers_);
  }
  [[nodiscard]] const ValueMap *map_of(const Op &op) const {
    return maps_ && op.map >= 0 ? program_.schema->maps[static_cast<std::size_t>(op.map)].get() : nullptr;
  }

  const Decoder::Program &program_;
  unsigned pointer_size_;
  bool maps_, numbers_, comma_ = false;
  std::size_t start_, most_;
  std::string &out_;
  TextPen pen_; // last: it ends first
};

} // namespace etwrelog::schema
