//! What a job runs on beside its library: what decides which variant is fastest, and is no part of any call.
//!
//! The transport splits the data: times over TCP and over shared memory are two data sets (a [`DataKey`] each). So do
//! user settings of the library's algorithms, which make another default ([`ToldWord`]). The rest, as the model of
//! the processor and the library's other settings, are columns by which a query can group. All comes from the
//! environment of a rank, where launchers put what their command lines say, and from the shim.

pub mod told;

use std::fmt;
use std::str::FromStr;

use bincode::{Decode, Encode};
use thiserror::Error;

use crate::collective::Collective;
use crate::library::{Library, LibraryError, Product};
use crate::preset;
use crate::select::mix;
use crate::settings::Reproducible;

use self::told::ToldWord;

/// Of a transport's name and a column's value; what is longer ends in a check word.
const TRANSPORT_BYTES_MAX: usize = 60;
const VALUE_BYTES_MAX: usize = 200;
/// The most columns of a context that are believed.
pub const COLUMNS_MAX: usize = 16;

/// The columns that every context has, in this order. `settings` are the library's that shape its collectives.
pub const COLUMNS: [&str; 4] = ["processor", "kernel", "binding", "settings"];

/// What MPI sends its messages with, as far as the environment says so: `default`, `ucx`, `ofi:tcp`,
/// `ob1+tcp,vader`. It can stand in a file's name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Encode, Decode)]
pub struct Transport(String);

/// What a job runs on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Encode, Decode)]
pub struct Context {
    pub transport: Transport,
    /// Names and values; a name stands once.
    pub columns: Vec<(String, String)>,
}

/// What the environment does not say.
#[derive(Clone, Copy, Debug, Default)]
pub struct Machine<'a> {
    /// The model of the processor, as /proc/cpuinfo has it.
    pub processor: &'a str,
    /// The release of the kernel.
    pub kernel: &'a str,
}

/// What keeps data apart within a database; displays as the folder's name, `openmpi-4.1.4`,
/// `openmpi-4.1.4@ob1+tcp,vader` or `openmpi-4.1.4@default@told-1f2e3d4c`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DataKey {
    pub library: Library,
    pub transport: Transport,
    /// `None` where the library itself chooses its algorithms.
    pub told: Option<ToldWord>,
}

#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum KeyError {
    #[error(transparent)]
    Library(#[from] LibraryError),
    #[error("read the transport {0:?} of a key (it looks like openmpi-4.1.4@ob1+tcp,vader)")]
    Transport(String),
    #[error("read {0:?} of a key (it looks like openmpi-4.1.4@default@told-1f2e3d4c)")]
    Told(String),
}

impl Context {
    /// The context of a job on `library` in whose environment these variables stand.
    pub fn new(environment: &[(String, String)], library: Library, machine: Machine<'_>) -> Self {
        let variables = Variables(environment);
        let values = [
            limited(machine.processor),
            limited(machine.kernel),
            limited(&variables.all(BINDING, &[])),
            limited(&variables.settings(library)),
        ];
        Context {
            transport: variables.transport(library.product),
            columns: COLUMNS
                .iter()
                .map(|name| (*name).to_owned())
                .zip(values)
                .collect(),
        }
    }

    /// A column's value; empty where it is unknown.
    pub fn column(&self, name: &str) -> &str {
        let column = self.columns.iter().find(|(other, _)| other == name);
        column.map_or("", |(_, value)| value)
    }

    /// Whether it can be believed, as a reader of foreign files has to ask.
    pub fn is_valid(&self) -> bool {
        let plain =
            |text: &str| text.len() <= 2 * VALUE_BYTES_MAX && !text.chars().any(char::is_control);
        self.transport.is_valid()
            && self.columns.len() <= COLUMNS_MAX
            && self
                .columns
                .iter()
                .all(|(name, value)| plain(name) && plain(value))
    }
}

impl Transport {
    const DEFAULT: &'static str = "default";

    /// Makes a name of any text: other characters become underscores, and what is too long is cut.
    fn named(text: &str) -> Transport {
        let plain = |c: char| match is_plain(c) {
            true => c,
            false => '_',
        };
        let text = cut(text.chars().map(plain).collect(), TRANSPORT_BYTES_MAX);
        if text.is_empty() {
            Transport::default()
        } else {
            Transport(text)
        }
    }

    /// The transport of that name, as [`Transport::name`] gives it; no name is the default's.
    pub fn from_name(name: &str) -> Option<Transport> {
        let transport = match name {
            "" => Transport::default(),
            name => Transport(name.to_owned()),
        };
        transport.is_valid().then_some(transport)
    }

    pub fn is_default(&self) -> bool {
        self.0 == Self::DEFAULT
    }

    pub fn name(&self) -> &str {
        &self.0
    }

    fn is_valid(&self) -> bool {
        let length = 1..=TRANSPORT_BYTES_MAX + 17;
        length.contains(&self.0.len()) && self.0.chars().all(is_plain)
    }
}

impl Default for Transport {
    fn default() -> Transport {
        Transport(Self::DEFAULT.to_owned())
    }
}

impl fmt::Display for Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<Library> for DataKey {
    fn from(library: Library) -> DataKey {
        DataKey {
            library,
            transport: Transport::default(),
            told: None,
        }
    }
}

impl From<&DataKey> for DataKey {
    fn from(key: &DataKey) -> DataKey {
        key.clone()
    }
}

impl fmt::Display for DataKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.library)?;
        if !self.transport.is_default() || self.told.is_some() {
            write!(f, "@{}", self.transport)?;
        }
        match &self.told {
            Some(told) => write!(f, "@{told}"),
            None => Ok(()),
        }
    }
}

impl DataKey {
    /// The data of a job on `library` in whose environment these variables stand. `told_by` are the user settings
    /// that choose the library's algorithms ([`told::settings`]), `content` reads a file that one of them names.
    pub fn of_job(
        environment: &[(String, String)],
        library: Library,
        told_by: &[(String, String)],
        content: impl Fn(&str) -> Option<String>,
    ) -> DataKey {
        DataKey {
            library,
            transport: Variables(environment).transport(library.product),
            told: ToldWord::new(told_by, content),
        }
    }

    /// The same of jobs with this setting: in a fixed order what stands for the library's own choice is another one.
    pub fn of_order(self, order: Reproducible) -> DataKey {
        let told = match order {
            Reproducible::Fixed => Some(ToldWord::with_fixed_order(self.told)),
            _ => self.told,
        };
        DataKey { told, ..self }
    }

    /// The keys meant without a name: those whose libraries themselves chose their algorithms, or all where there are
    /// none.
    pub fn usual(mut keys: Vec<DataKey>) -> Vec<DataKey> {
        if keys.iter().any(|key| key.told.is_none()) {
            keys.retain(|key| key.told.is_none());
        }
        keys
    }

    /// The data of jobs that differ in nothing but in that their library itself chose its algorithms.
    pub fn untold(&self) -> DataKey {
        DataKey {
            told: None,
            ..self.clone()
        }
    }
}

impl FromStr for DataKey {
    type Err = KeyError;

    fn from_str(text: &str) -> Result<DataKey, KeyError> {
        let Some((library, name)) = text.split_once('@') else {
            return Ok(text.parse::<Library>()?.into());
        };
        let (name, told) = match name.split_once('@') {
            Some((name, told)) => (name, Some(told)),
            None => (name, None),
        };
        // Each key in one spelling.
        let transport = Transport::from_name(name)
            .filter(|transport| !name.is_empty() && (told.is_some() || !transport.is_default()));
        let told = told
            .map(|text| ToldWord::from_name(text).ok_or_else(|| KeyError::Told(text.to_owned())));
        Ok(DataKey {
            library: library.parse()?,
            transport: transport.ok_or_else(|| KeyError::Transport(name.to_owned()))?,
            told: told.transpose()?,
        })
    }
}

fn is_plain(c: char) -> bool {
    c.is_ascii_alphanumeric() || "+,:._-^".contains(c)
}

/// The user settings that bind ranks to processors.
const BINDING: &[&str] = &[
    "OMPI_MCA_hwloc_base_binding_policy",
    "OMPI_MCA_rmaps_base_mapping_policy",
    "PRTE_MCA_hwloc_default_binding_policy",
    "PRTE_MCA_rmaps_default_mapping_policy",
    "HYDRA_TOPO_ARGS",
    "I_MPI_PIN",
    "SLURM_CPU_BIND",
    "SLURM_DISTRIBUTION",
];
/// What begins so shapes Open MPI's collectives.
const OPEN_MPI: &[&str] = &[
    "OMPI_MCA_btl",
    "OMPI_MCA_coll",
    "OMPI_MCA_mpi_yield_when_idle",
    "OMPI_MCA_mtl",
    "OMPI_MCA_pml",
    "FI_",
    "PSM2_",
    "UCX_",
];
/// The same of MPICH and of Intel MPI; Hydra sets the first of the exceptions for itself on every node.
const MPICH: &[&str] = &["MPIR_CVAR_", "FI_", "UCX_"];
const INTEL: &[&str] = &[
    "I_MPI_ADJUST_",
    "I_MPI_FABRICS",
    "I_MPI_OFI",
    "I_MPI_SHM",
    "I_MPI_TUNING",
    "FI_",
    "UCX_",
];
/// Of those that derive from MPICH, whose settings have names of their own.
const CRAY: &[&str] = &["MPICH_", "MPIR_CVAR_", "FI_"];
const MVAPICH: &[&str] = &["MV2_", "MVP_", "MPIR_CVAR_", "FI_", "UCX_"];
/// What MVAPICH's launcher sets for itself.
const OF_ONE_RANK: &[&str] = &[
    "MPIR_CVAR_CH3_INTERFACE_HOSTNAME",
    "MV2_COMM_WORLD_RANK",
    "MV2_COMM_WORLD_SIZE",
    "MV2_COMM_WORLD_LOCAL_RANK",
    "MV2_COMM_WORLD_LOCAL_SIZE",
    "MV2_NODE_ID",
];
const OF_ONE_NODE: &[&str] = &["MPIR_CVAR_CH3_INTERFACE_HOSTNAME"];

/// The environment of a rank.
struct Variables<'a>(&'a [(String, String)]);

impl Variables<'_> {
    fn get(&self, name: &str) -> Option<&str> {
        let variable = self.0.iter().find(|(other, _)| other == name);
        variable
            .map(|(_, value)| value.trim())
            .filter(|value| !value.is_empty())
    }

    fn first(&self, names: &[&str]) -> Option<&str> {
        names.iter().find_map(|name| self.get(name))
    }

    /// Every variable that begins as one of these, sorted, as `NAME=value;NAME=value`.
    fn all(&self, prefixes: &[&str], but: &[&str]) -> String {
        let wanted = |name: &str| {
            prefixes.iter().any(|prefix| name.starts_with(prefix)) && !but.contains(&name)
        };
        let mut found: Vec<String> = self
            .0
            .iter()
            .filter(|(name, value)| wanted(name) && !value.is_empty())
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        found.sort_unstable();
        found.dedup();
        found.join(";")
    }

    fn settings(&self, library: Library) -> String {
        // What `colltune run` draws before the job differs from run to run on purpose.
        let drawn = Collective::ALL.map(preset::variable);
        let drawn = drawn.each_ref().map(String::as_str);
        let is_drawn = self.get(crate::environment::PRESETS).is_some();
        match library.product {
            Product::OpenMpi => self.all(OPEN_MPI, &[]),
            Product::Mpich => self.all(MPICH, OF_ONE_NODE),
            Product::Cray => self.all(CRAY, OF_ONE_NODE),
            Product::Mvapich => self.all(MVAPICH, OF_ONE_RANK),
            Product::Intel if is_drawn => self.all(INTEL, &drawn),
            Product::Intel => self.all(INTEL, &[]),
        }
    }

    fn transport(&self, product: Product) -> Transport {
        let name = match product {
            Product::OpenMpi => self.open_mpi(),
            Product::Mpich | Product::Cray | Product::Mvapich => {
                self.netmod(self.first(&["MPIR_CVAR_CH4_NETMOD"]))
            }
            Product::Intel => {
                let fabrics = self
                    .first(&["I_MPI_FABRICS"])
                    .map(|text| text.replace(':', "+"));
                self.netmod(fabrics.as_deref())
            }
        };
        Transport::named(&name)
    }

    /// Open MPI sends through a PML: `ob1` over BTLs, `ucx`, or `cm` over an MTL, which is mostly `ofi`.
    fn open_mpi(&self) -> String {
        let pml = self
            .get("OMPI_MCA_pml")
            .map(|text| match text.strip_prefix('^') {
                // Nothing else is left then.
                Some(but)
                    if ["ucx", "cm"]
                        .iter()
                        .all(|one| but.split(',').any(|other| other == *one)) =>
                {
                    "ob1".to_owned()
                }
                Some(_) => text.to_owned(),
                None => sorted(text),
            });
        let btl = self
            .get("OMPI_MCA_btl")
            .map(sorted)
            .filter(|text| !text.is_empty());
        match pml.as_deref() {
            Some("ucx") => with("ucx", ":", self.ucx()),
            Some("cm") => {
                let mtl = self.get("OMPI_MCA_mtl").map_or("cm".to_owned(), sorted);
                let provider = self.provider().filter(|_| mtl != "psm2");
                with(&mtl, ":", provider)
            }
            Some("ob1") => with("ob1", "+", btl),
            other => {
                let base = with(other.unwrap_or(Transport::DEFAULT), "+", btl);
                with(&base, ":", self.ucx().or(self.provider()))
            }
        }
    }

    fn netmod(&self, name: Option<&str>) -> String {
        let base = name.unwrap_or(Transport::DEFAULT);
        let detail = match base {
            "ucx" => self.ucx(),
            _ => self.provider(),
        };
        with(base, ":", detail)
    }

    fn ucx(&self) -> Option<String> {
        self.get("UCX_TLS").map(sorted)
    }

    fn provider(&self) -> Option<String> {
        let names = [
            "I_MPI_OFI_PROVIDER",
            "MPIR_CVAR_OFI_USE_PROVIDER",
            "OMPI_MCA_mtl_ofi_provider_include",
            "FI_PROVIDER",
        ];
        self.first(&names).map(sorted)
    }
}

/// The items of a list in one order; `self`, which every list needs, says nothing.
fn sorted(list: &str) -> String {
    let (sign, items) = list
        .strip_prefix('^')
        .map_or(("", list), |items| ("^", items));
    let mut items: Vec<&str> = items.split(',').map(str::trim).collect();
    items.retain(|item| !item.is_empty() && *item != "self");
    items.sort_unstable();
    items.dedup();
    match items.is_empty() {
        true => String::new(),
        false => format!("{sign}{}", items.join(",")),
    }
}

fn with(base: &str, sign: &str, detail: Option<String>) -> String {
    match detail.filter(|detail| !detail.is_empty()) {
        Some(detail) => format!("{base}{sign}{detail}"),
        None => base.to_owned(),
    }
}

fn limited(value: &str) -> String {
    let value = value.trim().chars().filter(|c| !c.is_control()).collect();
    cut(value, VALUE_BYTES_MAX)
}

/// A text of at most so many bytes, with a check word over the whole behind one that was longer.
fn cut(mut text: String, bytes_max: usize) -> String {
    if text.len() <= bytes_max {
        return text;
    }
    let word = text
        .bytes()
        .fold(text.len() as u64, |word, byte| mix(word, byte.into()));
    let end = (0..=bytes_max)
        .rev()
        .find(|&end| text.is_char_boundary(end))
        .unwrap_or(0);
    text.truncate(end);
    format!("{text}_{word:016x}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn context(library: &str, variables: &[(&str, &str)]) -> Context {
        let environment: Vec<_> = variables
            .iter()
            .map(|(name, value)| (name.to_string(), value.to_string()))
            .collect();
        let machine = Machine {
            processor: " AMD EPYC 7742\n",
            kernel: "6.1.0-13",
        };
        let context = Context::new(&environment, library.parse().unwrap(), machine);
        assert!(context.is_valid(), "{context:?}");
        context
    }

    #[test]
    fn the_transport_is_what_the_environment_says_in_one_spelling() {
        // Library, variables, transport.
        let cases = [
            ("openmpi-4.1.4", "", "default"),
            (
                "openmpi-4.1.4",
                "HOME=/root OMPI_MCA_btl_tcp_if_include=eth0",
                "default",
            ),
            (
                "openmpi-4.1.4",
                "OMPI_MCA_pml=ob1 OMPI_MCA_btl=vader,self,tcp",
                "ob1+tcp,vader",
            ),
            (
                "openmpi-4.1.4",
                "OMPI_MCA_pml=^ucx,cm OMPI_MCA_btl=tcp,self,vader",
                "ob1+tcp,vader",
            ),
            ("openmpi-4.1.4", "OMPI_MCA_btl=^openib", "default+^openib"),
            ("openmpi-4.1.4", "OMPI_MCA_btl=self", "default"),
            (
                "openmpi-5.0.3",
                "OMPI_MCA_pml=ucx UCX_TLS=sm,rc,self",
                "ucx:rc,sm",
            ),
            (
                "openmpi-5.0.3",
                "OMPI_MCA_pml=cm OMPI_MCA_mtl=ofi FI_PROVIDER=tcp",
                "ofi:tcp",
            ),
            ("mpich-4.0.2", "FI_PROVIDER=", "default"),
            ("mpich-4.0.2", "MPIR_CVAR_CH4_NETMOD=ucx", "ucx"),
            (
                "mpich-4.0.2",
                "MPIR_CVAR_CH4_NETMOD=ofi FI_PROVIDER=tcp",
                "ofi:tcp",
            ),
            (
                "intel-2021.17.0",
                "I_MPI_FABRICS=shm:ofi FI_PROVIDER=mlx",
                "shm+ofi:mlx",
            ),
            (
                "openmpi-4.1.4",
                "OMPI_MCA_pml=../../etc OMPI_MCA_btl=a\tb/c",
                ".._.._etc+a_b_c",
            ),
        ];
        for (library, text, name) in cases {
            let variables = text.split(' ').filter_map(|one| one.split_once('='));
            let variables: Vec<_> = variables.collect();
            assert_eq!(
                context(library, &variables).transport.name(),
                name,
                "{text}"
            );
        }
    }

    #[test]
    fn columns_hold_what_shapes_collectives_and_nothing_of_one_job() {
        let context = context(
            "openmpi-4.1.4",
            &[
                (
                    "OMPI_MCA_orte_jobfam_session_dir",
                    "/tmp/ompi.vm.0/pid.12815",
                ),
                ("OMPI_MCA_coll_tuned_use_dynamic_rules", "1"),
                ("OMPI_MCA_hwloc_base_binding_policy", "core"),
                ("OMPI_MCA_btl", "self,tcp"),
            ],
        );
        assert_eq!(context.column("processor"), "AMD EPYC 7742");
        assert_eq!(context.column("kernel"), "6.1.0-13");
        assert_eq!(
            context.column("binding"),
            "OMPI_MCA_hwloc_base_binding_policy=core"
        );
        let settings = "OMPI_MCA_btl=self,tcp;OMPI_MCA_coll_tuned_use_dynamic_rules=1";
        assert_eq!(context.column("settings"), settings);
        assert_eq!(context.column("weather"), "");
    }

    #[test]
    fn what_a_run_drew_before_the_job_is_no_setting_of_the_site() {
        let name = preset::variable(Collective::Bcast);
        let adjust = (name.as_str(), "1");
        let by_hand = context("intel-2021.17.0", &[adjust]);
        assert_eq!(by_hand.column("settings"), format!("{}=1", adjust.0));
        let drawn = context("intel-2021.17.0", &[adjust, ("COLLTUNE_PRESETS", "bcast")]);
        assert_eq!(drawn.column("settings"), "");
    }

    #[test]
    fn long_values_stay_apart_within_their_limits() {
        let long = |end: &str| {
            context(
                "mpich-4.0.2",
                &[
                    ("FI_PROVIDER", &("x".repeat(500) + end)),
                    ("MPIR_CVAR_A", &("ä".repeat(500) + end)),
                ],
            )
        };
        let (one, other) = (long("a"), long("b"));
        assert!(
            one.transport != other.transport && one.column("settings") != other.column("settings")
        );
    }

    #[test]
    fn keys_are_names_of_folders_and_read_back() {
        for text in [
            "openmpi-4.1.4",
            "openmpi-4.1.4@ob1+tcp,vader",
            "mpich-4.0.2@ofi:tcp",
            "openmpi-4.1.4@default@told-00c0ffee",
            "openmpi-4.1.4@ob1+tcp,vader@told-00c0ffee",
        ] {
            assert_eq!(text.parse::<DataKey>().unwrap().to_string(), text);
        }
        let library: Library = "openmpi-4.1.4".parse().unwrap();
        assert_eq!(DataKey::from(library).to_string(), "openmpi-4.1.4");
        let told: DataKey = "openmpi-4.1.4@default@told-00c0ffee".parse().unwrap();
        assert_eq!(told.untold(), library.into());
        let both = vec![library.into(), told.clone()];
        assert_eq!(DataKey::usual(both), [library.into()]);
        assert_eq!(DataKey::usual(vec![told.clone()]), [told]);
        for text in [
            "openmpi-4.1.4@",
            "openmpi-4.1.4@default",
            "openmpi-4.1.4@default@",
            "openmpi-4.1.4@@told-00c0ffee",
            "openmpi-4.1.4@default@told-c0ffee",
            "openmpi-4.1.4@default@told-00c0ffee@told-00c0ffee",
            "openmpi-4.1.4@a/b",
            "openmpi@ucx",
            "@ucx",
        ] {
            assert!(text.parse::<DataKey>().is_err(), "{text}");
        }
        let spoilt = Context {
            transport: Transport("a/../b".to_owned()),
            columns: Vec::new(),
        };
        assert!(!spoilt.is_valid());
    }
}
