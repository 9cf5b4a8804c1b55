use super::{Access, Admin};

#[test]
fn a_token_that_no_header_carries_is_not_shown() {
    for token in ["", "the-secret\n", " the-secret", "the-secrét"] {
        let (address, source) = ("127.0.0.1:8081".parse().unwrap(), "--admin".to_owned());
        let said = Admin::new(Access { address, source, token: token.into() });
        let said = said.err().unwrap().to_string();
        assert!(said.starts_with("--token ") && !said.contains("the-"), "{said}");
    }
}
