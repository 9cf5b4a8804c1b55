//! Registries of OCI artifacts: Debian's, keys that sign what is in it, and manifests.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rcgen::{KeyPair, SigningKey};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::admin_api::digest;
use super::client::Client;
use super::eventually::eventually_some;

/// The media type of manifests.
pub(crate) const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";

/// How many ports are tried for a registry.
const PORTS_TRIED: usize = 10;

/// A key that signs plugins.
pub(crate) struct Signer(KeyPair);

impl Signer {
    pub(crate) fn new() -> Self {
        Self(KeyPair::generate().unwrap())
    }

    /// Its public half, as a tenant's document has it.
    pub(crate) fn public(&self) -> String {
        self.0.public_key_pem()
    }

    /// A signature over these bytes, as `openssl dgst -sha256 -sign` makes it.
    pub(crate) fn sign(&self, message: &[u8]) -> Vec<u8> {
        self.0.sign(message).unwrap()
    }

    /// A signature over a plugin's file, as requests have it.
    pub(crate) fn signature(&self, file: &[u8]) -> Value {
        json!({ "signature": STANDARD.encode(self.sign(file)) })
    }

    /// A signature over cosign's payload for this manifest, as requests have it.
    pub(crate) fn artifact_signature(&self, manifest: &[u8]) -> Value {
        let payload = payload(manifest);
        json!({
            "signature": STANDARD.encode(self.sign(&payload)),
            "payload": STANDARD.encode(&payload),
            "manifest": STANDARD.encode(manifest),
        })
    }
}

/// What cosign signs for this manifest.
fn payload(manifest: &[u8]) -> Vec<u8> {
    let image = json!({ "docker-manifest-digest": digest(manifest) });
    let identity = json!({ "docker-reference": "registry.example/acme/digits" });
    let kind = "cosign container image signature";
    let critical = json!({ "identity": identity, "image": image, "type": kind });
    json!({ "critical": critical, "optional": null }).to_string().into_bytes()
}

/// The manifest of a plugin.
pub(crate) fn manifest(file: &[u8]) -> Vec<u8> {
    let layer = descriptor("application/wasm", file);
    let config = descriptor("application/vnd.wasm.config.v0+json", b"{}");
    let layers = json!([layer]);
    json!({ "schemaVersion": 2, "mediaType": MANIFEST, "config": config, "layers": layers })
        .to_string()
        .into_bytes()
}

fn descriptor(media_type: &str, content: &[u8]) -> Value {
    json!({ "mediaType": media_type, "digest": digest(content), "size": content.len() })
}

/// Debian's registry, killed when dropped.
pub(crate) struct Registry {
    port: u16,
    process: Child,
    _directory: TempDir,
}

impl Registry {
    /// It answers when this returns.
    pub(crate) fn start() -> Self {
        Self::start_with("")
    }

    /// The same with TLS.
    pub(crate) fn start_with_tls(certificate: &Path, key: &Path) -> Self {
        let (certificate, key) = (certificate.display(), key.display());
        Self::start_with(&format!(", tls: {{certificate: '{certificate}', key: '{key}'}}"))
    }

    /// With more settings of its listener.
    fn start_with(listener: &str) -> Self {
        let program = std::env::var_os("GRISTMILL_TEST_REGISTRY").map(PathBuf::from);
        let program = program.expect("GRISTMILL_TEST_REGISTRY is not set: run cargo xtask test");
        for _ in 0..PORTS_TRIED {
            // The port is free again when the listener is dropped. Until the registry takes it,
            // another process can.
            let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
            let directory = tempfile::tempdir().unwrap();
            let (config, folder) = (directory.path().join("config.yml"), directory.path());
            let text = format!(
                "version: 0.1\nlog: {{level: error, accesslog: {{disabled: true}}}}\n\
                 storage: {{filesystem: {{rootdirectory: {}}}}}\n\
                 http: {{addr: '127.0.0.1:{port}'{listener}}}\n",
                folder.join("data").display()
            );
            std::fs::write(&config, text).unwrap();
            let mut process = Command::new(&program)
                .arg("serve")
                .arg(&config)
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()
                .unwrap();
            let is_there = eventually_some("the registry answers", || {
                if process.try_wait().unwrap().is_some() {
                    return Some(false);
                }
                std::net::TcpStream::connect(("127.0.0.1", port)).is_ok().then_some(true)
            });
            if is_there {
                return Self { port, process, _directory: directory };
            }
        }
        panic!("the registry ended on each of {PORTS_TRIED} ports");
    }

    /// The name of an artifact in it.
    pub(crate) fn name(&self, below: &str) -> String {
        format!("oci://127.0.0.1:{}/{below}", self.port)
    }

    /// The same by an address that leads to this machine and is not known as its own, so that
    /// registries there have TLS.
    pub(crate) fn name_elsewhere(&self, below: &str) -> String {
        format!("oci://0.0.0.0:{}/{below}", self.port)
    }

    fn client(&self) -> Client {
        Client::new(&format!("http://127.0.0.1:{}", self.port), None)
    }

    /// The bytes of a manifest.
    pub(crate) fn manifest(&self, repository: &str, version: &str) -> Vec<u8> {
        let path = format!("/v2/{repository}/manifests/{version}");
        let answer = self.client().send("GET", &path, &[("accept", MANIFEST)], None);
        assert_eq!(answer.status, 200, "{}", answer.text());
        answer.body
    }

    /// Sign the artifact with this manifest, as `cosign sign --key` does with each of the keys.
    pub(crate) fn sign(&self, repository: &str, signed: &[u8], signers: &[&Signer]) {
        let payload = payload(signed);
        self.blob(repository, &payload);
        self.blob(repository, b"{}");
        let media_type = "application/vnd.dev.cosign.simplesigning.v1+json";
        let layers: Vec<_> = signers
            .iter()
            .map(|signer| {
                let mut layer = descriptor(media_type, &payload);
                let signature = STANDARD.encode(signer.sign(&payload));
                layer["annotations"] = json!({ "dev.cosignproject.cosign/signature": signature });
                layer
            })
            .collect();
        let config = descriptor("application/vnd.oci.image.config.v1+json", b"{}");
        let document = json!({
            "schemaVersion": 2, "mediaType": MANIFEST, "config": config, "layers": layers,
        });
        let tag = digest(signed).replace(':', "-");
        let path = format!("/v2/{repository}/manifests/{tag}.sig");
        let body = document.to_string();
        let headers = [("content-type", MANIFEST)];
        let answer = self.client().send("PUT", &path, &headers, Some(body.as_bytes()));
        assert_eq!(answer.status, 201, "{}", answer.text());
    }

    fn blob(&self, repository: &str, content: &[u8]) {
        let begun = self.client().post(&format!("/v2/{repository}/blobs/uploads/"), b"");
        let location = begun.header("location");
        let path = &location[location.find("/v2/").unwrap()..];
        let put = format!("{path}&digest={}", digest(content));
        let headers = [("content-type", "application/octet-stream")];
        let answer = self.client().send("PUT", &put, &headers, Some(content));
        assert_eq!(answer.status, 201, "{}", answer.text());
    }
}

impl Drop for Registry {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
