//! Tables on disk: Parquet files of plain columns, with words in the footer for ourselves.
//!
//! A column is made when it is written and is gone afterwards, so that a table costs the memory of its widest
//! column beside what it is made of. A reader asks for columns by name: a file of an earlier version lacks some.

use std::fs::File;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use colltune_files::Links;
use parquet::basic::{Compression, Encoding};
use parquet::data_type::{
    BoolType, ByteArray, ByteArrayType, DataType, DoubleType, Int32Type, Int64Type,
};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;
use parquet::schema::types::ColumnPath;

/// A column of so many equal values takes a few bytes of a file and 128 MiB of memory.
const ROWS_MAX: usize = 1 << 24;

/// The values of one column. Whole numbers are unsigned; a missing one is unknown.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Values {
    Long(Vec<u64>),
    Unknown(Vec<Option<u64>>),
    Int(Vec<u32>),
    Float(Vec<f64>),
    Word(Vec<ByteArray>),
    Bool(Vec<bool>),
}

/// A column to be written.
pub(crate) struct Column<'a> {
    pub name: &'static str,
    pub kind: Kind,
    pub values: Box<dyn Fn() -> Result<Values, ParquetError> + 'a>,
}

/// What a column holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Long,
    /// Whole numbers that differ little from row to row.
    Growing,
    Unknown,
    Int,
    Float,
    Word,
    Bool,
}

impl Values {
    /// The values of the rows that are wanted.
    pub fn only(self, wanted: impl Fn(usize) -> bool) -> Values {
        fn some<T>(values: Vec<T>, wanted: impl Fn(usize) -> bool) -> Vec<T> {
            let numbered = values.into_iter().enumerate();
            numbered
                .filter_map(|(row, value)| wanted(row).then_some(value))
                .collect()
        }
        match self {
            Values::Long(values) => Values::Long(some(values, wanted)),
            Values::Unknown(values) => Values::Unknown(some(values, wanted)),
            Values::Int(values) => Values::Int(some(values, wanted)),
            Values::Float(values) => Values::Float(some(values, wanted)),
            Values::Word(values) => Values::Word(some(values, wanted)),
            Values::Bool(values) => Values::Bool(some(values, wanted)),
        }
    }

    /// Puts another column of the same kind behind this one.
    pub fn append(&mut self, other: Values) {
        match (self, other) {
            (Values::Long(all), Values::Long(new)) => all.extend(new),
            (Values::Unknown(all), Values::Unknown(new)) => all.extend(new),
            (Values::Int(all), Values::Int(new)) => all.extend(new),
            (Values::Float(all), Values::Float(new)) => all.extend(new),
            (Values::Word(all), Values::Word(new)) => all.extend(new),
            (Values::Bool(all), Values::Bool(new)) => all.extend(new),
            _ => unreachable!("a column has one kind"),
        }
    }
}

impl<'a> Column<'a> {
    pub fn new(name: &'static str, kind: Kind, values: impl Fn() -> Values + 'a) -> Column<'a> {
        Column::read(name, kind, move || Ok(values()))
    }

    /// A column that is read when it is written, which may fail.
    pub fn read(
        name: &'static str,
        kind: Kind,
        values: impl Fn() -> Result<Values, ParquetError> + 'a,
    ) -> Column<'a> {
        let values = Box::new(values);
        Column { name, kind, values }
    }
}

impl Kind {
    /// In a word, for those who ask: `integer`, `real`, `text` or `boolean`.
    pub fn holds(self) -> &'static str {
        match self {
            Kind::Long | Kind::Growing | Kind::Unknown | Kind::Int => "integer",
            Kind::Float => "real",
            Kind::Word => "text",
            Kind::Bool => "boolean",
        }
    }

    /// A column without a row.
    pub fn none(self) -> Values {
        match self {
            Kind::Long | Kind::Growing => Values::Long(Vec::new()),
            Kind::Unknown => Values::Unknown(Vec::new()),
            Kind::Int => Values::Int(Vec::new()),
            Kind::Float => Values::Float(Vec::new()),
            Kind::Word => Values::Word(Vec::new()),
            Kind::Bool => Values::Bool(Vec::new()),
        }
    }

    /// A column of zeros.
    pub fn zeros(self, rows: usize) -> Values {
        match self {
            Kind::Float => Values::Float(vec![0.0; rows]),
            _ => Values::Long(vec![0; rows]),
        }
    }

    fn declaration(self) -> (&'static str, &'static str) {
        match self {
            Kind::Long | Kind::Growing => ("REQUIRED INT64", " (INTEGER(64, false))"),
            Kind::Unknown => ("OPTIONAL INT64", " (INTEGER(64, false))"),
            Kind::Int => ("REQUIRED INT32", " (INTEGER(32, false))"),
            Kind::Float => ("REQUIRED DOUBLE", ""),
            Kind::Word => ("REQUIRED BYTE_ARRAY", " (UTF8)"),
            Kind::Bool => ("REQUIRED BOOLEAN", ""),
        }
    }
}

/// Writes and syncs a table. What `footer` holds is found again by [`Table::footer`].
pub(crate) fn write(
    file: File,
    name: &str,
    footer: Vec<(&str, String)>,
    columns: &[Column<'_>],
) -> Result<(), ParquetError> {
    let mut schema = format!("message {name} {{\n");
    for Column { name, kind, .. } in columns {
        let (kind, meaning) = kind.declaration();
        schema += &format!("    {kind} {name}{meaning};\n");
    }
    let schema = Arc::new(parse_message_type(&(schema + "}"))?);
    let footer = footer
        .into_iter()
        .map(|(key, text)| KeyValue::new(key.to_owned(), text));
    let mut properties = WriterProperties::builder()
        .set_compression(Compression::SNAPPY)
        .set_statistics_enabled(EnabledStatistics::Chunk)
        .set_created_by(format!("colltune {}", env!("CARGO_PKG_VERSION")))
        .set_key_value_metadata(Some(footer.collect()));
    for column in columns.iter().filter(|column| column.kind == Kind::Growing) {
        let path = ColumnPath::from(column.name);
        properties = properties
            .set_column_dictionary_enabled(path.clone(), false)
            .set_column_encoding(path, Encoding::DELTA_BINARY_PACKED);
    }
    let mut writer = SerializedFileWriter::new(file, schema, Arc::new(properties.build()))?;
    let mut group = writer.next_row_group()?;
    for column in columns {
        write_column(&mut group, (column.values)()?)?;
    }
    group.close()?;
    writer.into_inner()?.sync_all()?;
    Ok(())
}

fn write_column(
    group: &mut SerializedRowGroupWriter<'_, File>,
    values: Values,
) -> Result<(), ParquetError> {
    let signed = |values: Vec<u64>| values.into_iter().map(|value| value as i64).collect();
    match values {
        Values::Long(values) => batch::<Int64Type>(group, signed(values), None),
        Values::Unknown(values) => {
            let levels: Vec<i16> = values.iter().map(|value| value.is_some().into()).collect();
            batch::<Int64Type>(
                group,
                signed(values.into_iter().flatten().collect()),
                Some(&levels),
            )
        }
        Values::Int(values) => {
            let values = values.into_iter().map(|value| value as i32).collect();
            batch::<Int32Type>(group, values, None)
        }
        Values::Float(values) => batch::<DoubleType>(group, values, None),
        Values::Word(values) => batch::<ByteArrayType>(group, values, None),
        Values::Bool(values) => batch::<BoolType>(group, values, None),
    }
}

fn batch<T: DataType>(
    group: &mut SerializedRowGroupWriter<'_, File>,
    values: Vec<T::T>,
    levels: Option<&[i16]>,
) -> Result<(), ParquetError> {
    let column = group.next_column()?;
    let mut column = column.ok_or_else(|| general("there are too many columns"))?;
    column.typed::<T>().write_batch(&values, levels, None)?;
    column.close()
}

fn general(problem: &str) -> ParquetError {
    ParquetError::General(problem.to_owned())
}

/// A table to be read.
pub(crate) struct Table {
    reader: SerializedFileReader<File>,
    names: Vec<String>,
    /// The rows that are read.
    wanted: Range<usize>,
}

impl Table {
    pub fn open(path: &Path) -> Result<Table, ParquetError> {
        let reader = SerializedFileReader::new(colltune_files::open(path, Links::Follow)?)?;
        let schema = reader.metadata().file_metadata().schema_descr();
        let names = schema
            .columns()
            .iter()
            .map(|column| column.name().to_owned());
        let names = names.collect();
        let rows = reader.metadata().file_metadata().num_rows();
        let rows = usize::try_from(rows).unwrap_or(usize::MAX);
        if rows > ROWS_MAX {
            let problem = format!("it claims {rows} rows, the most that are read is {ROWS_MAX}");
            return Err(ParquetError::General(problem));
        }
        let wanted = 0..rows;
        Ok(Table {
            reader,
            names,
            wanted,
        })
    }

    /// Reads these rows from now on, as far as they are there.
    pub fn read_only(&mut self, rows: Range<usize>) {
        let all = usize::try_from(self.reader.metadata().file_metadata().num_rows()).unwrap_or(0);
        self.wanted = rows.start.min(all)..rows.end.min(all);
    }

    pub fn footer(&self, key: &str) -> Option<&str> {
        let pairs = self
            .reader
            .metadata()
            .file_metadata()
            .key_value_metadata()?;
        let pair = pairs.iter().find(|pair| pair.key == key)?;
        pair.value.as_deref()
    }

    /// How many rows are read.
    pub fn rows(&self) -> usize {
        self.wanted.len()
    }

    pub fn has(&self, name: &str) -> bool {
        self.names.iter().any(|other| other == name)
    }

    pub fn longs(&self, name: &str) -> Result<Vec<u64>, ParquetError> {
        let values = self.plain::<Int64Type>(name)?;
        Ok(values.into_iter().map(|value| value as u64).collect())
    }

    /// A column whose values may be unknown; of a file without it, all are.
    pub fn unknown(&self, name: &str) -> Result<Vec<Option<u64>>, ParquetError> {
        if !self.has(name) {
            return Ok(vec![None; self.rows()]);
        }
        let mut levels = Vec::new();
        let values = self.column::<Int64Type>(name, Some(&mut levels))?;
        let mut values = values.into_iter();
        if levels.len() != self.rows() {
            return Err(general("a column is shorter than the others"));
        }
        let value = |level: i16| {
            (level > 0)
                .then(|| values.next().map(|ns| ns as u64))
                .flatten()
        };
        Ok(levels.into_iter().map(value).collect())
    }

    pub fn ints(&self, name: &str) -> Result<Vec<u32>, ParquetError> {
        let values = self.plain::<Int32Type>(name)?;
        Ok(values.into_iter().map(|value| value as u32).collect())
    }

    pub fn floats(&self, name: &str) -> Result<Vec<f64>, ParquetError> {
        self.plain::<DoubleType>(name)
    }

    pub fn words(&self, name: &str) -> Result<Vec<ByteArray>, ParquetError> {
        self.plain::<ByteArrayType>(name)
    }

    pub fn flags(&self, name: &str) -> Result<Vec<bool>, ParquetError> {
        self.plain::<BoolType>(name)
    }

    /// Any column as it would be written again.
    pub fn values(&self, name: &str, kind: Kind) -> Result<Values, ParquetError> {
        Ok(match kind {
            Kind::Long | Kind::Growing => Values::Long(self.longs(name)?),
            Kind::Unknown => Values::Unknown(self.unknown(name)?),
            Kind::Int => Values::Int(self.ints(name)?),
            Kind::Float => Values::Float(self.floats(name)?),
            Kind::Word => Values::Word(self.words(name)?),
            Kind::Bool => Values::Bool(self.flags(name)?),
        })
    }

    /// A column of which every value is known.
    fn plain<T: DataType>(&self, name: &str) -> Result<Vec<T::T>, ParquetError> {
        let values = self.column::<T>(name, None)?;
        match values.len() == self.rows() {
            true => Ok(values),
            false => Err(general("a column is shorter than the others")),
        }
    }

    /// The wanted rows of one column, without what is unknown; `levels` are above 0 where a row has a value.
    fn column<T: DataType>(
        &self,
        name: &str,
        mut levels: Option<&mut Vec<i16>>,
    ) -> Result<Vec<T::T>, ParquetError> {
        let column = self.names.iter().position(|other| other == name);
        let column = column.ok_or_else(|| general(&format!("there is no column {name:?}")))?;
        let (mut values, mut first) = (Vec::new(), 0);
        for index in 0..self.reader.num_row_groups() {
            let group = self.reader.get_row_group(index)?;
            let end = first + usize::try_from(group.metadata().num_rows()).unwrap_or(0);
            let (from, to) = (self.wanted.start.max(first), self.wanted.end.min(end));
            if from < to {
                let reader = T::get_column_reader(group.get_column_reader(column)?);
                let mut reader = reader.ok_or_else(|| general("a column has another type"))?;
                reader.skip_records(from - first)?;
                reader.read_records(to - from, levels.as_deref_mut(), None, &mut values)?;
            }
            first = end;
        }
        Ok(values)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_column_reads_back_and_what_is_cut_off_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("table.parquet");
        let columns = [
            Column::new("a", Kind::Long, || Values::Long(vec![0, u64::MAX])),
            Column::new("b", Kind::Growing, || Values::Long(vec![7, 9])),
            Column::new("c", Kind::Unknown, || Values::Unknown(vec![None, Some(3)])),
            Column::new("d", Kind::Int, || Values::Int(vec![1, u32::MAX])),
            Column::new("e", Kind::Float, || Values::Float(vec![0.5, -1.0])),
            Column::new("f", Kind::Word, || {
                Values::Word(vec!["x".into(), "y".into()])
            }),
            Column::new("g", Kind::Bool, || Values::Bool(vec![true, false])),
        ];
        let file = File::create(&path).unwrap();
        write(file, "test", vec![("key", "word".to_owned())], &columns).unwrap();
        let table = Table::open(&path).unwrap();
        assert_eq!((table.rows(), table.footer("key")), (2, Some("word")));
        for column in &columns {
            assert_eq!(
                table.values(column.name, column.kind).unwrap(),
                (column.values)().unwrap()
            );
        }
        for rows in [0..1, 1..2, 1..9, 0..0, 5..9] {
            let mut part = Table::open(&path).unwrap();
            part.read_only(rows.clone());
            for column in &columns {
                let expected = (column.values)().unwrap().only(|row| rows.contains(&row));
                assert_eq!(part.values(column.name, column.kind).unwrap(), expected);
            }
        }
        assert_eq!(table.unknown("nowhere").unwrap(), [None, None]);
        assert!(table.longs("nowhere").is_err() && table.longs("e").is_err());
        let bytes = std::fs::read(&path).unwrap();
        for length in (0..bytes.len()).step_by(17) {
            std::fs::write(&path, &bytes[..length]).unwrap();
            assert!(Table::open(&path).is_err(), "{length}");
        }
    }
}
