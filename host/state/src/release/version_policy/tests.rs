use serde_json::{Value, json};

use super::*;

fn read(policy: Value) -> Result<VersionPolicy, Vec<String>> {
    let Value::Object(keys) = json!({ "p": policy }) else { unreachable!() };
    let mut document = Document::new(keys);
    let policy = VersionPolicy::read(&mut document, "p", 16);
    let mut faults = document.finish();
    policy.check("p", 16, &mut faults);
    if faults.is_empty() { Ok(policy) } else { Err(faults.into_texts()) }
}

#[test]
fn a_policy_is_read_as_the_log_reads_it() {
    for policy in
        [json!({ "latest": { "num_versions": 16 } }), json!({ "specific": { "versions": [3, 5] } })]
    {
        let logged: VersionPolicy = serde_json::from_value(policy.clone()).unwrap();
        assert_eq!(serde_json::to_value(&logged).unwrap(), policy);
        assert_eq!(read(policy), Ok(logged));
    }
    assert_eq!(read(Value::Null), Ok(VersionPolicy::default()));
    assert_eq!(read(json!({})), Ok(VersionPolicy::default()));
}

#[test]
fn every_fault_of_a_policy_is_named() {
    let sixteen: Vec<u64> = (1..18).collect();
    for (policy, expected) in [
        (
            json!({ "latest": { "num_versions": 0 } }),
            &["p.latest.num_versions is 0: must be 1"][..],
        ),
        (json!({ "latest": { "num_versions": 17 } }), &["p.latest.num_versions is 17: must be 1"]),
        (json!({ "latest": {} }), &["p.latest.num_versions is missing"]),
        (json!({ "latest": 2 }), &["p.latest is 2: must be a JSON object"]),
        (json!({ "latest": { "num": 2 } }), &["p.latest.num_versions is missing", "p.latest: unk"]),
        (json!({ "specific": {} }), &["p.specific.versions is missing"]),
        (json!({ "specific": { "versions": [] } }), &["p.specific.versions is empty"]),
        (json!({ "specific": { "versions": [3, 0] } }), &["p.specific.versions[1] is 0: must be"]),
        (json!({ "specific": { "versions": sixteen } }), &["p.specific.versions has 17 versions"]),
        (json!({ "all": {} }), &["p.all is not offered, because each version takes memory"]),
        (json!({ "newest": {} }), &["p: unknown key \"newest\"; known are latest, specific, all"]),
        (
            json!({ "latest": { "num_versions": 2 }, "specific": { "versions": [3] } }),
            &["p.specific is given, and latest, too"],
        ),
        (json!(7), &["p is 7: must be a JSON object"]),
    ] {
        let faults = read(policy.clone()).unwrap_err();
        assert_eq!(faults.len(), expected.len(), "{policy}: {faults:#?}");
        for (fault, expected) in faults.iter().zip(expected) {
            assert!(fault.starts_with(expected), "{policy}: {fault}");
        }
    }
}

#[test]
fn a_policy_keeps_the_newest_or_those_that_it_names() {
    let latest = VersionPolicy::Latest { num_versions: 2 };
    assert!(latest.keeps(3, 1) && !latest.keeps(3, 2));
    let specific = VersionPolicy::Specific { versions: [3, 5].into() };
    assert!(specific.keeps(3, 9) && !specific.keeps(4, 1));
    assert!(specific.named().eq([3, 5]) && latest.named().next().is_none());
}
