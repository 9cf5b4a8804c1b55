//! Uploads that are small and whose check or compilation could take minutes, or gigabytes.
//!
//! `compiling` has what happens beside such an upload and when it is cancelled.

use crate::support::guests;
use crate::support::setup::Setup;

/// The CPU time that an upload may take, and the memory of the server itself. An upload's own
/// is the child's.
const SECONDS: &str = "3";
const RESIDENT_BYTES_MAX: usize = 512 << 20;

/// The reason for which a file is refused.
#[derive(Clone, Copy)]
enum Refused {
    /// It is found before anything is compiled.
    Counted(&'static str),
    /// It is compiled, and then does not fit the contract; or that takes too long.
    Compiled,
}

use Refused::{Compiled, Counted};

#[test]
fn uploads_end_within_their_limits() {
    let mut server = Setup::new().flag("--compile-timeout-s", SECONDS).start();
    server.digits("acme");
    let invalid = Counted("not a valid WebAssembly component");
    for (name, file, refused) in [
        ("100,000 functions", guests::with_functions(100_000), Compiled),
        ("60,000 branches", guests::with_branches(60_000), Compiled),
        ("45,000 locals", guests::with_locals(45_000), Compiled),
        ("100,000 types", guests::with_types(100_000), Compiled),
        ("more types than there may be", guests::with_types(1_100_000), invalid),
        ("nested loops", guests::bomb(), Compiled),
        (
            "memories",
            guests::with_tables_and_memories(0, 3),
            Counted("has 3 memories; the limit is 2"),
        ),
        ("many memories", guests::with_tables_and_memories(0, 100_000), invalid),
        ("tables", guests::with_tables_and_memories(9, 0), Counted("has 9 tables; the limit is 8")),
        ("many tables", guests::with_tables_and_memories(100_000, 0), invalid),
        ("a tower", guests::tower(60), Counted("core module instances; the limit is 64")),
        ("a higher tower", guests::tower(2_000), Counted("core module instances; the limit is 64")),
    ] {
        let answer = server.admin.put("/admin/v1/tenants/acme/plugins/costly", &file);
        let detail = answer.refused(422, "invalid_plugin", &["plugin \"costly\": "]);
        let reasons: &[&str] = match &refused {
            Counted(reason) => &[*reason],
            Compiled => &["does not fit the contract", "used up its 3 s of", "longer than 30 s"],
        };
        assert!(reasons.iter().any(|reason| detail.contains(reason)), "{name}: {detail}");
        server.assert_reads("acme", 5);
        let resident = server.peak_resident_bytes();
        assert!(resident < RESIDENT_BYTES_MAX, "{name}: the server grew to {resident} bytes");
    }
    assert_eq!(server.status()["jobs"], serde_json::json!([]));
    server.assert_alive();
}
