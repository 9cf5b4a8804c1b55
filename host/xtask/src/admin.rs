//! The admin API, as far as the tasks use it.

use anyhow::{Context, Result, bail};
use serde_json::Value;

/// A client of one server's admin plane.
pub(crate) struct Admin {
    pub(crate) url: String,
    pub(crate) token: String,
}

impl Admin {
    /// Upload a file.
    pub(crate) fn put_file(&self, path: &str, file: &std::path::Path) -> Result<()> {
        let body = std::fs::read(file).with_context(|| file.display().to_string())?;
        self.put(path, "application/octet-stream", &body)
    }

    /// Put a JSON document.
    pub(crate) fn put_json(&self, path: &str, document: &Value) -> Result<()> {
        self.put(path, "application/json", document.to_string().as_bytes())
    }

    /// What a path of the API says.
    pub(crate) fn get(&self, path: &str) -> Result<Value> {
        let url = format!("{}/admin/v1/{path}", self.url);
        let request =
            ureq::get(&url).header("authorization", format!("Bearer {}", self.token)).call();
        let text = request
            .and_then(|mut response| response.body_mut().read_to_string())
            .with_context(|| format!("GET {url}"))?;
        serde_json::from_str(&text).with_context(|| format!("GET {url}"))
    }

    fn put(&self, path: &str, content_type: &str, body: &[u8]) -> Result<()> {
        let url = format!("{}/admin/v1/{path}", self.url);
        let agent: ureq::Agent =
            ureq::Agent::config_builder().http_status_as_error(false).build().into();
        let mut response = agent
            .put(&url)
            .header("authorization", format!("Bearer {}", self.token))
            .header("content-type", content_type)
            .send(body)
            .with_context(|| format!("PUT {url}"))?;
        if !response.status().is_success() {
            bail!("PUT {url}: {}: {}", response.status(), response.body_mut().read_to_string()?);
        }
        Ok(())
    }
}
