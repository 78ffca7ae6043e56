#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <exception>
#include <vector>

#include "cli/commands.h"
#include "format/schema.h"
#include "report/text.h"

int main(int argc, char** argv) {
  using namespace tprof;
  CLI::App app("Counts and times the communication of a training job.", "tprof");
  app.set_version_flag("--version", std::string("tprof ") + kVersion + " (" + kSchema + ")");
  app.require_subcommand(1);
  app.failure_message([](const CLI::App*, const CLI::Error& e) {
    return fmt::format("tprof: {} (tprof --help tells more)\n", report::printable(e.what()));
  });
  const std::vector<cli::Run> commands = {
      // One a line, in the order in which --help lists them.
      cli::add_run(app),    cli::add_merge(app),   cli::add_summary(app),   cli::add_check(app),
      cli::add_doctor(app), cli::add_recover(app), cli::add_anonymize(app),
  };
  try {
    app.parse(argc, argv);
    for (const cli::Run& command : commands) {
      if (const int code = command(); code >= 0) return code;
    }
  } catch (const CLI::ParseError& e) {
    return app.exit(e) == 0 ? cli::kOk : cli::kBadUsage;
  } catch (const std::exception& e) {
    fmt::print(stderr, "tprof: {}\n", report::printable(e.what()));
    return cli::kBadUsage;
  }
  return cli::kBadUsage;
}
