//! Builder harness for tests that start MPI jobs.
