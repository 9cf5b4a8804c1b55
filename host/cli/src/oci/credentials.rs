//! The credentials for a registry: those that `docker login` keeps.
//!
//! They are in `config.json` of the folder `~/.docker` or `DOCKER_CONFIG`, or a program has them
//! that the file names (`credsStore`, `credHelpers`).

use std::fmt;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail, ensure};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

/// The name under which docker keeps the credentials for its own registry.
const DOCKER_HUB: &str = "https://index.docker.io/v1/";

/// A user's name that says that the secret is a token to get others with.
const IDENTITY_TOKEN: &str = "<token>";

/// A user and a password. They are not shown.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Credentials(String);

impl Credentials {
    /// Those for this registry, if there are any.
    ///
    /// # Errors
    /// The file is there and cannot be read, or the program that it names fails.
    pub(super) fn of(registry: &str) -> Result<Option<Self>> {
        let folder = std::env::var_os("DOCKER_CONFIG").map(PathBuf::from);
        let home = || Some(PathBuf::from(std::env::var_os("HOME")?).join(".docker"));
        let Some(file) = folder.or_else(home).map(|folder| folder.join("config.json")) else {
            return Ok(None);
        };
        if !file.exists() {
            return Ok(None);
        }
        let failed = || format!("cannot read the credentials of {registry} in {}", file.display());
        let text = std::fs::read(&file).with_context(failed)?;
        let config: Value = serde_json::from_slice(&text).with_context(failed)?;
        Self::in_config(&config, registry).with_context(failed)
    }

    fn in_config(config: &Value, registry: &str) -> Result<Option<Self>> {
        let name = if registry == "docker.io" { DOCKER_HUB } else { registry };
        let helper = config["credHelpers"][name].as_str().or(config["credsStore"].as_str());
        if let Some(helper) = helper {
            return Self::of_helper(helper, name);
        }
        let auths = &config["auths"];
        let entry = [name.to_owned(), format!("https://{name}")].map(|name| auths[name].clone());
        let Some(entry) = entry.iter().find(|entry| entry.is_object()) else { return Ok(None) };
        if entry["identitytoken"].as_str().is_some_and(|token| !token.is_empty()) {
            return Err(identity_token());
        }
        let Some(auth) = entry["auth"].as_str() else { return Ok(None) };
        let is_pair = |pair: &Vec<u8>| pair.contains(&b':');
        let pair = STANDARD.decode(auth.trim()).ok().filter(is_pair);
        ensure!(pair.is_some(), "auth of {name} is not the Base64 of a user and a password");
        Ok(Some(Self(auth.trim().to_owned())))
    }

    /// Ask the program `docker-credential-NAME`.
    fn of_helper(helper: &str, name: &str) -> Result<Option<Self>> {
        let program = format!("docker-credential-{helper}");
        let mut asked = Command::new(&program)
            .arg("get")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()
            .with_context(|| format!("cannot start {program}: is it installed?"))?;
        if let Some(mut input) = asked.stdin.take() {
            // One that ends without reading says why in its answer.
            let _ = input.write_all(name.as_bytes());
        }
        let answer = asked.wait_with_output().with_context(|| program.clone())?;
        let text = String::from_utf8_lossy(&answer.stdout);
        if !answer.status.success() {
            // The text is part of the protocol of these programs.
            ensure!(text.contains("credentials not found"), "{program} failed: {}", text.trim());
            return Ok(None);
        }
        let document: Value =
            serde_json::from_str(&text).with_context(|| format!("{program} answers no JSON"))?;
        match (document["Username"].as_str(), document["Secret"].as_str()) {
            (Some(IDENTITY_TOKEN), _) => Err(identity_token()),
            (Some(user), Some(secret)) => {
                Ok(Some(Self(STANDARD.encode(format!("{user}:{secret}")))))
            }
            _ => bail!("{program} answers no Username and Secret"),
        }
    }

    /// The value of the header `Authorization`.
    pub(super) fn basic(&self) -> String {
        format!("Basic {}", self.0)
    }
}

fn identity_token() -> anyhow::Error {
    anyhow::anyhow!(
        "it is an identity token, which gristmill does not use: get a token of the registry, and give \
         it with --registry-token"
    )
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Credentials")
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn credentials_are_those_of_the_registry() {
        let auth = STANDARD.encode("user:pass:word");
        let config = json!({ "auths": {
            "registry.example:5000": { "auth": auth }, "https://a.example": { "auth": auth },
            "broken.example": { "auth": "?" }, "token.example": { "identitytoken": "t" },
            "elsewhere.example": {}, DOCKER_HUB: { "auth": auth },
        } });
        let of = |registry: &str| Credentials::in_config(&config, registry);
        for registry in ["registry.example:5000", "a.example", "docker.io"] {
            let basic = of(registry).unwrap().unwrap().basic();
            assert_eq!(basic, format!("Basic {auth}"), "{registry}");
        }
        for registry in ["registry.example", "elsewhere.example"] {
            assert_eq!(of(registry).unwrap(), None, "{registry}");
        }
        let error = |registry: &str| of(registry).unwrap_err().to_string();
        assert!(error("broken.example").contains("is not the Base64"));
        assert!(error("token.example").contains("--registry-token"));
        let helper = json!({ "credsStore": "of-gristmills-tests-that-is-not-there" });
        let error = Credentials::in_config(&helper, "a.example").unwrap_err().to_string();
        assert!(error.contains("is it installed?"), "{error}");
    }
}
