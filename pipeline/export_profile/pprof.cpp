// profile.proto of pprof, in protobuf's wire format by hand: a tag, then a varint or a length and bytes.
#include "export_profile/fit.hpp"

#include "base/errors.hpp"
#include "etwrelog/clock.hpp"

#include <algorithm>
#include <map>
#include <unordered_map>

#include <fmt/format.h>

namespace etwrelog::export_profile {
namespace {

// Of a mapping: the name of its PDB, which is looked for by whoever names its frames later. pprof has no such
// field, and readers skip what they don't know; comments, of which it used to be one, they show.
constexpr unsigned kPdbName = 15;
// Of a function, for the same reader: 1 if it was compiled at run time.
constexpr unsigned kCompiled = 15;

class Message {
public:
  Message &varint(unsigned field, std::uint64_t value) {
    if (value == 0) return *this; // the default
    raw((std::uint64_t{field} << 3) | 0);
    raw(value);
    return *this;
  }
  Message &bytes(unsigned field, std::string_view value) {
    raw((std::uint64_t{field} << 3) | 2);
    raw(value.size());
    data_.append(value);
    return *this;
  }
  Message &append(const Message &fields) {
    data_.append(fields.data_);
    return *this;
  }
  Message &message(unsigned field, const Message &value) { return bytes(field, value.data_); }
  Message &packed(unsigned field, const std::vector<std::uint64_t> &values) {
    Message inside;
    for (const std::uint64_t value : values)
      inside.raw(value);
    return bytes(field, inside.data_);
  }
  [[nodiscard]] const std::string &data() const { return data_; }

private:
  void raw(std::uint64_t value) {
    for (; value >= 0x80; value >>= 7)
      data_ += static_cast<char>(value | 0x80);
    data_ += static_cast<char>(value);
  }
  std::string data_;
};

class PprofStrings {
public:
  std::uint64_t operator()(const std::string &text) {
    const auto [found, fresh] = known_.try_emplace(text, all_.size());
    if (fresh) all_.push_back(text);
    return found->second;
  }
  [[nodiscard]] const std::vector<std::string> &all() const { return all_; }

private:
  std::vector<std::string> all_{""};
  std::unordered_map<std::string, std::uint64_t> known_{{"", 0}};
};

class PprofWriter {
public:
  PprofWriter(const Profile &profile, Out &out)
      : profile_(profile), frames_(profile), out_(out), labels_(profile.threads.size()),
        location_of_frame_(profile.frames.size()) {}

  void write(const ProfileExportOptions &options) {
    const std::string summed = clean(profile_.summed);
    const char *what = timed() && !summed.empty() ? summed.c_str() : profile_kind_name(profile_.kind);
    if (profile_.counts_samples())
      emit(1, value_type("samples", "count"));
    else if (!summed.empty() && profile_.counts())
      emit(1, value_type(summed.c_str(), profile_unit(profile_) == "bytes" ? "bytes" : "count"));
    else if (profile_.counts())
      emit(1, value_type(what, "count"));
    if (timed()) emit(1, value_type(what, "nanoseconds"));
    // In order, so that the file is the same every time.
    const GroupWeights by_thread(profile_, Group::thread);
    for (const GroupWeights::Weight &weight : by_thread.weights())
      emit(2, sample(weight.group(), weight.node(), weight.weight));
    for (std::size_t i = 0; i < profile_.modules.size(); ++i)
      emit(3, mapping(i));
    for (const Message &location : locations_)
      emit(4, location);
    for (const Message &function : functions_)
      emit(5, function);
    const std::uint64_t comment = strings_(clean(options.program + ": " + title_of(profile_, options)));
    const Message type = timed() ? value_type(what, "nanoseconds") : Message();
    for (const std::string &text : strings_.all())
      emit_bytes(6, text);
    Message rest;
    const std::int64_t from = profile_.stretch ? profile_.stretch->from : 0;
    if (profile_.start_time > kUnixEpoch)
      rest.varint(9, static_cast<std::uint64_t>(unix_nanoseconds(profile_.start_time) + from));
    rest.varint(10, static_cast<std::uint64_t>(std::max<std::int64_t>(0, profile_.length())));
    if (timed()) rest.message(11, type).varint(12, profile_.weight_ns());
    rest.varint(13, comment);
    out_.text(rest.data());
  }

private:
  void emit(unsigned field, const Message &message) { out_.text(Message().message(field, message).data()); }
  void emit_bytes(unsigned field, std::string_view bytes) { out_.text(Message().bytes(field, bytes).data()); }

  Message value_type(const char *type, const char *unit) {
    return std::move(Message().varint(1, strings_(type)).varint(2, strings_(unit)));
  }

  // Without the interval nobody knows what time a sample stands for.
  [[nodiscard]] bool timed() const { return profile_.weight_ns() != 0; }

  Message sample(std::uint32_t thread_index, std::uint32_t node, std::uint64_t weight) {
    std::vector<std::uint64_t> locations, chain;
    for (std::uint32_t at = node; at != 0; at = profile_.nodes[at].parent) {
      // Calls that were put in place belong to the location of the frame they stand on, innermost first.
      chain.push_back(profile_.nodes[at].frame);
      const std::uint32_t parent = profile_.nodes[at].parent;
      if (profile_.frames[profile_.nodes[at].frame].kind == FrameKind::inlined && parent != 0) continue;
      locations.push_back(location(chain));
      chain.clear();
    }
    Message out;
    out.packed(1, locations);
    if (profile_.counts_samples() && timed())
      out.packed(2, {weight, weight * profile_.weight_ns()});
    else
      out.packed(2, {weight});
    return std::move(out.append(labels(thread_index)));
  }

  const Message &labels(std::uint32_t thread_index) {
    Message &out = labels_[thread_index];
    if (!out.data().empty()) return out;
    const ProfileThread &thread = profile_.threads[thread_index];
    if (thread.process < profile_.processes.size()) {
      const ProfileProcess &process = profile_.processes[thread.process];
      label(out, "process", process_text(process));
      if (process.pid != kNoIndex) number(out, "pid", process.pid);
    }
    number(out, "tid", thread.tid);
    label(out, "thread", thread_text(thread));
    return out;
  }

  void label(Message &sample, const char *key, const std::string &text) {
    sample.message(3, Message().varint(1, strings_(key)).varint(2, strings_(clean(text))));
  }
  void number(Message &sample, const char *key, std::uint64_t value) {
    sample.message(3, Message().varint(1, strings_(key)).varint(3, value));
  }

  std::uint64_t location(const std::vector<std::uint64_t> &chain) {
    // Nearly all are of one frame.
    std::uint64_t &number = chain.size() == 1 ? location_of_frame_[chain.front()] : known_locations_[chain];
    if (number != 0) return number;
    number = locations_.size() + 1;
    const ProfileFrame &outer = profile_.frames[chain.back()];
    Message out;
    out.varint(1, number)
        .varint(2, outer.module == kNoIndex ? 0 : outer.module + 1)
        .varint(3, outer.address - (outer.caller && outer.address != 0 ? 1 : 0)); // a call, not its return
    for (const std::uint64_t frame : chain)
      out.message(4, Message()
                         .varint(1, function(frame))
                         .varint(2, profile_.frames[frame].line)
                         .varint(3, profile_.frames[frame].column));
    locations_.push_back(std::move(out));
    return number;
  }

  std::uint64_t function(std::uint64_t frame) {
    const std::string &file = profile_.frames[frame].file;
    const auto [found, fresh] =
        known_functions_.try_emplace({frames_.of_frame[frame], file}, functions_.size() + 1);
    if (!fresh) return found->second;
    const std::uint64_t name = strings_(frames_.names[frames_.of_frame[frame]].text);
    // Without a name of the system's, field 3: pprof takes one that is the same for a mangled one, and leaves
    // out of the name what looks like parameters: "readied by game.exe (42)" lost the number.
    const bool compiled = frames_.names[frames_.of_frame[frame]].style == Style::jit;
    functions_.push_back(std::move(Message()
                                       .varint(1, found->second)
                                       .varint(2, name)
                                       .varint(4, strings_(clean(file)))
                                       .varint(kCompiled, compiled ? 1 : 0)));
    return found->second;
  }

  Message mapping(std::size_t index) {
    const ProfileModule &module = profile_.modules[index];
    Message out;
    out.varint(1, index + 1).varint(2, module.base).varint(3, module.base + module.size);
    out.varint(5, strings_(clean(module.path.empty() ? module.name : module.path)));
    if (const std::string id = identity_text(module); !id.empty()) out.varint(6, strings_(id));
    out.varint(7, 1); // has functions
    if (!module.pdb_name.empty()) out.varint(kPdbName, strings_(clean(module.pdb_name)));
    return out;
  }

  const Profile &profile_;
  FrameNames frames_;
  Out &out_;
  PprofStrings strings_;
  std::vector<Message> labels_;                  // by thread, where one was needed
  std::vector<std::uint64_t> location_of_frame_; // as known_locations_, of a frame alone; 0: not known yet
  std::vector<Message> locations_, functions_;
  std::map<std::vector<std::uint64_t>, std::uint64_t> known_locations_;
  std::map<std::pair<std::uint32_t, std::string>, std::uint64_t> known_functions_;
};

} // namespace

Result<void> write_pprof(const Job &job, Out &out) {
  const auto render = [&job](const Profile &profile, const ShownSlices &, Out &to) {
    PprofWriter(profile, to).write(job.options);
  };
  return write_fitting(job, {.timed = false}, render, out);
}

} // namespace etwrelog::export_profile
