// etwgen: writes traces of any size whose structure and statistics are those of real ones.
#include "calibration.hpp"
#include "defects.hpp"
#include "generate.hpp"
#include "planted_pdb.hpp"

#include "tools/process.hpp"
#include "write/etl_writer.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>

namespace etwrelog::gen {
namespace {

constexpr int kUsage = 2; // exit status

// What this program calls an option of the library.
std::string_view flag_name(Option option) {
  return option == Option::replace ? "--force" : option == Option::output ? "--output" : option_name(option);
}

int report(const Error &error) {
  process::print_message(fmt::format("etwgen: error: {}\n", error.message(flag_name)));
  return error.kind == ErrorKind::usage ? kUsage : 1;
}

int run(int argc, char **argv) {
  CLI::App app("Generates an ETW trace of a simulated machine.", "etwgen");
  Options options;
  std::string profile = "real", output, codec = "none", truth_path;
  std::uint64_t size = 0, buffer_size = options.buffer_size;
  double duration = 0;
  bool force = false, dry_run = false, check = false;
  std::vector<std::string> names;
  for (const Profile &p : all_profiles())
    names.emplace_back(p.name);
  CLI::Option *profile_option = app.add_option("--profile", profile, "What the machine does")
                                    ->check(CLI::IsMember(names))
                                    ->capture_default_str();
  app.add_option("-o,--output", output, "Trace to write");
  CLI::Option *size_option = app.add_option("--size", size, "Size before compression, such as 64M or 4G")
                                 ->transform(CLI::AsSizeValue(false));
  CLI::Option *duration_option = app.add_option("--duration", duration, "Simulated time, such as 90s or 30m")
                                     ->transform(CLI::AsNumberWithUnit(std::map<std::string, double>{
                                         {"s", 1}, {"m", 60}, {"h", 3600}, {"ms", 0.001}}));
  app.add_option("--seed", options.seed)->capture_default_str();
  app.add_option("--cpus", options.cpus, "Processors of the machine (default: those of the profile)")
      ->check(CLI::Range(1, 1024));
  app.add_option("--processes", options.processes)->check(CLI::Range(2, 1000))->capture_default_str();
  app.add_option("--codec", codec)->check(CLI::IsMember({"none", "xpress", "lznt1"}))->capture_default_str();
  app.add_flag("--stack-cache", options.stack_cache,
               "Stacks by reference, as the kernel's stack cache writes them");
  app.add_option("--pointer-size", options.pointer_size)->check(CLI::IsMember({4, 8}))->capture_default_str();
  app.add_option("--buffer-size", buffer_size)
      ->transform(CLI::AsSizeValue(false))
      ->check(CLI::Range(8192, 16 << 20))
      ->capture_default_str();
  app.add_option("--threads", options.threads, "0: all processors")->capture_default_str();
  std::vector<std::string> pdbs;
  app.add_option("--pdb", pdbs,
                 "PDBs whose code the first program runs; --truth tells how many samples lie at which RVA");
  std::vector<std::string> defect_names;
  app.add_option("--defects", defect_names, "Damage to plant, recorded in OUTPUT.truth.json")
      ->delimiter(',')
      ->check(CLI::IsMember({"cut-tail", "unclosed", "zero-saved-offset", "bit-flips", "lost-buffers",
                             "out-of-order", "clock-jump", "pid-reuse", "foreign-bytes"}));
  std::string schemas;
  app.add_option(
         "--schemas", schemas,
         "all: also events of every type of TraceLogging, EventInfo records, EventSource manifests and WPP; "
         "--truth says what they say, and has the message formats")
      ->check(CLI::IsMember({"all"}));
  app.add_option("--truth", truth_path, "Write what the trace holds, as JSON");
  app.add_flag("-f,--force", force, "Replace an existing output");
  app.add_flag("--dry-run", dry_run, "Generate, count and report, but write no trace");
  app.add_flag("--check-calibration", check, "Measure the profiles against the published figures and exit");
  app.failure_message([](const CLI::App *, const CLI::Error &error) {
    return fmt::format("etwgen: error: {}; \"etwgen --help\" lists the options\n", error.what());
  });
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError &error) {
    return app.exit(error) == 0 ? 0 : kUsage;
  }
  options.profile = find_profile(profile);
  options.codec = codec == "xpress" ? Codec::xpress : codec == "lznt1" ? Codec::lznt1 : Codec::none;
  options.buffer_size = static_cast<std::uint32_t>(buffer_size);
  options.schemas = !schemas.empty();
  if (*size_option) options.size = size;
  if (*duration_option) options.duration_s = duration;
  if (check)
    return check_calibration(*profile_option ? options.profile : nullptr, options.size, options.seed,
                             options.threads);
  if (output.empty() && !dry_run) {
    process::print_message("etwgen: error: no output; give -o FILE or --dry-run\n");
    return kUsage;
  }

  for (const std::string &path : pdbs) {
    Result<PlantedPdb> pdb = read_planted_pdb(path);
    if (!pdb) return report(pdb.error());
    options.pdbs.push_back(*std::move(pdb));
  }

  std::vector<Defect> defects;
  for (const std::string &name : defect_names)
    defects.push_back(*find_defect(name));
  auto wants = [&defects](Defect d) { return std::ranges::find(defects, d) != defects.end(); };
  options.clock_jump = wants(Defect::clock_jump);
  options.pid_reuse = wants(Defect::pid_reuse);
  if (!defects.empty() && truth_path.empty()) truth_path = output + ".truth.json";

  std::optional<base::OutputFile> truth_file;
  if (!truth_path.empty()) {
    if (!dry_run && base::place_of(truth_path) == base::place_of(output)) {
      process::print_message("etwgen: error: --truth names the output itself\n");
      return kUsage;
    }
    Result<base::OutputFile> file = base::OutputFile::create(truth_path, force);
    if (!file) return report(file.error());
    truth_file.emplace(std::move(*file));
  }

  const auto started = std::chrono::steady_clock::now();
  Result<Generated> generated = Error{};
  std::string planted = "[]";
  if (dry_run) {
    NullSink sink;
    generated = generate(options, sink);
  } else {
    Result<base::OutputFile> file = base::OutputFile::create(output, force);
    if (!file) return report(file.error());
    write::EtlWriter sink(std::move(*file));
    DefectSink damaged(defects, sink);
    generated = generate(options, damaged);
    if (!generated) return report(generated.error());
    if (Result<void> ended = damaged.end(); !ended) return report(ended.error());
    if (Result<void> finished = sink.finish(generated->end_time); !finished) return report(finished.error());
    if (wants(Defect::unclosed))
      if (Result<void> left_open = unclose(output); !left_open) return report(left_open.error());
    planted = damaged.planted(*generated);
  }
  if (!generated) return report(generated.error());
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count();
  const Truth &t = generated->truth;
  if (truth_file) {
    const std::string text = t.json(planted);
    const Bytes bytes(reinterpret_cast<const std::uint8_t *>(text.data()), text.size());
    if (Result<void> written = truth_file->append(bytes); !written) return report(written.error());
    if (Result<void> committed = truth_file->commit(); !committed) return report(committed.error());
  }
  process::print_message(fmt::format(
      "{}: {:.1f} MB, {:.1f} s simulated, {} events, {} stacks ({} distinct, {:.1f} MB); {:.2f} s, "
      "{:.0f} MB/s\n",
      profile, static_cast<double>(t.raw_bytes) / 1e6, generated->seconds, t.events(), t.stack_events(),
      t.distinct_stacks(), static_cast<double>(t.stack_bytes()) / 1e6, seconds,
      static_cast<double>(t.raw_bytes) / 1e6 / seconds));
  return 0;
}

} // namespace
} // namespace etwrelog::gen

int main(int argc, char **argv) {
  etwrelog::process::open_standard_streams();
  return etwrelog::gen::run(argc, argv);
}
