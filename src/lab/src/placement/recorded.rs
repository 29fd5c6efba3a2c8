//! Recorded costs of blocks: from CSV, or from the mini-app's telemetry in Parquet.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail, ensure};
use colltune_placement::curve::{Curve, LEVEL_MAX, Octant};
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::Row;

/// What was recorded, step after step.
pub struct Recording {
    pub steps: Vec<Step>,
    /// The level of an unrefined block, where coordinates are known.
    pub root_level: Option<u8>,
}

/// One step; blocks stand along the Hilbert curve, or by their number where no coordinates are known.
#[derive(Default)]
pub struct Step {
    pub step: u64,
    /// The name of each block, the same in every step.
    pub blocks: Vec<u64>,
    pub costs: Vec<f64>,
    /// One for each block, or none at all.
    pub octants: Vec<Octant>,
    /// What each block needs of memory, or nothing at all.
    pub memory: Vec<u64>,
}

/// One record: what a block cost in a step.
struct Record {
    step: u64,
    block: u64,
    cost: f64,
    leaf: Option<Leaf>,
    memory: Option<u64>,
}

/// Where a block lies, counted in blocks of its own level; level 0 is not refined.
#[derive(Clone, Copy)]
struct Leaf {
    at: [u32; 3],
    level: u8,
}

/// Reads a CSV file, a Parquet file of block telemetry, or a folder with `blocks.*.parquet`.
pub fn read(path: &Path, dimensions: u8) -> anyhow::Result<Recording> {
    let mut records = Vec::new();
    for file in files(path)? {
        match file
            .extension()
            .is_some_and(|extension| extension == "parquet")
        {
            true => read_parquet(&file, &mut records),
            false => read_csv(&file, &mut records),
        }
        .with_context(|| format!("read {}", file.display()))?;
    }
    ensure!(
        !records.is_empty(),
        "read {}: it has no records",
        path.display()
    );
    sort(records, dimensions).with_context(|| format!("read {}", path.display()))
}

fn files(path: &Path) -> anyhow::Result<Vec<PathBuf>> {
    if !path.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let entries = std::fs::read_dir(path).with_context(|| format!("read {}", path.display()))?;
    let is_of_blocks = |file: &PathBuf| {
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with("blocks.") && name.ends_with(".parquet")
    };
    let mut files: Vec<PathBuf> = entries
        .flatten()
        .map(|entry| entry.path())
        .filter(is_of_blocks)
        .collect();
    files.sort();
    if files.is_empty() {
        bail!(
            "find blocks.*.parquet in {}: record with block telemetry on",
            path.display()
        );
    }
    Ok(files)
}

/// Columns step, block, cost, perhaps memory, and all or none of x, y, z, level; z may be missing in two dimensions.
fn read_csv(path: &Path, records: &mut Vec<Record>) -> anyhow::Result<()> {
    let mut reader = csv::ReaderBuilder::new()
        .trim(csv::Trim::All)
        .from_path(path)?;
    let header = reader.headers()?.clone();
    let column = |name: &str| header.iter().position(|column| column == name);
    let needed = |name: &str| {
        column(name).with_context(|| {
            let found: Vec<&str> = header.iter().collect();
            format!("find the column {name} in the first line ({}); it has to be step,block,cost[,x,y,z,level][,memory]", found.join(","))
        })
    };
    let (step, block, cost) = (needed("step")?, needed("block")?, needed("cost")?);
    let place = match (column("x"), column("y"), column("level")) {
        (None, None, None) => None,
        _ => Some((needed("x")?, needed("y")?, column("z"), needed("level")?)),
    };
    let memory = column("memory");
    for row in reader.records() {
        let row = row?;
        let line = row.position().map_or(0, csv::Position::line);
        let record = Record {
            step: number(&row, step, "step", line)?,
            block: number(&row, block, "block", line)?,
            cost: cost_of(&row, cost, line)?,
            memory: match memory {
                None => None,
                Some(column) => Some(number(&row, column, "memory", line)?),
            },
            leaf: match place {
                None => None,
                Some((x, y, z, level)) => Some(Leaf {
                    at: [
                        number(&row, x, "x", line)?,
                        number(&row, y, "y", line)?,
                        z.map_or(Ok(0), |z| number(&row, z, "z", line))?,
                    ],
                    level: number(&row, level, "level", line)?,
                }),
            },
        };
        records.push(record);
    }
    Ok(())
}

fn number<T: std::str::FromStr>(
    row: &csv::StringRecord,
    column: usize,
    name: &str,
    line: u64,
) -> anyhow::Result<T> {
    let text = row.get(column).unwrap_or("");
    let read = text.parse().ok();
    read.with_context(|| {
        format!("use {name} {text:?} in line {line}: it is no whole number of at least 0 in range")
    })
}

fn cost_of(row: &csv::StringRecord, column: usize, line: u64) -> anyhow::Result<f64> {
    let text = row.get(column).unwrap_or("");
    let read = text
        .parse()
        .ok()
        .filter(|cost: &f64| cost.is_finite() && *cost >= 0.0);
    read.with_context(|| {
        format!("use cost {text:?} in line {line}: it is no finite number of at least 0")
    })
}

/// Columns step, block and compute_ns, as the mini-app writes them; others are ignored.
fn read_parquet(path: &Path, records: &mut Vec<Record>) -> anyhow::Result<()> {
    let reader = SerializedFileReader::new(File::open(path)?)?;
    for (index, row) in reader.get_row_iter(None)?.enumerate() {
        let row = row?;
        let column = |name: &str| {
            whole(&row, name).with_context(|| format!("find a whole number in column {name} of row {index}; block telemetry has step, block, compute_ns"))
        };
        let block = column("block")?;
        records.push(Record {
            step: column("step")?,
            block,
            cost: column("compute_ns")? as f64,
            leaf: Some(unpacked(block)),
            memory: None,
        });
    }
    Ok(())
}

fn whole(row: &Row, name: &str) -> Option<u64> {
    use parquet::record::Field;
    let (_, field) = row.get_column_iter().find(|(column, _)| *column == name)?;
    match field {
        Field::Byte(v) => u64::try_from(*v).ok(),
        Field::Short(v) => u64::try_from(*v).ok(),
        Field::Int(v) => u64::try_from(*v).ok(),
        // A block's word may use the sign bit of a column without an unsigned type.
        Field::Long(v) => Some(*v as u64),
        Field::UByte(v) => Some(u64::from(*v)),
        Field::UShort(v) => Some(u64::from(*v)),
        Field::UInt(v) => Some(u64::from(*v)),
        Field::ULong(v) => Some(*v),
        _ => None,
    }
}

/// The mini-app's word of a leaf: the level above three coordinates of 19 bits, x lowest.
fn unpacked(word: u64) -> Leaf {
    let part = |shift: u32| (word >> shift) as u32 & ((1 << 19) - 1);
    Leaf {
        at: [part(0), part(19), part(38)],
        level: (word >> 57) as u8,
    }
}

/// The blocks of a step by place on the curve and number.
type Blocks = BTreeMap<(u64, u64), Entry>;

struct Entry {
    cost: f64,
    octant: Option<Octant>,
    memory: Option<u64>,
}

/// Orders the records by step and curve. Several records of a block in a step are added up.
fn sort(records: Vec<Record>, dimensions: u8) -> anyhow::Result<Recording> {
    let placed = records
        .iter()
        .filter(|record| record.leaf.is_some())
        .count();
    ensure!(
        placed == 0 || placed == records.len(),
        "use coordinates: some records have none"
    );
    let root_level = (placed > 0).then(|| root_level(&records));
    let mut steps: BTreeMap<u64, Blocks> = BTreeMap::new();
    for record in &records {
        let octant = match (root_level, record.leaf) {
            (Some(root_level), Some(leaf)) => {
                Some(octant(root_level, leaf).with_context(|| {
                    format!(
                        "use block {} in step {}: level {} at {:?} is outside 21 levels",
                        record.block, record.step, leaf.level, leaf.at
                    )
                })?)
            }
            _ => None,
        };
        let key = octant.map_or(0, |octant| Curve::Hilbert.key(dimensions, octant));
        let entry = steps
            .entry(record.step)
            .or_default()
            .entry((key, record.block));
        let entry = entry.or_insert(Entry {
            cost: 0.0,
            octant,
            memory: None,
        });
        entry.cost += record.cost;
        entry.memory = entry.memory.max(record.memory);
    }
    let step = |(step, blocks): (u64, Blocks)| Step {
        step,
        costs: blocks.values().map(|entry| entry.cost).collect(),
        octants: blocks.values().filter_map(|entry| entry.octant).collect(),
        memory: blocks.values().filter_map(|entry| entry.memory).collect(),
        blocks: blocks.into_keys().map(|(_, block)| block).collect(),
    };
    Ok(Recording {
        steps: steps.into_iter().map(step).collect(),
        root_level,
    })
}

/// The level at which the root grid fits into a cube.
fn root_level(records: &[Record]) -> u8 {
    let leaves = records.iter().filter_map(|record| record.leaf);
    let roots = leaves.flat_map(|leaf| leaf.at.map(|c| u64::from(c) >> leaf.level.min(32)));
    let most = roots.max().unwrap_or(0) + 1;
    most.next_power_of_two().trailing_zeros() as u8
}

fn octant(root_level: u8, leaf: Leaf) -> Option<Octant> {
    let level = root_level
        .checked_add(leaf.level)
        .filter(|&level| level <= LEVEL_MAX)?;
    let [x, y, z] = leaf.at.map(|c| c.checked_mul(1 << (LEVEL_MAX - level)));
    let octant = Octant::new(x?, y?, z?, level);
    octant.is_valid().then_some(octant)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn from_csv(text: &str) -> anyhow::Result<Recording> {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("costs.csv");
        std::fs::write(&file, text).unwrap();
        read(&file, 3)
    }

    #[test]
    fn records_are_ordered_by_step_and_along_the_curve() {
        let text = "step,block,cost,x,y,z,level\n1,7,2.5,1,0,0,0\n0,7,1.5,1,0,0,0\n0,3,1,0,0,0,0\n0,9,4,2,1,0,1\n";
        let recording = from_csv(text).unwrap();
        assert_eq!(recording.root_level, Some(1));
        assert_eq!(recording.steps.len(), 2);
        let first = &recording.steps[0];
        assert_eq!(first.blocks[0], 3);
        assert!(first.blocks.contains(&7) && first.blocks.contains(&9));
        let keys: Vec<u64> = first
            .octants
            .iter()
            .map(|&o| Curve::Hilbert.key(3, o))
            .collect();
        assert!(keys.is_sorted());
        assert_eq!(recording.steps[1].costs, [2.5]);
    }

    #[test]
    fn without_coordinates_blocks_stand_by_number_and_repeated_ones_add_up() {
        let recording = from_csv("cost, block, step\n2, 5, 0\n1, 4, 0\n0.5, 5, 0\n").unwrap();
        assert_eq!(recording.steps[0].blocks, [4, 5]);
        assert_eq!(recording.steps[0].costs, [1.0, 2.5]);
        assert!(recording.root_level.is_none() && recording.steps[0].octants.is_empty());
    }

    #[test]
    fn what_is_wrong_is_named_with_its_line_and_value() {
        for (text, words) in [
            (
                "step,block\n0,1\n",
                ["column cost", "step,block,cost[,x,y,z,level][,memory]"],
            ),
            ("step,block,cost\n0,1,3\n0,2,-4\n", ["\"-4\"", "line 3"]),
            ("step,block,cost\n0,1,NaN\n", ["\"NaN\"", "line 2"]),
            ("step,block,cost\n0,x,1\n", ["block \"x\"", "line 2"]),
            (
                "step,block,cost,x,y\n0,1,1,0,0\n",
                ["column level", "first line"],
            ),
            (
                "step,block,cost,x,y,level\n0,1,1,0,0,40\n",
                ["block 1", "level 40"],
            ),
            ("step,block,cost\n", ["no records", "costs.csv"]),
        ] {
            let error = format!("{:#}", from_csv(text).err().unwrap());
            assert!(words.iter().all(|word| error.contains(word)), "{error}");
        }
        let error = format!(
            "{:#}",
            read(Path::new("/does/not/exist.csv"), 3).err().unwrap()
        );
        assert!(error.contains("/does/not/exist.csv"), "{error}");
    }

    #[test]
    fn a_word_of_the_mini_app_is_its_level_and_coordinates() {
        let leaf = unpacked((3 << 57) | (5 << 38) | (6 << 19) | 7);
        assert_eq!((leaf.at, leaf.level), ([7, 6, 5], 3));
    }
}
