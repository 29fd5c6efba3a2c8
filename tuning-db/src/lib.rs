//! The tuning database.
