//! Values of arguments that several subcommands take.

use colltune_core::collective::Collective;
use colltune_core::library::{Abi, Library, Product};
use colltune_core::request::Mode;

use crate::launch::library::reference;

pub fn mode(text: &str) -> Result<Mode, String> {
    text.parse().map_err(|_| one_of(Mode::ALL.map(Mode::name)))
}

pub fn abi(text: &str) -> Result<Abi, String> {
    Abi::from_name(text).ok_or_else(|| one_of(Abi::ALL.map(Abi::name)))
}

/// What a program runs on, where it does not tell itself.
#[derive(Clone, Copy, Debug)]
pub struct RunsOn {
    pub abi: Abi,
    /// Whose library, where that decides how it is tuned.
    pub product: Option<Product>,
}

pub fn runs_on(text: &str) -> Result<RunsOn, String> {
    let intel = RunsOn {
        abi: Abi::Mpich,
        product: Some(Product::Intel),
    };
    match text {
        "intel" => Ok(intel),
        _ => abi(text)
            .map(|abi| RunsOn { abi, product: None })
            .map_err(|allowed| format!("{allowed}, intel")),
    }
}

/// An MPI library by its name, as of the version that the catalogue begins with, or by its key.
pub fn library(text: &str) -> Result<Library, String> {
    match Product::from_name(text) {
        Some(product) => Ok(reference(product)),
        None => text.parse().map_err(|_| {
            let names = one_of(Product::ALL.map(Product::name));
            format!("{names}, or with a version, as in mpich-5.0.2")
        }),
    }
}

pub fn collective(text: &str) -> Result<Collective, String> {
    Collective::from_name(text).ok_or_else(|| one_of(Collective::ALL.map(Collective::name)))
}

fn one_of<const N: usize>(names: [&str; N]) -> String {
    format!("allowed: {}", names.join(", "))
}
