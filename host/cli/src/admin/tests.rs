use super::{Access, Admin};

#[test]
fn a_token_that_no_header_carries_is_not_shown() {
    for token in ["", "the-secret\n", " the-secret", "the-secrét"] {
        let access = Access {
            address: "127.0.0.1:8081".parse().unwrap(),
            source: "--admin".into(),
            token: token.into(),
            token_source: "--token".into(),
            ca_file: None,
            confirm: None,
        };
        let error = Admin::new(access, None).err().unwrap().to_string();
        assert!(error.starts_with("--token ") && !error.contains("the-"), "{error}");
    }
}
