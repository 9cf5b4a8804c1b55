use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_ASN1_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair};
use serde_json::json;

use super::*;

const FILE: &[u8] = b"a plugin";

/// The header of an ECDSA key and of an Ed25519 key, before their bytes.
const P256: &str = "3059301306072a8648ce3d020106082a8648ce3d030107034200";
const ED25519: &str = "302a300506032b6570032100";

fn signer(prefix: &str, key: &[u8]) -> Signer {
    let byte = |at: usize| u8::from_str_radix(&prefix[at..at + 2], 16).unwrap();
    let mut der: Vec<u8> = (0..prefix.len()).step_by(2).map(byte).collect();
    der.extend_from_slice(key);
    let text = STANDARD.encode(der);
    let pem = format!("-----BEGIN PUBLIC KEY-----\n{text}\n-----END PUBLIC KEY-----\n");
    pem.try_into().unwrap()
}

struct Key {
    pair: EcdsaKeyPair,
    signer: Signer,
}

impl Key {
    fn new() -> Self {
        let (algorithm, random) = (&ECDSA_P256_SHA256_ASN1_SIGNING, SystemRandom::new());
        let document = EcdsaKeyPair::generate_pkcs8(algorithm, &random).unwrap();
        let pair = EcdsaKeyPair::from_pkcs8(algorithm, document.as_ref(), &random).unwrap();
        let signer = signer(P256, pair.public_key().as_ref());
        Self { pair, signer }
    }

    fn sign(&self, message: &[u8]) -> Vec<u8> {
        self.pair.sign(&SystemRandom::new(), message).unwrap().as_ref().to_vec()
    }
}

fn manifest(layers: &[Digest]) -> Vec<u8> {
    let layers: Vec<_> = layers.iter().map(|digest| json!({ "digest": digest })).collect();
    json!({ "schemaVersion": 2, "layers": layers }).to_string().into_bytes()
}

fn payload(manifest: &[u8]) -> Vec<u8> {
    let image = json!({ "docker-manifest-digest": Digest::of(manifest) });
    let critical = json!({ "image": image, "type": COSIGN_TYPE });
    json!({ "critical": critical, "optional": null }).to_string().into_bytes()
}

/// Whether the key made the signature of this file.
fn is_by(mut signature: PluginSignature, key: &Key, file: &[u8]) -> Result<bool, SignatureFault> {
    let signers = [key.signer.clone()];
    match signature.find_signers(&signers, Digest::of(file), file) {
        Ok(()) | Err(SignatureFault::OtherKey) => Ok(signature.is_by(&signers)),
        Err(fault) => Err(fault),
    }
}

#[test]
fn a_signature_of_the_file_counts_for_this_file_and_this_key() {
    let (key, other) = (Key::new(), Key::new());
    let signature = PluginSignature::of_file(key.sign(FILE));
    assert_eq!(is_by(signature.clone(), &key, FILE), Ok(true));
    assert_eq!(is_by(signature.clone(), &key, b"another plugin"), Ok(false));
    assert_eq!(is_by(signature.clone(), &other, FILE), Ok(false));
    // One that nobody has looked at.
    assert!(!signature.is_by(std::slice::from_ref(&key.signer)));
    for broken in [Vec::new(), vec![0; 64], vec![0x30; 100]] {
        assert_eq!(is_by(PluginSignature::of_file(broken), &key, FILE), Ok(false));
    }
}

#[test]
fn a_signature_of_ed25519_counts() {
    let document = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).unwrap();
    let pair = Ed25519KeyPair::from_pkcs8(document.as_ref()).unwrap();
    let signers = [signer(ED25519, pair.public_key().as_ref())];
    let mut signature = PluginSignature::of_file(pair.sign(FILE).as_ref().to_vec());
    signature.find_signers(&signers, Digest::of(FILE), FILE).unwrap();
    assert!(signature.is_by(&signers));
}

#[test]
fn a_signature_in_a_registry_counts_only_with_its_whole_chain() {
    let (key, digest) = (Key::new(), Digest::of(FILE));
    let of = |payload: &[u8], manifest: &[u8]| {
        PluginSignature::of_artifact(key.sign(payload), payload.to_vec(), manifest.to_vec())
    };
    let (own_manifest, other) = (manifest(&[digest]), manifest(&[Digest::of(b"other")]));
    assert_eq!(is_by(of(&payload(&own_manifest), &own_manifest), &key, FILE), Ok(true));
    assert_eq!(is_by(of(&payload(&own_manifest), &own_manifest), &Key::new(), FILE), Ok(false));
    // The payload was changed after it was signed.
    let changed =
        PluginSignature::of_artifact(key.sign(b"{}"), payload(&own_manifest), own_manifest.clone());
    assert_eq!(is_by(changed, &key, FILE), Ok(false));

    let fault = |payload: &[u8], manifest: &[u8], file: &[u8]| {
        is_by(of(payload, manifest), &key, file).unwrap_err()
    };
    let (signed, sent) = (Digest::of(&other).to_string(), Digest::of(&own_manifest));
    let expected = SignatureFault::OtherManifest { signed, sent };
    assert_eq!(fault(&payload(&other), &own_manifest, FILE), expected);
    let (signed, sent) = (digest.to_string(), Digest::of(b"tampered"));
    let expected = SignatureFault::OtherFile { signed, sent };
    assert_eq!(fault(&payload(&own_manifest), &own_manifest, b"tampered"), expected);
    // Nobody knows which of two layers was meant.
    for layers in [&[][..], &[digest, digest]] {
        let manifest = manifest(layers);
        assert_eq!(fault(&payload(&manifest), &manifest, FILE), SignatureFault::Manifest);
    }
    assert_eq!(fault(&payload(b"[]"), b"[]", FILE), SignatureFault::Manifest);
    let image = json!({ "docker-manifest-digest": Digest::of(&own_manifest) });
    for wrong in [
        json!(7),
        json!({ "critical": { "image": image } }),
        json!({ "critical": { "image": image, "type": "atomic container signature" } }),
        json!({ "critical": { "image": {}, "type": COSIGN_TYPE } }),
    ] {
        let fault = fault(wrong.to_string().as_bytes(), &own_manifest, FILE);
        assert!(matches!(fault, SignatureFault::Payload(_)), "{wrong}: {fault}");
    }
}

#[test]
fn a_document_is_read_as_it_was_written() {
    let read = |value: Value| {
        let Value::Object(keys) = value else { unreachable!() };
        let mut document = Document::new(keys);
        let signature = PluginSignature::read(&mut document);
        (signature, document.finish().into_texts())
    };
    for signature in [
        PluginSignature::of_file(vec![1, 2, 3]),
        PluginSignature::of_artifact(vec![1], b"payload".to_vec(), b"manifest".to_vec()),
    ] {
        let document = serde_json::to_value(signature.document()).unwrap();
        assert_eq!(read(document), (Some(signature), Vec::new()));
    }
    let long = "A".repeat(TEXT_BYTES_MAX + 1);
    for (wrong, named) in [
        (json!({}), "signature is missing"),
        (json!({ "signature": "?" }), "signature must be Base64"),
        (json!({ "signature": long }), "signature is longer than 16384 characters"),
        (json!({ "signature": "AA==", "payload": "AA==" }), "manifest is missing"),
        (json!({ "signature": "AA==", "key": "AA==" }), "unknown key \"key\""),
    ] {
        let (_, faults) = read(wrong);
        assert_eq!(faults.len(), 1, "{faults:?}");
        assert!(faults[0].starts_with(named), "{faults:?}");
    }
}
