//! What is said of a machine, and whether it can be.
//!
//! A file has the keys and tables of `calibration.toml`, and besides, if it wants,
//! ```toml
//! source = "assumed: nodes of sixteen cores"   # or "measured"; needed where one of these tables is
//! [shape]
//! nodes = 256
//! ppn = 16
//! cores_per_node = 16.0
//! switch_ns = 0.0
//! [app]
//! pack_message_ns = 900.0
//! pack_byte_ns = 0.25
//! unpack_message_ns = 700.0
//! unpack_byte_ns = 0.25
//! copy_byte_ns = 0.12
//! [compute]
//! scale = 1.0
//! ```

use colltune_core::algorithm::simulate::{self, Cores};
use colltune_core::calibration::{Calibration, in_a_line};
use serde::{Deserialize, Serialize};

use crate::EmulateError;
use crate::price::{Defaults, Learned};

/// A machine. Times are nanoseconds.
#[derive(Clone, Debug, PartialEq)]
pub struct Machine {
    pub name: String,
    pub network: simulate::Machine,
    pub shape: Shape,
    /// None: as the costs were fitted.
    pub app: Option<App>,
    /// This machine's computing times over those of the machine that costs were fitted on.
    pub scale: f64,
    /// `measured`, or `assumed: why`.
    pub source: String,
    /// How many times as long a byte takes from node to node while all ranks send, beyond what queueing explains; 1 or
    /// more.
    pub congestion: f64,
    /// What a tuning database knows of collectives' times.
    pub learned: Learned,
    /// By whose rules collectives run that nothing was chosen for.
    pub defaults: Defaults,
}

/// How ranks lie on the machine: rank `r` is on node `r / ppn`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Shape {
    pub nodes: u32,
    pub ppn: u32,
    /// Fewer than `ppn`: ranks take turns. Less than one where nodes share cores, as synthetic ones do.
    pub cores_per_node: f64,
    /// What it takes from one rank to the next on a core.
    #[serde(default)]
    pub switch_ns: f64,
}

/// What the program's own handling of messages costs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct App {
    pub pack_message_ns: f64,
    pub pack_byte_ns: f64,
    pub unpack_message_ns: f64,
    pub unpack_byte_ns: f64,
    pub copy_byte_ns: f64,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Compute {
    scale: Option<f64>,
}

/// The tables that stand beside those of `calibration.toml`.
#[derive(Default)]
struct Beside {
    shape: Option<Shape>,
    app: Option<App>,
    compute: Compute,
    source: Option<String>,
}

impl Machine {
    /// Reads `calibration.toml` with the tables `[shape]`, `[app]` and `[compute]` and the key `source` beside it, which
    /// says what their numbers are; what is missing of them follows from the calibration's own job.
    ///
    /// Errors: `Machine` naming the table or number that is missing or impossible, or the table that has no source.
    pub fn from_toml(name: &str, text: &str) -> Result<Machine, EmulateError> {
        let wrong = |what: String| EmulateError::Machine(format!("{name}: {what}"));
        let mut table: toml::Table =
            toml::from_str(text).map_err(|error: toml::de::Error| wrong(in_a_line(&error)))?;
        let beside = Beside::take(&mut table).map_err(&wrong)?;
        let rest = toml::to_string(&table).expect("a table that was read");
        let calibration =
            Calibration::from_toml(&rest).map_err(|error| wrong(format!("failed to {error}")))?;
        let machine = Machine::new(name, &calibration, beside);
        machine.check().map_err(wrong)?;
        Ok(machine)
    }

    /// A machine as it was calibrated, with nothing said of packing.
    pub fn of_calibration(calibration: &Calibration) -> Machine {
        Machine::new(&calibration.machine, calibration, Beside::default())
    }

    fn new(name: &str, calibration: &Calibration, beside: Beside) -> Machine {
        let cores = calibration.cores.unwrap_or(Cores::ENOUGH);
        let of_job = Shape {
            nodes: calibration.nodes,
            ppn: calibration.ppn,
            cores_per_node: cores.per_node.min(f64::from(calibration.ppn)),
            switch_ns: cores.turn_ns,
        };
        Machine {
            name: name.to_owned(),
            network: calibration.machine(),
            shape: beside.shape.unwrap_or(of_job),
            app: beside.app,
            scale: beside.compute.scale.unwrap_or(1.0),
            // A calibration alone: tables beside it are refused where no source says what they are.
            source: beside
                .source
                .unwrap_or_else(|| "measured; packing as the costs were fitted".to_owned()),
            congestion: congestion(calibration),
            learned: Learned::default(),
            defaults: Defaults::of_library(&calibration.library),
        }
    }

    pub(super) fn check(&self) -> Result<(), String> {
        let Shape {
            nodes,
            ppn,
            cores_per_node,
            switch_ns,
        } = self.shape;
        let App {
            pack_message_ns,
            pack_byte_ns,
            unpack_message_ns,
            unpack_byte_ns,
            copy_byte_ns,
        } = self.app.unwrap_or_default();
        let times = [
            ("shape.switch_ns", switch_ns),
            ("app.pack_message_ns", pack_message_ns),
            ("app.pack_byte_ns", pack_byte_ns),
            ("app.unpack_message_ns", unpack_message_ns),
            ("app.unpack_byte_ns", unpack_byte_ns),
            ("app.copy_byte_ns", copy_byte_ns),
        ];
        for (name, value) in times {
            if !(value.is_finite() && value >= 0.0) {
                return Err(format!(
                    "{name} is {value}, and has to be a finite number of at least 0"
                ));
            }
        }
        let positive = [
            ("shape.cores_per_node", cores_per_node),
            ("compute.scale", self.scale),
        ];
        for (name, value) in positive {
            if !(value.is_finite() && value > 0.0) {
                return Err(format!(
                    "{name} is {value}, and has to be a finite number above 0"
                ));
            }
        }
        if nodes == 0 || ppn == 0 {
            return Err(format!(
                "shape.nodes is {nodes} and shape.ppn {ppn}, and both have to be at least 1"
            ));
        }
        let is_known = ["measured", "assumed: "]
            .iter()
            .any(|word| self.source.starts_with(word));
        match is_known {
            true => Ok(()),
            false => Err(format!(
                "source is {:?}; it has to be \"measured\" or \"assumed: why\"",
                self.source
            )),
        }
    }

    pub fn node(&self, rank: u32) -> u32 {
        rank / self.shape.ppn
    }

    /// The node of each of `n_ranks` ranks.
    pub fn node_of(&self, n_ranks: usize) -> Vec<u32> {
        (0..n_ranks as u32).map(|rank| self.node(rank)).collect()
    }
}

/// No network is slower under load than this; what was measured of more counts as this.
const CONGESTION_MAX: f64 = 8.0;

fn congestion(calibration: &Calibration) -> f64 {
    let alone = calibration.between.map(|link| link.per_byte_ns);
    let ratio = calibration
        .loaded_per_byte_ns
        .zip(alone)
        .map(|(loaded, alone)| loaded / alone);
    // Of a link whose bytes take no time nothing is known.
    ratio
        .filter(|ratio| ratio.is_finite())
        .map_or(1.0, |ratio| ratio.clamp(1.0, CONGESTION_MAX))
}

impl Beside {
    fn take(table: &mut toml::Table) -> Result<Beside, String> {
        fn part<T: serde::de::DeserializeOwned>(
            table: &mut toml::Table,
            name: &str,
        ) -> Result<Option<T>, String> {
            let value = table.remove(name);
            let read = value.map(toml::Value::try_into).transpose();
            read.map_err(|error| format!("[{name}]: {}", in_a_line(&error)))
        }
        let tables = ["shape", "app", "compute"];
        let own = tables.into_iter().find(|name| table.contains_key(*name));
        if let Some(own) = own.filter(|_| !table.contains_key("source")) {
            return Err(format!(
                "nothing says what the numbers in [{own}] are: write source = \"measured\", or source = \"assumed: why\", \
                 above the first table"
            ));
        }
        Ok(Beside {
            shape: part(table, "shape")?,
            app: part(table, "app")?,
            compute: part(table, "compute")?.unwrap_or_default(),
            source: part(table, "source")?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn calibration() -> Calibration {
        Calibration {
            schema: 3,
            library: "openmpi-4.1.4".to_owned(),
            machine: "hydra".to_owned(),
            nodes: 4,
            ppn: 2,
            reduce_per_byte_ns: 0.25,
            copy_per_byte_ns: 0.125,
            loaded_per_byte_ns: None,
            inside: Some(simulate::Machine::TYPICAL.inside),
            between: None,
            cores: None,
        }
    }

    fn text() -> String {
        let calibration = calibration();
        let beside = "source = \"measured\"\n[shape]\nnodes = 8\nppn = 16\ncores_per_node = 16.0\n\
                      [compute]\nscale = 2.0\n[app]\npack_message_ns = 900.0\npack_byte_ns = 0.25\n\
                      unpack_message_ns = 700.0\nunpack_byte_ns = 0.25\ncopy_byte_ns = 0.125\n";
        let (first, rest) = calibration.to_toml().split_once('[').map_or_else(
            || (calibration.to_toml(), String::new()),
            |(first, rest)| (first.to_owned(), format!("[{rest}")),
        );
        let (source, tables) = beside.split_once('\n').expect("two lines");
        format!("{first}{source}\n{rest}\n{tables}")
    }

    #[test]
    fn a_machine_is_its_calibration_and_the_tables_beside_it() {
        let machine = Machine::from_toml("here", &text()).unwrap();
        assert_eq!((machine.shape.ppn, machine.scale), (16, 2.0));
        assert_eq!(machine.node_of(33)[31..], [1, 2]);
        assert_eq!(machine.app.unwrap().copy_byte_ns, 0.125);
        assert_eq!(machine.network.reduce_per_byte_ns, 0.25);
        let bare = text();
        let bare = bare.replace("[compute]\nscale = 2.0\n", "");
        assert_eq!(Machine::from_toml("here", &bare).unwrap().scale, 1.0);
    }

    /// What the top of this file draws, beside a calibration.
    #[test]
    fn the_drawing_is_a_machine() {
        let lines = include_str!("model.rs").lines();
        let drawn = lines.skip_while(|line| *line != "//! ```toml").skip(1);
        let drawn = drawn.take_while(|line| *line != "//! ```");
        let drawn: Vec<&str> = drawn.map(|line| line.trim_start_matches("//! ")).collect();
        let (source, tables) = (drawn[0], drawn[1..].join("\n"));
        let text = format!("{source}\n{}{tables}\n", calibration().to_toml());
        let machine = Machine::from_toml("drawn", &text).unwrap();
        assert_eq!(machine.source, "assumed: nodes of sixteen cores");
        assert_eq!((machine.shape.ppn, machine.scale), (16, 1.0));
        assert_eq!(machine.app.unwrap().copy_byte_ns, 0.12);
    }

    #[test]
    fn a_calibration_is_measured_and_tables_beside_it_say_what_they_are() {
        let plain = calibration().to_toml();
        let machine = Machine::from_toml("here", &plain).unwrap();
        assert_eq!(machine.source, "measured; packing as the costs were fitted");
        assert_eq!(
            machine.source,
            Machine::of_calibration(&calibration()).source
        );
        for (table, name) in [
            ("[compute]\nscale = 2.0\n", "[compute]"),
            (
                "[shape]\nnodes = 1\nppn = 4\ncores_per_node = 4.0\n",
                "[shape]",
            ),
            (
                "[app]\npack_message_ns = 1.0\npack_byte_ns = 1.0\nunpack_message_ns = 1.0\nunpack_byte_ns = 1.0\n\
                 copy_byte_ns = 1.0\n",
                "[app]",
            ),
        ] {
            let beside = format!("{plain}{table}");
            let error = Machine::from_toml("m.toml", &beside).unwrap_err();
            let error = error.to_string();
            let words = ["m.toml", name, "\"measured\"", "\"assumed: why\""];
            assert!(words.iter().all(|word| error.contains(word)), "{error}");
            let said = format!("source = \"assumed: as usual\"\n{beside}");
            let machine = Machine::from_toml("m.toml", &said).unwrap();
            assert_eq!(machine.source, "assumed: as usual");
        }
    }

    #[test]
    fn missing_and_impossible_numbers_are_named() {
        for (from, to, words) in [
            ("source = \"measured\"\n", "", "source = \"measured\""),
            ("ppn = 16\n", "", "ppn"),
            ("scale = 2.0", "scale = -1.0", "compute.scale"),
            (
                "pack_byte_ns = 0.25\nunpack_m",
                "pack_byte_ns = nan\nunpack_m",
                "app.pack_byte_ns",
            ),
            ("copy_byte_ns = 0.125\n", "", "copy_byte_ns"),
            (
                "latency_ns = 250.0",
                "latency_ns = -250.0",
                "inside.latency_ns is -250,",
            ),
            (
                "latency_ns = 250.0",
                "latency_ns = \"x\"",
                "`inside.latency_ns`",
            ),
            ("ppn = 16", "ppn = \"x\"", "in `ppn`"),
            ("scale = 2.0", "scale = \"x\"", "in `scale`"),
            ("scale = 2.0", "scale = ", "`scale =`"),
            (
                "cores_per_node = 16.0",
                "cores_per_node = 0.0",
                "cores_per_node",
            ),
            ("\"measured\"", "\"guessed\"", "guessed"),
            ("nodes = 8", "nodes = 8\nracks = 3", "racks"),
        ] {
            assert!(text().contains(from), "{from}");
            let error = Machine::from_toml("m.toml", &text().replace(from, to)).unwrap_err();
            let error = error.to_string();
            assert!(
                error.contains(words) && error.contains("m.toml"),
                "{to}: {error}"
            );
        }
    }
}
