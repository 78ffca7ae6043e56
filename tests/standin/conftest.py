# The stand-in's own tests are programs of its build: ctest runs them.
collect_ignore = ["test"]
