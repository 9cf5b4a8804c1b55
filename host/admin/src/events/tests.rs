use serde_json::json;

use super::*;

fn shown(value: u64) -> Shown {
    let metrics = Some(format!("a {value}\nb 1\n").into());
    Shown { status: json!({ "release": value, "version": "1" }), metrics }
}

fn name(text: &str) -> Name {
    text.parse().unwrap()
}

async fn next(listener: &mut Listener, value: u64) -> String {
    let sent = listener.next(|| async { Some(shown(value)) }).await.unwrap();
    String::from_utf8(sent.into()).unwrap()
}

#[tokio::test(start_paused = true)]
async fn all_is_sent_first_and_then_what_has_changed_once_for_all_listeners() {
    let feeds = Feeds::default();
    let mut listeners = [(); 2].map(|()| feeds.listen(None, None).unwrap());
    let all = "event: all\nid: 0\ndata: {\"status\":{\"release\":1,\"version\":\"1\"},\
               \"metrics\":\"a 1\\nb 1\\n\"}\n\n";
    for (listener, value) in listeners.iter_mut().zip([1, 100]) {
        // The second one takes the event that the first one made.
        assert_eq!(next(listener, value).await, all);
    }
    let changes =
        "event: changes\nid: 1\ndata: {\"status\":{\"release\":2},\"metrics\":\"a 2\\n\"}\n\n";
    for (listener, value) in listeners.iter_mut().zip([2, 200]) {
        assert_eq!(next(listener, value).await, changes);
    }
    for listener in &mut listeners {
        assert_eq!(next(listener, 2).await, ":\n\n");
    }
}

#[tokio::test(start_paused = true)]
async fn a_slow_listener_skips_events_and_gets_all() {
    let feeds = Feeds::default();
    let [mut quick, mut slow] = [(); 2].map(|()| feeds.listen(None, None).unwrap());
    next(&mut quick, 1).await;
    next(&mut slow, 1).await;
    next(&mut quick, 2).await;
    next(&mut quick, 3).await;
    assert!(next(&mut slow, 4).await.starts_with("event: all\nid: 2\n"));
    assert!(next(&mut slow, 5).await.starts_with("event: changes\nid: 3\n"));
    assert!(slow.next(|| async { None }).await.is_none());
}

#[tokio::test(start_paused = true)]
async fn tenants_have_feeds_of_their_own_that_end_with_their_listeners() {
    let feeds = Feeds::default();
    let scope_of = |tenant: &str| Some(BTreeSet::from([name(tenant)]));
    let ci = name("ci");
    let mut one = feeds.listen(scope_of("acme"), Some(&ci)).unwrap();
    let mut other = feeds.listen(scope_of("other"), Some(&ci)).unwrap();
    assert!(next(&mut one, 1).await.contains("\"release\":1"));
    assert!(next(&mut other, 2).await.contains("\"release\":2"));
    drop((one, other));
    drop(feeds.listen(None, None).unwrap());
    let listening = feeds.listening.lock();
    assert!(listening.counts.is_empty());
    assert_eq!(listening.feeds.len(), 1, "the dead ones went when the last one came");
}

#[tokio::test]
async fn listeners_are_bounded() {
    let feeds = Feeds::default();
    let listen = |guest: Option<&Name>| feeds.listen(None, guest);
    let refused = |guest: Option<&Name>| listen(guest).err().unwrap();
    let mut all: Vec<_> = (0..OPERATORS_MAX).map(|_| listen(None).unwrap()).collect();
    assert_eq!(refused(None).code, ErrorCode::TokenBusy);
    for token in 0..GUESTS_MAX / OWN_MAX {
        let token = name(&format!("t{token}"));
        all.extend((0..OWN_MAX).map(|_| listen(Some(&token)).unwrap()));
        assert!(refused(Some(&token)).detail.contains("with the token"));
    }
    assert!(refused(Some(&name("late"))).detail.contains("a few tenants"));
    all.clear();
    listen(None).unwrap();
}
