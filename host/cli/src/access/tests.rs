use super::*;
use crate::contexts::TokenPlace;

fn flag(text: &str) -> Option<Given> {
    Some(Given { text: text.into(), is_flag: true })
}

fn variable(text: &str) -> Option<Given> {
    Some(Given { text: text.into(), is_flag: false })
}

/// Both variables, of which the token is `t`.
fn of_variables(url: &str) -> Choice {
    let (admin, token) = (variable(url), variable("t"));
    Choice { admin, admin_variable: Some(url.into()), token, ..Choice::default() }
}

/// The contexts `a`, with a token in the file, and `b`, without one. `a` is the current one.
fn contexts(token: &std::path::Path) -> Contexts {
    let server = |admin_url: &str, token| {
        let ca_file = Some(format!("{admin_url}.pem").into());
        KnownServer { admin_url: admin_url.into(), url: None, token, ca_file, confirm: false }
    };
    let name = |name: &str| name.parse::<Name>().unwrap();
    let token = Some(TokenPlace::File(token.to_owned()));
    let all = [(name("a"), server("a:1", token)), (name("b"), server("b:1", None))];
    Contexts { current: Some(name("a")), all: all.into() }
}

fn resolved(choice: Choice) -> Result<(String, String)> {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("token");
    std::fs::write(&file, "of-a\n").unwrap();
    let access = choice.resolve(|| Ok(contexts(&file)))?;
    Ok((access.address.to_string(), access.token))
}

#[test]
fn flags_go_before_variables_and_variables_before_contexts() {
    let none = Choice::default;
    for (choice, address, token) in [
        (none(), "a:1", "of-a"),
        (Choice { token: variable("t"), ..none() }, "a:1", "of-a"),
        (Choice { token: flag("t"), ..none() }, "a:1", "t"),
        (of_variables("v:1"), "v:1", "t"),
        (of_variables("a:1"), "a:1", "t"),
        (Choice { admin: flag("http://v:1"), ..of_variables("v:1") }, "v:1", "t"),
        (Choice { admin: flag("f:1"), token: variable("t"), ..none() }, "f:1", "t"),
        (Choice { admin: flag("a:1"), ..of_variables("v:1") }, "a:1", "of-a"),
        (Choice { context: variable("b"), token: variable("t"), ..none() }, "b:1", "t"),
        // A context that is named on the command line goes before variables.
        (Choice { context: flag("a"), ..of_variables("v:1") }, "a:1", "of-a"),
        (Choice { context: flag("b"), ..of_variables("b:1") }, "b:1", "t"),
        (Choice { context: flag("b"), token: variable("t"), ..none() }, "b:1", "t"),
        (Choice { context: flag("a"), token: flag("f"), ..none() }, "a:1", "f"),
        // The same address, written in another way.
        (Choice { admin: flag("http://a:1/"), ..none() }, "a:1", "of-a"),
    ] {
        let shown = format!("{choice:?}");
        let expected = (format!("http://{address}"), token.to_owned());
        assert_eq!(resolved(choice).unwrap(), expected, "{shown}");
    }
}

#[test]
fn a_contexts_token_goes_to_no_other_server() {
    for admin in [flag("elsewhere:1"), variable("elsewhere:1")] {
        let error = resolved(Choice { admin, ..Choice::default() }).unwrap_err().to_string();
        let expected =
            "no token for http://elsewhere:1: the token of context a is sent only to a:1";
        assert!(error.starts_with(expected), "{error}");
    }
    let choice = Choice { context: flag("b"), ..Choice::default() };
    assert!(resolved(choice).unwrap_err().to_string().starts_with("no token: "));
}

#[test]
fn a_variables_token_goes_to_the_address_that_it_came_with() {
    let only = "that in GRISTMILL_ADMIN_TOKEN is sent only to v:1; give --token, ";
    for (choice, expected) in [
        (
            Choice { admin: flag("f:1"), ..of_variables("v:1") },
            format!("http://f:1: the token of context a is sent only to a:1, and {only}"),
        ),
        (
            Choice { admin: flag("https://v:1"), ..of_variables("v:1") },
            format!("https://v:1: the token of context a is sent only to a:1, and {only}"),
        ),
        (Choice { context: flag("b"), ..of_variables("v:1") }, format!("http://b:1: {only}")),
    ] {
        let text = format!("{choice:?}");
        let error = resolved(choice).unwrap_err().to_string();
        assert!(error.starts_with(&format!("no token for {expected}")), "{text}: {error}");
    }
    // The current context has no token, and was not chosen together with the variable.
    let current = || Ok(Contexts { current: Some("b".parse().unwrap()), ..contexts("x".as_ref()) });
    let choice = Choice { token: variable("t"), ..Choice::default() };
    let error = choice.resolve(current).unwrap_err().to_string();
    let expected = "no token for http://b:1: that in GRISTMILL_ADMIN_TOKEN did not come with this \
                    address; give --token, ";
    assert!(error.starts_with(expected), "{error}");
    let choice = Choice { token: variable("t"), ..Choice::default() };
    let access = choice.resolve(|| Ok(Contexts::default())).unwrap();
    assert_eq!((access.address.to_string().as_str(), &*access.token), (DEFAULT_ADMIN, "t"));
}

#[test]
fn the_file_is_not_read_without_need() {
    for choice in [of_variables("v:1"), Choice { token: flag("t"), ..of_variables("v:1") }] {
        choice.resolve(|| panic!("it is read")).unwrap();
    }
    let context = flag("none");
    let choice = Choice { admin: flag("v:1"), token: flag("t"), context, ..Choice::default() };
    let error = choice.resolve(|| Ok(Contexts::default())).unwrap_err().to_string();
    assert_eq!(error, "no context \"none\": `gristmill context add` makes one");
}

fn address(url: &str) -> Result<String> {
    let choice = Choice { admin: flag(url), token: flag("t"), ..Choice::default() };
    Ok(choice.resolve(|| Ok(Contexts::default()))?.address.to_string())
}

#[test]
fn a_scheme_is_taken_for_granted() {
    for (address_text, url) in [
        ("127.0.0.1:8081", "http://127.0.0.1:8081"),
        ("localhost:8081/", "http://localhost:8081"),
        ("http://[::1]:8081", "http://[::1]:8081"),
        ("https://gristmill.example:8443", "https://gristmill.example:8443"),
        ("http://gristmill.example/behind/a/proxy/", "http://gristmill.example/behind/a/proxy"),
    ] {
        assert_eq!(address(address_text).unwrap(), url);
    }
}

#[test]
fn what_is_no_address_is_said_with_flag_and_value() {
    for text in ["", "8081", ":8081", "ftp://a", "http://", "two words", "http://a?b=c"] {
        let error = address(text).unwrap_err().to_string();
        assert!(error.starts_with(&format!("--admin is {text:?}: ")), "{text:?}: {error}");
        assert!(error.contains("such as http://127.0.0.1:8081"), "{error}");
    }
}

#[test]
fn the_authorities_of_a_context_are_trusted_for_its_server_only() {
    let file = |choice: Choice| {
        let access = choice.resolve(|| Ok(contexts(std::path::Path::new("none")))).unwrap();
        access.ca_file.map(|path| path.display().to_string())
    };
    let token = || flag("t");
    let none = Choice::default;
    for (choice, expected) in [
        (Choice { token: token(), ..none() }, Some("a:1.pem")),
        (Choice { token: token(), ca_file: variable("v.pem"), ..none() }, Some("v.pem")),
        (
            Choice { token: token(), context: flag("b"), ca_file: variable("v.pem"), ..none() },
            Some("b:1.pem"),
        ),
        (
            Choice { token: token(), context: flag("b"), ca_file: flag("f.pem"), ..none() },
            Some("f.pem"),
        ),
        (Choice { token: token(), admin: flag("x:1"), ..none() }, None),
    ] {
        let shown = format!("{choice:?}");
        assert_eq!(file(choice).as_deref(), expected, "{shown}");
    }
}

#[test]
fn a_context_that_asks_does_so_for_its_own_server_only() {
    let asks = |choice: Choice| {
        let mut contexts = contexts(std::path::Path::new("none"));
        contexts.all.values_mut().for_each(|server| server.confirm = true);
        let access = choice.resolve(|| Ok(contexts)).unwrap();
        access.confirm.map(|name| name.to_string())
    };
    let with_token = || Choice { token: flag("t"), ..Choice::default() };
    assert_eq!(asks(with_token()).as_deref(), Some("a"));
    let named = Choice { context: flag("b"), ..with_token() };
    assert_eq!(asks(named).as_deref(), Some("b"));
    let same = Choice { context: flag("b"), admin: flag("b:1"), ..with_token() };
    assert_eq!(asks(same).as_deref(), Some("b"));
    let other = Choice { context: flag("b"), admin: flag("x:1"), ..with_token() };
    assert_eq!(asks(other), None);
}
