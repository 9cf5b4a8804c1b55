//! Requests of both tenants at the same time, and how they met in batches.

use std::fs;
use std::path::Path;
use std::thread;

use anyhow::{Context, Result, bail};
use bytes::Bytes;
use gristmill_client::http::Request;
use gristmill_client::{Client, block_on};
use serde_json::{Map, Value};

/// Requests that each tenant sends, and how many of them at a time.
const REQUESTS: usize = 240;
const AT_A_TIME: usize = 8;

/// Send the picture for `demo`, which is open, and for `acme`, which has this key.
pub(super) fn send(url: &str, picture: &Path, acme_key: &str) -> Result<()> {
    let picture = Bytes::from(fs::read(picture).with_context(|| picture.display().to_string())?);
    let anyone = Client::new(url.parse()?);
    let acme = anyone.clone().with_token(acme_key)?;
    let send = |tenant: &str| -> Result<()> {
        let client = if tenant == "acme" { &acme } else { &anyone };
        let path = format!("/v1/{tenant}/infer/digits");
        let answer = block_on(client.send(Request::post(&path).body(picture.clone())?));
        answer?.ok().with_context(|| format!("POST {path}"))?;
        Ok(())
    };
    let repeat = |tenant: &str| (0..REQUESTS / AT_A_TIME).try_for_each(|_| send(tenant));
    thread::scope(|scope| {
        let senders: Vec<_> = ["demo", "acme"]
            .into_iter()
            .flat_map(|tenant| vec![tenant; AT_A_TIME])
            .map(|tenant| scope.spawn(move || repeat(tenant)))
            .collect();
        senders.into_iter().try_for_each(|sender| match sender.join() {
            Ok(sent) => sent,
            Err(_) => bail!("a sender panicked"),
        })
    })
}

/// A sentence about the batches of the digits model that had rows of both tenants.
pub(super) fn summary(lane: &Value) -> String {
    let count = |name: &str| lane[name].as_u64().unwrap_or_default();
    let (batches, mixed) = (count("batches"), count("mixed_batches"));
    let sent = format!(
        "Just now demo and acme sent {REQUESTS} digits each, {AT_A_TIME} at a time. They ran in \
         {batches} batches, {mixed} of them with rows of both tenants"
    );
    let recent = lane["recent_mixed_batches"].as_array();
    // The batch with the most rows.
    let largest =
        recent.into_iter().flatten().filter_map(Value::as_object).max_by_key(|batch| rows(batch));
    match largest {
        Some(batch) => {
            let shares: Vec<_> =
                batch.iter().map(|(tenant, rows)| format!("{rows} of {tenant}")).collect();
            format!("{sent}; one of these had {} rows: {}.", rows(batch), shares.join(", "))
        }
        None => format!("{sent}."),
    }
}

fn rows(batch: &Map<String, Value>) -> u64 {
    batch.values().filter_map(Value::as_u64).sum()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::summary;

    #[test]
    fn the_batch_that_both_share_is_told_with_its_rows() {
        let lane = json!({
            "batches": 90,
            "mixed_batches": 60,
            "recent_mixed_batches": [{ "acme": 1, "demo": 1 }, { "acme": 3, "demo": 4 }],
        });
        let text = summary(&lane);
        assert!(text.contains("90 batches, 60 of them with rows of both tenants"), "{text}");
        assert!(text.ends_with("one of these had 7 rows: 3 of acme, 4 of demo."), "{text}");
    }

    #[test]
    fn no_shared_batch_is_told_as_it_is() {
        let text =
            summary(&json!({ "batches": 480, "mixed_batches": 0, "recent_mixed_batches": [] }));
        assert!(text.ends_with("480 batches, 0 of them with rows of both tenants."), "{text}");
    }
}
