//! Subcommands `completions` and `manual` of an installed program: what shells and `man` know of it.
//!
//! ```text
//! $ colltune completions bash >~/.local/share/bash-completion/completions/colltune
//! $ colltune manual ~/.local/share/man/man1
//! ```

use std::path::PathBuf;

use anyhow::Context;
use clap_complete::Shell;

use crate::{print, tell};

#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  colltune completions bash >~/.local/share/bash-completion/completions/colltune
  colltune completions zsh >/usr/local/share/zsh/site-functions/_colltune
  colltune completions fish >~/.config/fish/completions/colltune.fish")]
pub struct Completions {
    /// For which shell
    #[arg(value_enum)]
    shell: Shell,
}

/// Prints the script that the shell reads.
pub fn completions(args: &Completions, mut command: clap::Command) -> anyhow::Result<()> {
    let mut script = Vec::new();
    let name = command.get_name().to_owned();
    clap_complete::generate(args.shell, &mut command, name, &mut script);
    print(&String::from_utf8(script).context("write the completions")?)
}

#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  colltune manual ~/.local/share/man/man1
      Then `man colltune` and `man colltune-tune` know them.")]
pub struct Pages {
    /// The folder; made where there is none
    #[arg(value_name = "DIR")]
    folder: PathBuf,
}

/// Writes the page of the program, `colltune.1`, and one of each subcommand, `colltune-run.1` and so on.
pub fn pages(args: &Pages, command: clap::Command) -> anyhow::Result<()> {
    let folder = &args.folder;
    std::fs::create_dir_all(folder).with_context(|| format!("create {}", folder.display()))?;
    let first = folder.join(format!("{}.1", command.get_name()));
    clap_mangen::generate_to(command, folder)
        .with_context(|| format!("write manual pages into {}", folder.display()))?;
    tell(format_args!(
        "manual pages in {}: man {}",
        folder.display(),
        first.display()
    ));
    Ok(())
}
