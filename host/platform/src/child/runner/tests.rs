#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on fails")]

use std::future::Future;
use std::io::{Read, Seek};

use super::*;

fn shell(script: &str) -> RunnerConfig {
    RunnerConfig { program: "/bin/sh".into(), ..RunnerConfig::new(&["-c", script]) }
}

fn limits() -> ChildLimits {
    ChildLimits {
        wall: Duration::from_secs(60),
        cpu: Duration::from_secs(60),
        memory_bytes: 1 << 30,
        address_bytes: None,
        output_bytes: 1 << 10,
    }
}

fn job() -> Job {
    let (document, file) = (b"document".to_vec(), Bytes::from_static(b"file"));
    let subject = "it".to_owned();
    Job { job: "test", subject, document, file, output: Output::Returned, limits: limits() }
}

#[tokio::test]
async fn a_child_gets_head_document_and_file() {
    let script = "len=$(dd bs=1 count=4 2>/dev/null | od -An -tu4); \
                  dd bs=1 count=$((len + 12)) 2>/dev/null";
    let answer = ChildRunner::new(shell(script)).run(job()).await.unwrap();
    let answer = String::from_utf8_lossy(&answer);
    assert!(answer.starts_with("{\"job\":\"test\""), "{answer:?}");
    assert!(answer.ends_with("}documentfile"), "{answer:?}");
}

#[tokio::test]
async fn a_child_has_nothing_of_its_parent() {
    let open = tempfile::NamedTempFile::new().unwrap();
    let script = "pwd; tr '\\0' ' ' </proc/$$/environ; ls -l /proc/$$/fd";
    let config = RunnerConfig { environment: vec![("A".into(), "b".into())], ..shell(script) };
    let limits = ChildLimits { output_bytes: 1 << 20, ..limits() };
    let answer = ChildRunner::new(config).run(Job { limits, ..job() }).await.unwrap();
    let answer = String::from_utf8_lossy(&answer);
    assert!(answer.starts_with("/\nA=b total"), "{answer}");
    let name = open.path().file_name().unwrap().to_string_lossy();
    assert!(!answer.contains(&*name), "{answer}");
}

#[tokio::test]
async fn a_failing_child_says_why() {
    let runner = ChildRunner::new(shell("echo 'no\n such thing' >&2; exit 3"));
    let error = runner.run(job()).await.unwrap_err();
    assert_eq!(error.to_string(), "it failed with exit status 3: no  such thing");
    assert!(!error.is_hosts_fault());
}

#[tokio::test]
async fn what_a_child_says_is_bounded() {
    let runner = ChildRunner::new(shell("head -c 10000000 /dev/zero | tr '\\0' x >&2; exit 3"));
    assert!(runner.run(job()).await.unwrap_err().to_string().len() < 5000);
}

#[tokio::test]
async fn a_killed_child_is_told_from_a_failed_one() {
    let error = ChildRunner::new(shell("kill -ABRT $$")).run(job()).await.unwrap_err();
    assert!(matches!(error, ChildError::Killed { signal: 6, .. }), "{error}");
    assert_eq!(error.to_string(), "signal 6 (SIGABRT) ended it");
    let script = "echo a lot of words >&2; kill -SEGV $$";
    let error = ChildRunner::new(shell(script)).run(job()).await.unwrap_err();
    assert_eq!(error.to_string(), "signal 11 (SIGSEGV) ended it: a lot of words");
    let script = "echo memory allocation of 8 bytes failed >&2; kill -ABRT $$";
    let error = ChildRunner::new(shell(script)).run(job()).await.unwrap_err();
    assert!(matches!(error, ChildError::OutOfMemory { .. }), "{error}");
    let error = ChildRunner::new(shell("kill -XCPU $$")).run(job()).await.unwrap_err();
    assert!(matches!(error, ChildError::OutOfTime(_)), "{error}");
}

#[tokio::test]
async fn too_long_an_answer_ends_a_child() {
    let error = ChildRunner::new(shell("cat /dev/zero")).run(job()).await.unwrap_err();
    assert!(matches!(error, ChildError::TooMuchOutput(1024)), "{error}");
}

#[tokio::test]
async fn a_child_that_never_ends_is_ended() {
    let runner = ChildRunner::new(shell("exec 2>/dev/null; while :; do :; done"));
    let limits = ChildLimits { wall: Duration::from_millis(50), ..limits() };
    let error = runner.run(Job { limits, ..job() }).await.unwrap_err();
    assert!(matches!(error, ChildError::TimedOut(_)), "{error}");
    assert_eq!(runner.status(), []);
}

#[tokio::test]
async fn what_a_child_has_started_is_ended_with_it() {
    let runner = ChildRunner::new(shell("sleep 3600 & cat >/dev/null"));
    let limits = ChildLimits { wall: Duration::from_millis(50), ..limits() };
    let error = soon(runner.run(Job { limits, ..job() })).await.unwrap_err();
    assert!(matches!(error, ChildError::TimedOut(_)), "{error}");
    // Also if the child ends first.
    let runner = ChildRunner::new(shell("sleep 3600 2>/dev/null & echo yes"));
    assert_eq!(soon(runner.run(job())).await.unwrap(), b"yes\n");
}

#[tokio::test]
async fn an_answer_can_go_to_a_file() {
    let mut file = tempfile::tempfile().unwrap();
    let output = Output::File(file.try_clone().unwrap());
    let runner = ChildRunner::new(shell("echo yes"));
    assert_eq!(runner.run(Job { output, ..job() }).await.unwrap(), b"");
    let mut text = String::new();
    file.rewind().unwrap();
    file.read_to_string(&mut text).unwrap();
    assert_eq!(text, "yes\n");
}

/// Fails if the future does not end, so that the test does not hang.
async fn soon<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(60), future).await.expect("does not come to an end")
}

/// Wait until the runner's status is as wanted.
async fn until(runner: &ChildRunner, wanted: impl Fn(&[JobStatus]) -> bool) {
    let wait = async {
        while !wanted(&runner.status()) {
            tokio::task::yield_now().await;
        }
    };
    soon(wait).await;
}

#[tokio::test]
async fn jobs_wait_for_their_turn_and_are_seen() {
    let runner = ChildRunner::new(RunnerConfig { waiting_max: 1, ..shell("cat >/dev/null") });
    let first = tokio::spawn({
        let runner = runner.clone();
        async move { runner.run(job()).await }
    });
    until(&runner, |jobs| jobs.iter().any(|job| job.running.is_some())).await;
    let second = tokio::spawn({
        let runner = runner.clone();
        async move { runner.run(Job { subject: "second".into(), ..job() }).await }
    });
    until(&runner, |jobs| jobs.len() == 2).await;
    let status = runner.status();
    assert!(status[0].running.is_some() && status[1].running.is_none(), "{status:?}");
    assert_eq!(status[1].subject, "second");
    let third = runner.run(job()).await;
    assert!(matches!(third, Err(ChildError::Busy(2))), "{third:?}");
    // A job whose caller leaves makes room.
    first.abort();
    until(&runner, |jobs| jobs.len() == 1 && jobs[0].running.is_some()).await;
    runner.stop();
    assert!(matches!(soon(second).await.unwrap(), Err(ChildError::ShuttingDown)));
    assert!(matches!(soon(runner.run(job())).await, Err(ChildError::ShuttingDown)));
}

#[tokio::test]
async fn a_program_that_is_not_there_is_the_hosts_fault() {
    let config = RunnerConfig { program: "/nowhere".into(), ..shell("") };
    let error = ChildRunner::new(config).run(job()).await.unwrap_err();
    assert!(error.is_hosts_fault(), "{error}");
}
