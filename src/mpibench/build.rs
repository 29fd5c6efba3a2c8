//! The compiler wrapper's own words for the linker, as where the library lies.

fn main() {
    let words = std::env::var("DEP_MPI_LINKER_WORDS").unwrap_or_default();
    for word in words.split_whitespace() {
        println!("cargo:rustc-link-arg-bins={word}");
    }
}
