//! Values of arguments that several subcommands take.
//!
//! Names of a closed set are listed by help and completions, wherever they are asked for.

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::error::ErrorKind;
use colltune_core::collective::Collective;
use colltune_core::library::{Abi, Product};
use colltune_core::request::Mode;
use colltune_core::settings::LearnerKind;

/// One of these names, as what it names.
pub fn named<T: Clone + Send + Sync + 'static>(
    names: impl IntoIterator<Item = &'static str>,
    read: impl Fn(&str) -> Option<T> + Clone + Send + Sync + 'static,
) -> impl TypedValueParser<Value = T> {
    PossibleValuesParser::new(names).map(move |name| read(&name).expect("a name that is listed"))
}

pub fn mode() -> impl TypedValueParser<Value = Mode> {
    named(Mode::ALL.map(Mode::name), |text| text.parse().ok())
}

pub fn learner() -> impl TypedValueParser<Value = LearnerKind> {
    named(
        LearnerKind::ALL.map(LearnerKind::name),
        LearnerKind::from_name,
    )
}

/// The libraries that programs of ours run on.
pub fn abi() -> impl TypedValueParser<Value = Abi> {
    named(Abi::COMMON.map(Abi::name), Abi::from_name)
}

pub fn collective() -> impl TypedValueParser<Value = Collective> {
    named(Collective::ALL.map(Collective::name), Collective::from_name)
}

/// What a program runs on, where it does not tell itself.
#[derive(Clone, Copy, Debug)]
pub struct RunsOn {
    pub abi: Abi,
    /// Whose library, where that decides how it is tuned.
    pub product: Option<Product>,
}

const INTEL: &str = "intel";

impl RunsOn {
    pub fn of(name: &str) -> Option<RunsOn> {
        match name {
            INTEL => Some(RunsOn {
                abi: Abi::Mpich,
                product: Some(Product::Intel),
            }),
            _ => Abi::from_name(name).map(|abi| RunsOn { abi, product: None }),
        }
    }
}

fn names_of_libraries() -> impl Iterator<Item = &'static str> {
    Abi::ALL.map(Abi::name).into_iter().chain([INTEL])
}

pub fn runs_on() -> impl TypedValueParser<Value = RunsOn> {
    named(names_of_libraries(), RunsOn::of)
}

/// The same, to be passed on as a name.
pub fn library_name() -> PossibleValuesParser {
    PossibleValuesParser::new(names_of_libraries())
}

/// Names that are listed, beside which there are others.
#[derive(Clone)]
pub struct Listed<T> {
    pub names: Vec<&'static str>,
    pub read: fn(&str) -> Result<T, String>,
}

impl<T: Clone + Send + Sync + 'static> TypedValueParser for Listed<T> {
    type Value = T;

    fn parse_ref(
        &self,
        command: &clap::Command,
        argument: Option<&clap::Arg>,
        value: &std::ffi::OsStr,
    ) -> Result<T, clap::Error> {
        let text = value.to_string_lossy();
        (self.read)(&text).map_err(|problem| {
            let argument =
                argument.map_or_else(String::new, |argument| format!(" for '{argument}'"));
            let problem = format!("invalid value '{text}'{argument}: {problem}");
            clap::Error::raw(ErrorKind::ValueValidation, format!("{problem}\n")).with_cmd(command)
        })
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(self.names.iter().map(PossibleValue::new)))
    }
}

/// More ranks than this are more than any machine has.
const RANKS_MAX: usize = 1 << 20;

/// A number of ranks that there may be.
pub fn ranks(text: &str) -> Result<usize, String> {
    let number = text.parse().ok().filter(|n| (1..=RANKS_MAX).contains(n));
    number.ok_or_else(|| format!("1 to {RANKS_MAX} ranks are possible"))
}
