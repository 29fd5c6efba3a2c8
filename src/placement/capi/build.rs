//! The shared library's name for programs that were linked to it, by which systems keep versions apart that callers of
//! earlier ones cannot use. Structures grow at their ends, so none of these has come yet.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libcolltune_placement.so.0");
}
