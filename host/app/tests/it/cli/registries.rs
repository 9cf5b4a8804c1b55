//! Plugins in registries: a real one, and ones that lie.

use serde_json::json;

use crate::support::admin_api::{digest, read};
use crate::support::cli::Cli;
use crate::support::files;
use crate::support::registry::{Registry, Signer, manifest};
use crate::support::server::Server;
use crate::support::service::{RawAnswer, Service, whole};
use crate::support::words::assert_names;

/// The command line without docker's credentials of whoever runs the tests.
fn plain(cli: Cli) -> Cli {
    let folder = cli.folder().join("docker").to_str().unwrap().to_owned();
    cli.with("DOCKER_CONFIG", &folder)
}

/// A command line that fails before it asks a server.
fn without_server() -> Cli {
    let cli = Cli::new().with("GRISTMILL_ADMIN_URL", "http://127.0.0.1:9");
    plain(cli.with("GRISTMILL_ADMIN_TOKEN", "the-token-of-nobody"))
}

#[test]
fn a_plugin_is_published_signed_pushed_and_deployed() {
    let (server, registry) = (Server::start(), Registry::start());
    let (signer, other) = (Signer::new(), Signer::new());
    let tenant = json!({ "open": true, "plugin_signers": [signer.public()] });
    server.put_json("tenants/acme", &tenant);
    let cli = plain(Cli::of(&server));
    let (first, second) = (files::plugin("digits"), files::plugin("hostile"));
    cli.write("digits.wasm", &first);
    cli.write("hostile.wasm", &second);

    let name = registry.name("acme/digits:1");
    let published = cli.ok(&["plugin", "publish", "digits.wasm", &name]);
    let kept = registry.manifest("acme/digits", "1");
    let by_digest = registry.name(&format!("acme/digits@{}", digest(&kept)));
    assert_eq!(published, format!("{by_digest}\n"));
    // The same plugin has the same digest wherever it is published.
    assert_eq!(cli.ok(&["plugin", "publish", "digits.wasm", &name]), published);

    let push = ["plugin", "push", name.as_str(), "--tenant", "acme"];
    assert_names(&cli.refused(&push), &["digits", "it has no signature", "cosign sign --key"]);
    registry.sign("acme/digits", &kept, &[&other]);
    assert_names(&cli.refused(&push), &["none of the keys in plugin_signers"]);
    // One key of several is enough.
    registry.sign("acme/digits", &kept, &[&signer, &other]);
    let pushed = cli.run(&push);
    assert_eq!(pushed.code, Some(0), "{pushed:?}");
    assert_names(&pushed.stderr, &[&format!("{name} is {}", digest(&kept))]);
    assert_eq!(read(&server, "tenants/acme/plugins/digits")["digest"], digest(&first));

    let deployed = format!("[tenants.acme.plugins.reader]\nfile = {name:?}\n");
    cli.write("gristmill.deploy.toml", deployed);
    assert_names(&cli.ok(&["deploy", "--yes"]), &["serves"]);
    assert_eq!(read(&server, "tenants/acme/plugins/reader")["digest"], digest(&first));
    assert_eq!(cli.ok(&["deploy", "--yes"]), "nothing to change\n");
    // Somebody moves the tag to a plugin that nobody signed.
    cli.ok(&["plugin", "publish", "hostile.wasm", &name]);
    assert_names(
        &cli.refused(&["deploy", "--yes"]),
        &["plugin acme/reader", "it has no signature"],
    );
    cli.ok(&["plugin", "push", &by_digest, "--tenant", "acme", "--name", "by-digest"]);

    // Without a registry: over the file itself, also of a manifest.
    cli.write("hostile.wasm.sig", signer.sign(&second));
    let push = ["plugin", "push", "hostile.wasm", "--tenant", "acme"];
    assert_names(&cli.refused(&push), &["it has no signature"]);
    cli.ok(&[&push[..], &["--signature", "hostile.wasm.sig"]].concat());
    let deployed = "[tenants.acme.plugins.reader]\nfile = \"hostile.wasm\"\n\
                    signature = \"hostile.wasm.sig\"\n";
    cli.write("gristmill.deploy.toml", deployed);
    assert_names(&cli.ok(&["deploy", "--yes"]), &["serves"]);
}

#[test]
fn a_registry_with_tls_is_asked_if_its_authority_is_trusted() {
    let server = Server::start();
    server.put_json("tenants/acme", &json!({ "open": true }));
    let cli = plain(Cli::of(&server));
    cli.write("digits.wasm", files::plugin("digits"));
    cli.ok(&["tls", "self-signed", "--host", "0.0.0.0", "--out", "pair"]);
    let [certificate, key] =
        ["server.crt", "server.key"].map(|name| cli.folder().join("pair").join(name));
    let registry = Registry::start_with_tls(&certificate, &key);
    let name = registry.name_elsewhere("acme/digits:1");
    let publish = ["plugin", "publish", "digits.wasm", &name];
    assert_names(
        &cli.refused(&publish),
        &["no authority that this system trusts", "SSL_CERT_FILE"],
    );
    let cli = cli.with("SSL_CERT_FILE", certificate.to_str().unwrap());
    assert_names(&cli.ok(&publish), &[&registry.name_elsewhere("acme/digits@sha256:")]);
    cli.ok(&["plugin", "push", &name, "--tenant", "acme"]);
    let digest = digest(&files::plugin("digits"));
    assert_eq!(read(&server, "tenants/acme/plugins/digits")["digest"], digest);
    assert_names(
        &cli.refused(&[&publish[..], &["--plain-http"]].concat()),
        &["answers 400", "HTTPS server"],
    );
}

/// What a registry answers to the request of a manifest and of a layer.
fn registry(manifest: RawAnswer, layer: RawAnswer) -> Service {
    Service::answering(move |head| match head {
        head if head.contains(".sig ") => whole("404 Not Found", "", ""),
        head if head.contains("/manifests/") => manifest.clone(),
        _ => layer.clone(),
    })
}

/// Why the plugin of this registry is not fetched.
#[track_caller]
fn refused(cli: &Cli, service: &Service, version: &str) -> String {
    let name = format!("oci://{}/acme/digits{version}", service.authority());
    cli.refused(&["plugin", "push", &name, "--tenant", "acme"])
}

#[test]
fn a_registry_that_lies_is_found_out() {
    let cli = without_server();
    let file = b"a plugin of 26 characters.";
    let document = String::from_utf8(manifest(file)).unwrap();
    let named = format!("docker-content-digest: {}\r\n", digest(document.as_bytes()));
    let good = whole("200 OK", &named, &document);
    let layer = |text: &str| whole("200 OK", "", text);
    let another = format!("@{}", digest(b"another manifest"));
    let wrong_header = format!("docker-content-digest: {}\r\n", digest(b"x"));
    let endless = {
        let mut answer = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n".to_vec();
        answer.extend(b"1000\r\n".iter().chain(&[0; 4096]).chain(b"\r\n").cycle().take(16 << 20));
        answer
    };
    let sized = |size: &str| {
        let size =
            document.replace(&format!("\"size\":{}", file.len()), &format!("\"size\":{size}"));
        whole("200 OK", "", &size)
    };
    let two = document.replace("\"layers\":[", "\"layers\":[{},");
    let json = |text: &str| whole("200 OK", "", text);
    let whole_layer = layer(std::str::from_utf8(file).unwrap());
    for (manifest, content, version, named) in [
        (good.clone(), layer("a plugin of 26 character!!"), ":1", "but what the registry sends is"),
        (good.clone(), layer("short"), ":1", "but what the registry sends is"),
        (good.clone(), endless.clone(), ":1", "sends more than the 26 bytes that it may"),
        (good.clone(), whole_layer.clone(), another.as_str(), "but what the registry sends is"),
        (
            whole("200 OK", &wrong_header, &document),
            whole_layer.clone(),
            ":1",
            "should be sha256:2d7",
        ),
        (endless, whole_layer.clone(), ":1", "sends more than the 4194304 bytes"),
        (sized("25"), whole_layer.clone(), ":1", "sends more than the 25 bytes"),
        (sized("27"), whole_layer.clone(), ":1", "with 27 bytes"),
        (sized("9999999999999"), whole_layer.clone(), ":1", "the limit is 268435456"),
        (json("{\"manifests\":[]}"), whole_layer.clone(), ":1", "an index of several artifacts"),
        (json(&two), whole_layer.clone(), ":1", "it has 2 layers"),
        (json("{}"), whole_layer.clone(), ":1", "it has 0 layers"),
        (json("no JSON"), whole_layer.clone(), ":1", "its manifest is not JSON"),
        (whole("404 Not Found", "", ""), whole_layer.clone(), ":1", "does not have it"),
        (whole("500 Oh", "", "\u{1b}[31m"), whole_layer.clone(), ":1", "answers 500"),
    ] {
        let error = refused(&cli, &registry(manifest, content), version);
        assert_names(&error, &["cannot fetch oci://", named]);
        assert!(!error.contains('\u{1b}'), "{error:?}");
    }
}

/// Keep the credentials of `user:password` for this registry, as `docker login` does.
fn log_in(cli: &Cli, service: &Service) {
    let auth = json!({ "auth": "dXNlcjpwYXNzd29yZA==" });
    let config = json!({ "auths": { service.authority(): auth } });
    cli.write("docker/config.json", config.to_string());
}

#[test]
fn a_redirect_carries_no_credentials_and_ends() {
    let cli = without_server();
    let file = b"a plugin";
    let elsewhere = Service::answering(|_| whole("200 OK", "", "another!"));
    let to = format!("location: {}\r\n", elsewhere.url("/there"));
    let document = String::from_utf8(manifest(file)).unwrap();
    let moved = whole("307 Temporary Redirect", &to, "");
    let service = registry(whole("200 OK", "", &document), moved);
    let cli = cli.with("GRISTMILL_REGISTRY_TOKEN", "the-token-of-the-registry");
    assert_names(&refused(&cli, &service, ":1"), &["but what the registry sends is"]);
    assert!(service.heads()[0].contains("authorization: bearer the-token-of-the-registry"));
    let heads = elsewhere.heads();
    assert!(heads.len() == 1 && !heads[0].contains("authorization"), "{heads:?}");

    // What is there cannot name a service that gets the registry's credentials.
    let tokens = Service::answering(|_| whole("200 OK", "", "{\"token\":\"the-token\"}"));
    let realm = format!("www-authenticate: Bearer realm=\"{}\"\r\n", tokens.url("/token"));
    let greedy = Service::answering(move |_| whole("401 Unauthorized", &realm, ""));
    let to = format!("location: {}\r\n", greedy.url("/there"));
    let document = String::from_utf8(manifest(file)).unwrap();
    let moved = whole("307 Temporary Redirect", &to, "");
    let service = registry(whole("200 OK", "", &document), moved);
    let without_token = without_server();
    log_in(&without_token, &service);
    assert_names(&refused(&without_token, &service, ":1"), &["does not allow"]);
    assert_eq!((greedy.connections(), tokens.connections()), (1, 0));

    let around = whole("307 Temporary Redirect", "location: /v2/a/manifests/1\r\n", "");
    let circle = registry(around.clone(), around);
    assert_names(&refused(&cli, &circle, ":1"), &["redirects more than 5 times"]);
    assert_eq!(circle.connections(), 6);
}

#[test]
fn credentials_go_only_to_a_service_of_tokens_that_may_have_them() {
    let cli = without_server();
    let tokens = Service::answering(|_| whole("200 OK", "", "{\"token\":\"the-token\"}"));
    let challenge = |realm: &str| {
        format!("www-authenticate: Bearer realm=\"{realm}\",service=\"s\",scope=\"a:b:pull\"\r\n")
    };
    // One without TLS on another machine. Nothing is sent there.
    let away = whole("401 Unauthorized", &challenge("http://192.0.2.1/token"), "");
    let service = registry(away.clone(), away);
    log_in(&cli, &service);
    assert_names(&refused(&cli, &service, ":1"), &["192.0.2.1", "has no TLS"]);

    let here = whole("401 Unauthorized", &challenge(&tokens.url("/token?a=b")), "");
    let service = registry(here.clone(), here);
    log_in(&cli, &service);
    assert_names(&refused(&cli, &service, ":1"), &["does not allow", "docker login"]);
    let heads = tokens.heads();
    let asked = "get /token?a=b&service=s&scope=a%3ab%3apull ";
    assert!(heads[0].starts_with(asked), "{heads:?}");
    assert!(heads[0].contains("authorization: basic dxnlcjpwyxnzd29yza=="), "{heads:?}");
    let heads = service.heads();
    assert!(!heads[0].contains("authorization"), "{heads:?}");
    assert!(heads[1].contains("authorization: bearer the-token"), "{heads:?}");

    let basic = whole("401 Unauthorized", "www-authenticate: Basic realm=\"r\"\r\n", "");
    let service = registry(basic.clone(), basic);
    log_in(&cli, &service);
    assert_names(&refused(&cli, &service, ":1"), &["does not allow"]);
    assert!(service.heads()[1].contains("authorization: basic dxnlcjpwyxnzd29yza=="));
}

#[test]
fn a_token_goes_to_one_registry_and_not_in_plain_text() {
    let cli = without_server().with("GRISTMILL_REGISTRY_TOKEN", "the-token-of-the-registry");
    // Nothing is sent there.
    let push = ["plugin", "push", "oci://192.0.2.1/a:1", "--tenant", "acme", "--plain-http"];
    assert_names(&cli.refused(&push), &["--plain-http sends no token"]);

    let file = b"a plugin";
    let document = String::from_utf8(manifest(file)).unwrap();
    let [first, second] = [(), ()].map(|()| {
        let content = whole("200 OK", "", std::str::from_utf8(file).unwrap());
        registry(whole("200 OK", "", &document), content)
    });
    let [one, other] =
        [&first, &second].map(|service| format!("oci://{}/a:1", service.authority()));
    let manifest = format!(
        "[tenants.acme.plugins.one]\nfile = {one:?}\n[tenants.acme.plugins.two]\nfile = {other:?}\n"
    );
    cli.write("gristmill.deploy.toml", manifest);
    assert_names(&cli.refused(&["deploy", "--yes"]), &["--registry-token is for one registry"]);
    assert_eq!(second.connections(), 0);
}
