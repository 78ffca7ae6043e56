// A web server with one page, for one client at a time.
#pragma once

#include <functional>
#include <string>

#include "interpose/base/not_copied.h"

namespace tprof::live {

class Http : NotCopied {
 public:
  // Takes "9464", "127.0.0.1:9464" or "[::1]:9464". The default address is the loopback, and port 0
  // means any free port. Throws BadInput.
  explicit Http(const std::string& address);
  ~Http();

  int fd() const { return fd_; }  // readable: a client is waiting
  const std::string& url() const { return url_; }

  // Answers one client, or gives up after 5 s. `metrics` makes the page.
  void answer(const std::function<std::string()>& metrics);

 private:
  void turn_away();

  int fd_ = -1;
  int spare_ = -1;  // a spare descriptor, to reject a client when none is free
  std::string url_;
};

}  // namespace tprof::live
