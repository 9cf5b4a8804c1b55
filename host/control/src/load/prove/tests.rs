use super::*;

fn subject() -> Subject {
    Subject {
        model: Digest::of(b"a model"),
        version: "1".into(),
        library: None,
        providers: Vec::new(),
        graph_optimization: GraphOptimizationSpec::All,
        memory_arena: true,
        memory_pattern: true,
        rows: None,
        padding: None,
        sizes: None,
    }
}

#[test]
fn a_proof_is_remembered_for_its_subject_only() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("proofs/a.json");
    assert_eq!(remembered(&file, &subject()), None);
    let answer = ProofReport { providers: vec![ProviderName::Cpu], ..ProofReport::default() };
    remember(&file, &Proof { subject: subject(), answer: answer.clone() }).unwrap();
    assert_eq!(remembered(&file, &subject()), Some(answer));
    let other = Subject { version: "2".into(), ..subject() };
    assert_eq!(remembered(&file, &other), None);
    assert_eq!(std::fs::read_dir(directory.path().join("proofs")).unwrap().count(), 1);
    std::fs::write(&file, b"{\"subject\":").unwrap();
    assert_eq!(remembered(&file, &subject()), None);
}
