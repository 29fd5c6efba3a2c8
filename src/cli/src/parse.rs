//! Values of arguments that several subcommands take.

use colltune_core::collective::Collective;
use colltune_core::library::Abi;
use colltune_core::request::Mode;

pub fn mode(text: &str) -> Result<Mode, String> {
    text.parse().map_err(|_| one_of(Mode::ALL.map(Mode::name)))
}

pub fn abi(text: &str) -> Result<Abi, String> {
    Abi::from_name(text).ok_or_else(|| one_of(Abi::ALL.map(Abi::name)))
}

pub fn collective(text: &str) -> Result<Collective, String> {
    Collective::from_name(text).ok_or_else(|| one_of(Collective::ALL.map(Collective::name)))
}

fn one_of<const N: usize>(names: [&str; N]) -> String {
    format!("allowed: {}", names.join(", "))
}
