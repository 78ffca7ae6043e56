// A web server of one page, for one visitor at a time.
#pragma once

#include <functional>
#include <string>

#include "interpose/base/not_copied.h"

namespace tprof::live {

class Http : NotCopied {
 public:
  // Takes "9464", "127.0.0.1:9464" or "[::1]:9464". Without an address it is the loopback's. Port 0
  // is any free one. Throws BadInput.
  explicit Http(const std::string& address);
  ~Http();

  int fd() const { return fd_; }  // readable: somebody is there
  const std::string& url() const { return url_; }

  // Answers one visitor, or gives up after 5 s. `metrics` makes the page when it is asked for.
  void answer(const std::function<std::string()>& metrics);

 private:
  void turn_away();

  int fd_ = -1;
  int spare_ = -1;  // a spare descriptor, to turn a visitor away if none is free
  std::string url_;
};

}  // namespace tprof::live
