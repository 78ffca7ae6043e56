// A web server of one page, for one visitor at a time.
#pragma once

#include <functional>
#include <string>

namespace tprof::live {

class Http {
 public:
  // "9464", "127.0.0.1:9464" or "[::1]:9464"; without an address the loopback's. Port 0 is any that
  // is free. Throws BadInput.
  explicit Http(const std::string& address);
  Http(const Http&) = delete;
  Http& operator=(const Http&) = delete;
  ~Http();

  int fd() const { return fd_; }  // readable: somebody is there
  const std::string& url() const { return url_; }

  // Answers one visitor, or gives him up after 5 s. `metrics`: the page, made when it is asked for.
  void answer(const std::function<std::string()>& metrics);

 private:
  void turn_away();

  int fd_ = -1;
  int spare_ = -1;  // given up to turn a visitor away where there is no other
  std::string url_;
};

}  // namespace tprof::live
