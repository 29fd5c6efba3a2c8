//! What was measured of a machine: `calibration.toml`, from which times are predicted.
//!
//! ```toml
//! schema = 4
//! library = "openmpi-4.1.4"
//! machine = "hydra"
//! nodes = 4
//! ppn = 2
//! reduce_per_byte_ns = 0.1
//! copy_per_byte_ns = 0.08
//! loaded_per_byte_ns = 0.14
//! [inside]
//! latency_ns = 250.0
//! overhead_ns = 150.0
//! gap_ns = 100.0
//! per_byte_ns = 0.12
//! rendezvous_bytes = 4096.0
//! burst_bytes = 0.0
//! [cores]
//! per_node = 2.0
//! turn_ns = 1300.0
//! ```
//! and `[between]` with the keys of `[inside]`. A level that could not be measured, because the job had one
//! node or one rank on each, is missing; what is usual stands for it. Where no ranks shared a core, `[cores]` is
//! missing.

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::algorithm::simulate::{Cores, Impossible, Link, Machine};

/// The version of the layout of `calibration.toml`. Versions 1 to 3, which are read too, know no load, 1 and 2 no cores, and
/// the first no bursts.
pub const SCHEMA: u32 = 4;

/// The name of the file in the folder of its library.
pub const FILE: &str = "calibration.toml";

/// The parameters of one machine with one library.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Calibration {
    pub schema: u32,
    /// The database key of the library, as in `openmpi-4.1.4`.
    pub library: String,
    pub machine: String,
    /// The job that measured.
    pub nodes: u32,
    pub ppn: u32,
    pub reduce_per_byte_ns: f64,
    pub copy_per_byte_ns: f64,
    /// Of each byte that leaves a node while all ranks send to other nodes and receive from them; none on one node.
    pub loaded_per_byte_ns: Option<f64>,
    pub inside: Option<Link>,
    pub between: Option<Link>,
    pub cores: Option<Cores>,
}

#[derive(Clone, Debug, PartialEq, Error)]
pub enum CalibrationError {
    #[error("read the calibration: {0}")]
    Toml(String),
    #[error(
        "use the calibration: its layout has version {0}, this colltune reads version {SCHEMA}"
    )]
    Schema(u32),
    #[error(
        "use the calibration: {key} is {value}, and has to be {wanted}; mend it, or measure anew with \
         `colltune calibrate`"
    )]
    Value {
        /// With its table, as in `inside.latency_ns`.
        key: String,
        value: f64,
        wanted: &'static str,
    },
}

impl Calibration {
    /// Reads `calibration.toml`.
    ///
    /// Errors: `Toml` for text that is not this layout, `Schema` for another version, `Value` for
    /// parameters that no machine has; both name the key.
    pub fn from_toml(text: &str) -> Result<Calibration, CalibrationError> {
        #[derive(Deserialize)]
        struct Versioned {
            schema: u32,
        }
        let toml = |error: toml::de::Error| CalibrationError::Toml(in_a_line(&error));
        // Only a table that has been read tells which key of it is not what it should be.
        let table: toml::Table = toml::from_str(text).map_err(toml)?;
        let Versioned { schema } = table.clone().try_into().map_err(toml)?;
        if !(1..=SCHEMA).contains(&schema) {
            return Err(CalibrationError::Schema(schema));
        }
        let calibration: Calibration = table.try_into().map_err(toml)?;
        calibration.check()?;
        Ok(calibration)
    }

    pub fn to_toml(&self) -> String {
        toml::to_string(self).expect("a calibration holds only numbers and names")
    }

    /// Errors: `Value` naming the first parameter that no machine has.
    pub fn check(&self) -> Result<(), CalibrationError> {
        let all = [
            (
                "",
                Impossible::as_time("reduce_per_byte_ns", self.reduce_per_byte_ns),
            ),
            (
                "",
                Impossible::as_time("copy_per_byte_ns", self.copy_per_byte_ns),
            ),
            (
                "",
                self.loaded_per_byte_ns
                    .and_then(|time| Impossible::as_time("loaded_per_byte_ns", time)),
            ),
            ("inside.", self.inside.and_then(|link| link.impossible())),
            ("between.", self.between.and_then(|link| link.impossible())),
            ("cores.", self.cores.and_then(|cores| cores.impossible())),
        ];
        match all
            .into_iter()
            .find_map(|(table, wrong)| Some((table, wrong?)))
        {
            Some((table, Impossible { key, value, wanted })) => Err(CalibrationError::Value {
                key: format!("{table}{key}"),
                value,
                wanted,
            }),
            None => Ok(()),
        }
    }

    /// The machine for the simulator; what was not measured is [`Machine::TYPICAL`].
    pub fn machine(&self) -> Machine {
        Machine {
            inside: self.inside.unwrap_or(Machine::TYPICAL.inside),
            between: self.between.unwrap_or(Machine::TYPICAL.between),
            reduce_per_byte_ns: self.reduce_per_byte_ns,
            copy_per_byte_ns: self.copy_per_byte_ns,
            cores: self.cores.unwrap_or(Machine::TYPICAL.cores),
        }
    }
}

/// What is wrong with the text or with a key of a table, which it names, in one line.
pub fn in_a_line(error: &toml::de::Error) -> String {
    let text = error.to_string();
    let lines: Vec<&str> = text.trim().lines().map(str::trim_end).collect();
    match lines[..] {
        // With a drawing of the place: the line itself stands in it.
        [at, _, line, _, what] => {
            let line = line.split_once('|').map_or(line, |(_, line)| line).trim();
            format!("{what}, in `{line}` ({at})")
        }
        _ => lines.join(" "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn some() -> Calibration {
        Calibration {
            schema: SCHEMA,
            library: "openmpi-4.1.4".to_owned(),
            machine: "hydra".to_owned(),
            nodes: 4,
            ppn: 2,
            reduce_per_byte_ns: 0.25,
            copy_per_byte_ns: 0.125,
            loaded_per_byte_ns: Some(0.75),
            inside: Some(Machine::TYPICAL.inside),
            between: None,
            cores: Some(Cores {
                per_node: 2.0,
                turn_ns: 1300.0,
            }),
        }
    }

    #[test]
    fn a_calibration_reads_back_as_written_and_the_usual_stands_for_what_is_missing() {
        let read = Calibration::from_toml(&some().to_toml()).unwrap();
        assert_eq!(read, some());
        assert_eq!(read.machine().between, Machine::TYPICAL.between);
        assert_eq!(read.machine().reduce_per_byte_ns, 0.25);
        let endless = Link {
            rendezvous_bytes: f64::INFINITY,
            ..Machine::TYPICAL.between
        };
        let endless = Calibration {
            between: Some(endless),
            ..some()
        };
        assert_eq!(Calibration::from_toml(&endless.to_toml()), Ok(endless));
    }

    #[test]
    fn other_versions_unknown_keys_and_impossible_values_are_errors() {
        let text = some().to_toml();
        let newer = text.replace("schema = 4", "schema = 5\nsomething = 3");
        assert_eq!(
            Calibration::from_toml(&newer),
            Err(CalibrationError::Schema(5))
        );
        const LOADED: &str = "loaded_per_byte_ns = 0.75";
        let older = text.replace("schema = 4", "schema = 2");
        let older = older.replace(&format!("{LOADED}\n"), "");
        let older = older.replace("[cores]\nper_node = 2.0\nturn_ns = 1300.0\n", "");
        let read = Calibration::from_toml(&older).unwrap();
        assert_eq!((read.schema, read.machine().cores), (2, Cores::ENOUGH));
        let older = older.replace("schema = 2", "schema = 1");
        let older = older.replace("burst_bytes = 0.0\n", "");
        let read = Calibration::from_toml(&older).unwrap();
        assert_eq!((read.schema, read.inside), (1, some().inside));
        const COPY: &str = "copy_per_byte_ns = 0.125";
        for (from, to, words) in [
            ("nodes = 4", "nodes = 4\nracks = 1", ["`racks`", "nodes"]),
            (
                COPY,
                "copy_per_byte_ns = -1.0",
                ["copy_per_byte_ns is -1,", "at least 0"],
            ),
            (
                COPY,
                "copy_per_byte_ns = nan",
                ["copy_per_byte_ns is NaN", "calibrate"],
            ),
            (COPY, "copy_per_byte_ns = ", ["copy_per_byte_ns", "line"]),
            (
                LOADED,
                "loaded_per_byte_ns = -1.0",
                ["loaded_per_byte_ns is -1,", "at least 0"],
            ),
            (
                "latency_ns = 250.0",
                "latency_ns = inf",
                ["inside.latency_ns is inf", "finite"],
            ),
            (
                "latency_ns = 250.0",
                "latency_ns = \"x\"",
                ["`inside.latency_ns`", "f64"],
            ),
            ("latency_ns = 250.0\n", "", ["`latency_ns`", "`inside`"]),
            (
                "rendezvous_bytes = 4096.0",
                "rendezvous_bytes = nan",
                ["inside.rendezvous_bytes", "0"],
            ),
            (
                "per_node = 2.0",
                "per_node = 0.0",
                ["cores.per_node is 0,", "above 0"],
            ),
            (
                "turn_ns = 1300.0",
                "turn_ns = inf",
                ["cores.turn_ns is inf", "finite"],
            ),
            ("ppn = 2", "", ["missing", "`ppn`"]),
            ("ppn = 2", "ppn = -2", ["`ppn`", "-2"]),
        ] {
            assert!(text.contains(from), "{from}");
            let error = Calibration::from_toml(&text.replace(from, to)).unwrap_err();
            let error = error.to_string();
            assert!(
                words.iter().all(|word| error.contains(word)) && !error.contains('\n'),
                "{to}: {error}"
            );
        }
        assert!(Calibration::from_toml("").is_err());
    }
}
