//! Queries over files and databases: what they answer, what they read for it, and what they never do.

mod made;

mod reading;

mod queries;

mod database;

mod damage;
