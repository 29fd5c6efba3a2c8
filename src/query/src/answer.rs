//! What becomes of an answer: a table for people, or lines and files for programs.

mod csv_lines;

mod grid;

mod json;

mod parquet_out;

pub use csv_lines::CsvLines;
pub use grid::Grid;
pub use json::JsonRows;
pub use parquet_out::ParquetOut;
