//! A question at the terminal, before something is changed.

use std::io::{IsTerminal, Write, stderr, stdin};

use anyhow::{Result, bail};

/// Ask whether to go on.
///
/// # Errors
/// The answer is not yes, or there is no terminal to ask at.
pub(crate) fn ask(question: &str) -> Result<()> {
    if !stdin().is_terminal() {
        bail!("there is no terminal to ask at: give --yes to go on");
    }
    eprint!("{question} [y/N] ");
    stderr().flush()?;
    let mut answer = String::new();
    stdin().read_line(&mut answer)?;
    match ["y", "yes"].contains(&answer.trim().to_lowercase().as_str()) {
        true => Ok(()),
        false => bail!("nothing was changed"),
    }
}
