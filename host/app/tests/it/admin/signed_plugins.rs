//! Tenants that take only signed plugins.

use serde_json::{Value, json};

use crate::support::admin_api::{digest, make, path, post_to, read, upload};
use crate::support::client::{Client, TestAnswer};
use crate::support::files;
use crate::support::planes::Planes;
use crate::support::registry::{Signer, manifest};
use crate::support::server::Server;

const PLUGIN: &str = "tenants/acme/plugins/digits";

/// The tenant `acme` with these signers.
fn tenant(signers: &[&Signer]) -> Value {
    let signers: Vec<_> = signers.iter().map(|signer| signer.public()).collect();
    json!({ "open": true, "plugin_signers": signers })
}

/// The answer to an upload with this signature.
fn put(admin: &Client, file: &[u8], signature: &Value) -> TestAnswer {
    let text = signature.to_string();
    let headers = [("gristmill-plugin-signature", text.as_str())];
    admin.send("PUT", &path(PLUGIN), &headers, Some(file))
}

/// Whether a plugin that is not one was refused for its signature.
#[track_caller]
fn is_unsigned(answer: &TestAnswer) -> bool {
    assert_ne!(answer.status, 200, "{}", answer.text());
    answer.text().contains("plugin_signers")
}

#[test]
fn a_plugin_without_the_signature_of_a_signer_is_refused() {
    let planes = Planes::open();
    let (signer, other) = (Signer::new(), Signer::new());
    planes.put_json("tenants/acme", &tenant(&[&signer]));
    let file = b"no plugin, but nobody gets as far as that";
    let unsigned = planes.admin.put(&path(PLUGIN), file);
    let named = ["plugin \"digits\"", "tenant \"acme\"", "plugin_signers", "--signature"];
    unsigned.refused(422, "unsigned_plugin", &named);
    let (own_manifest, foreign) = (manifest(file), manifest(b"another file"));
    let mut swapped = signer.artifact_signature(&own_manifest);
    swapped["manifest"] = signer.artifact_signature(&foreign)["manifest"].clone();
    for (signature, named) in [
        (other.signature(file), "none of the keys"),
        (signer.signature(b"another file"), "none of the keys"),
        (json!({ "signature": "AAAA" }), "none of the keys"),
        (other.artifact_signature(&own_manifest), "none of the keys"),
        (signer.artifact_signature(&foreign), "its signature is for the file"),
        (swapped, "its signature is for the manifest"),
    ] {
        put(&planes.admin, file, &signature).refused(422, "unsigned_plugin", &[named]);
    }
    let wrong = put(&planes.admin, file, &json!({ "signature": 7 }));
    wrong.refused(400, "invalid_request", &["Gristmill-Plugin-Signature", "signature is 7"]);
    // Signed, it is looked at; it is not a plugin.
    assert!(!is_unsigned(&put(&planes.admin, file, &signer.signature(file))));

    // In a release of many changes, too, which may bring the keys.
    let blob = format!("blobs/{}", digest(file));
    planes.admin.put(&path(&blob), file).ok();
    let change = |signature: Option<Value>| {
        let mut put = json!({
            "kind": "put_plugin", "tenant": "new", "plugin": "digits", "digest": digest(file),
        });
        if let Some(signature) = signature {
            put["signature"] = signature;
        }
        let new = json!({ "kind": "put_tenant", "tenant": "new", "document": tenant(&[&signer]) });
        let release = json!({ "changes": [new, put] });
        planes.admin.post(&path("releases"), release.to_string().as_bytes())
    };
    change(None).refused(422, "unsigned_plugin", &["changes[1]", "it has no signature"]);
    let signature = Some(other.signature(file));
    change(signature).refused(422, "unsigned_plugin", &["changes[1]", "none of the keys"]);
    let signature = Some(signer.artifact_signature(&foreign));
    change(signature).refused(422, "unsigned_plugin", &["changes[1]", "is for the file"]);
    let signature = Some(json!({ "signature": "AA==", "more": 1 }));
    change(signature).refused(422, "unprocessable", &["changes[1].signature", "\"more\""]);
    assert!(!is_unsigned(&change(Some(signer.signature(file)))));
}

#[test]
fn signers_are_keys_and_the_operators_to_set() {
    let planes = Planes::open();
    let signer = Signer::new();
    let document = |signers: Value| json!({ "open": true, "plugin_signers": signers });
    let refused = planes.admin.put_json(&path("tenants/acme"), &document(json!(["a key"])));
    refused.refused(422, "unprocessable", &["plugin_signers[0] must be a public key in PEM"]);
    planes.put_json("tenants/acme", &document(json!([signer.public()])));
    let read = planes.admin.get(&path("tenants/acme")).ok();
    assert_eq!(read["plugin_signers"], json!([signer.public()]));
    let deploy = json!({ "role": "deploy", "tenants": ["acme"] });
    let made = planes.admin.put_json(&path("tokens/ci"), &deploy).ok();
    let ci = planes.admin.with_token(made["secret"].as_str().unwrap());
    let answer = ci.put_json(&path("tenants/acme"), &json!({ "open": true }));
    answer.refused(403, "forbidden", &[]);
    assert_eq!(planes.admin.get(&path("tenants/acme")).ok(), read);
}

#[test]
fn a_signed_plugin_is_taken_as_long_as_its_key_is_there() {
    let server = Server::start();
    let (signer, other) = (Signer::new(), Signer::new());
    let (first, second) = (files::plugin("digits"), files::plugin("hostile"));
    server.open_tenant("acme");
    let unsigned = server.put(PLUGIN, &first);
    server.put_json("tenants/acme", &tenant(&[&other, &signer]));
    // What was there before stays, but is not put again.
    server.admin.put(&path(PLUGIN), &first).refused(422, "unsigned_plugin", &[]);
    put(&server.admin, &second, &signer.signature(&second)).ok();
    let signature = other.artifact_signature(&manifest(&first));
    put(&server.admin, &first, &signature).ok();
    // A token of the tenant is no way around.
    let ci = make(&server, "ci", &json!({ "role": "deploy", "tenants": ["acme"] }));
    let ci = server.admin.with_token(&ci);
    ci.put(&path(PLUGIN), &second).refused(422, "unsigned_plugin", &[]);
    put(&ci, &second, &signer.signature(&second)).ok();

    server.put_json("tenants/acme", &tenant(&[&other]));
    let answer = put(&server.admin, &second, &signer.signature(&second));
    answer.refused(422, "unsigned_plugin", &["none of the keys"]);
    // Uploaded before, and named by a release.
    let put_plugin = json!({
        "kind": "put_plugin", "tenant": "acme", "plugin": "again", "digest": upload(&server, &first),
    });
    let release = |change: &Value| post_to(&server, "releases", &json!({ "changes": [change] }));
    release(&put_plugin).refused(422, "unsigned_plugin", &["changes[0]"]);
    let mut signed = put_plugin.clone();
    signed["signature"] = other.signature(&first);
    release(&signed).ok();

    // Going back brings back what was accepted then. The tenant's people cannot bring back a
    // document without the keys.
    let back = json!({ "to": unsigned, "tenant": "acme" });
    ci.post(&path("rollback"), back.to_string().as_bytes()).ok();
    assert_eq!(read(&server, PLUGIN)["digest"], digest(&first));
    // The log is read as it was written.
    let server = server.kill().start();
    let signers = &read(&server, "tenants/acme")["plugin_signers"];
    assert_eq!(*signers, json!([other.public()]));
}
