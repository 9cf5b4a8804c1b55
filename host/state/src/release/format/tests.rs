use bytes::Bytes;

use super::Head;
use crate::release::change::{Change, ReleaseNote};
use crate::testing::name;

fn change(tenant: &str) -> Vec<Change> {
    vec![Change::DeleteTenant { tenant: tenant.parse().unwrap() }]
}

fn note() -> ReleaseNote {
    ReleaseNote { by: Some("ci".into()), message: Some("why".into()) }
}

/// The documents of a log of `len` releases.
fn log(len: u64) -> Vec<Bytes> {
    let mut head = Head::default();
    let write = |number: u64| {
        let (document, next) =
            head.write(1000 + number, note(), change(&format!("tenant-{number}")))?;
        head = next;
        Ok::<_, serde_json::Error>(document)
    };
    (1..=len).map(write).collect::<Result<_, _>>().unwrap()
}

/// Read all documents. Returns the last head, or the number of the refused document and the error.
fn read<D: AsRef<[u8]>>(documents: &[D]) -> Result<Head, (u64, String)> {
    documents.iter().try_fold(Head::default(), |head, document| {
        let read = head.read(document.as_ref()).map_err(|why| (head.number + 1, why.to_string()));
        read.map(|(_, head)| head)
    })
}

#[track_caller]
fn refused<D: AsRef<[u8]>>(documents: &[D], number: u64, named: &str) {
    let (at, why) = read(documents).unwrap_err();
    assert!(at == number && why.contains(named), "{at}: {why}");
}

/// A release as versions before format 2 wrote it.
fn bare(number: u64) -> Bytes {
    format!(
        r#"{{"number": {number}, "published_at_ms": 5,
            "changes": [{{"kind": "delete_tenant", "tenant": "old"}}]}}"#
    )
    .into()
}

#[test]
fn what_was_written_is_read() {
    let documents = log(3);
    let head = read(&documents).unwrap();
    assert_eq!(head.number, 3);
    let (release, _) = read(&documents[..2]).unwrap().read(&documents[2]).unwrap();
    assert_eq!(release.changes, change("tenant-3"));
    assert_eq!((release.published_at_ms, release.note), (1003, note()));
}

#[test]
fn every_changed_byte_is_found() {
    let documents = log(2);
    for number in [0, 1] {
        for at in 0..documents[number].len() {
            let mut spoilt: Vec<_> = documents.iter().map(|bytes| bytes.to_vec()).collect();
            spoilt[number][at] ^= 1;
            assert!(read(&spoilt).is_err(), "release {}, byte {at}", number + 1);
        }
    }
}

#[test]
fn documents_in_each_others_places_are_found() {
    let documents = log(3);
    let [one, two, three] = &documents[..] else { unreachable!() };
    refused(&[one, three, two], 2, "it says that it is release 3");
    refused(&[two], 1, "it says that it is release 2");
    refused(&[one, two, two], 3, "it says that it is release 2");
}

#[test]
fn a_document_that_was_made_anew_is_found_by_the_next() {
    let documents = log(3);
    let head = read(&documents[..1]).unwrap();
    let (forged, _) = head.write(9999, note(), change("someone-else")).unwrap();
    let forged = [documents[0].clone(), forged, documents[2].clone()];
    refused(&forged, 3, "does not follow release 2");
    assert!(read(&forged[..2]).is_ok(), "nothing comes after it that could tell");
}

#[test]
fn a_log_of_an_older_version_goes_on_with_digests() {
    let old = [bare(1), bare(2)];
    let head = read(&old).unwrap();
    let (third, _) = head.write(7, ReleaseNote::default(), change("new")).unwrap();
    let documents = [old[0].clone(), old[1].clone(), third.clone()];
    assert_eq!(read(&documents).unwrap().number, 3);
    // From the third on all documents have digests, and the third has the digest of the second.
    let stripped = [documents[0].clone(), documents[1].clone(), third.clone(), bare(4)];
    refused(&stripped, 4, "it has no digest");
    let edited = String::from_utf8(old[1].to_vec()).unwrap().replace("old", "odd");
    refused(&[old[0].clone(), edited.into(), third], 3, "does not follow release 2");
}

#[test]
fn what_could_not_be_read_is_not_written() {
    let deep = (0..125).fold(serde_json::json!(1), |inner, _| serde_json::json!([inner]));
    let spec =
        serde_json::json!({ "pre": "p", "model": "m", "post": "p", "settings": { "a": deep } });
    let spec = serde_json::from_value(spec).unwrap();
    let (tenant, pipeline) = (name("acme"), name("main"));
    let changes = vec![Change::PutPipeline { tenant, pipeline, spec }];
    let refused = Head::default().write(7, note(), changes).err().unwrap().to_string();
    assert!(refused.contains("recursion limit"), "{refused}");
}

#[test]
fn a_document_of_a_newer_format_is_refused_by_name() {
    let newer = [r#"{"format": 12, "releases": []}"#];
    let expected = "its format is 12, and this server reads formats up to 11: upgrade the server";
    refused(&newer, 1, expected);
    refused(&["{\"format\":"], 1, "EOF");
    refused(&["[]"], 1, "expected");
}

#[test]
fn a_release_with_levels_is_read_back() {
    let config =
        serde_json::json!({ "priority_levels": 2, "priority_queue_policies": { "2": {} } });
    let config = serde_json::from_value(config).unwrap();
    let put = Change::PutModelConfig { model: name("m"), config };
    let text = serde_json::to_string(&put).unwrap();
    assert_eq!(serde_json::from_str::<Change>(&text).unwrap(), put);
    assert!(serde_json::from_str::<Change>(&text.replace("\"2\"", "\"x\"")).is_err());
}
