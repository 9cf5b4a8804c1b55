//! Why a server was not reached, for people.

use std::io::{self, ErrorKind};

use anyhow::anyhow;
use gristmill_client::TlsRefusal;

/// Why a server and the command line do not agree on TLS, with a remedy.
pub(super) fn explain_refusal(address: &str, refusal: TlsRefusal) -> anyhow::Error {
    match refusal {
        TlsRefusal::UnknownAuthority => anyhow!(
            "no authority that is trusted signed the certificate of {address}: name the authority's \
             certificate, or that of the server if it signed itself, with --ca-file or \
             GRISTMILL_CA_FILE"
        ),
        TlsRefusal::NotOfServer => anyhow!(
            "no authority that is trusted signed the certificate of {address}, which is for an \
             authority itself or has no extensions: if it signed itself, name it with --ca-file or \
             GRISTMILL_CA_FILE; otherwise make one for a server, with `gristmill tls self-signed`, \
             or openssl req and -addext basicConstraints=critical,CA:FALSE, or openssl x509 -req \
             and -copy_extensions copyall"
        ),
        TlsRefusal::NoName => anyhow!(
            "the certificate of {address} has no subjectAltName, and its CN does not count: make one \
             with `gristmill tls self-signed --host HOST`, or openssl with -addext \
             subjectAltName=DNS:HOST, or IP:ADDRESS"
        ),
        TlsRefusal::OtherName => anyhow!(
            "the certificate of {address} is for another name: give the server's own name with \
             --admin or GRISTMILL_ADMIN_URL"
        ),
        TlsRefusal::Expired => anyhow!(
            "the certificate of {address} has expired or is not valid yet, by the clock of this \
             machine: the server needs another certificate"
        ),
        TlsRefusal::NoTls => anyhow!(
            "{address} does not speak TLS: if it is the admin plane, give --admin http://{address}"
        ),
        TlsRefusal::CertificateNeeded => anyhow!(
            "{address} demands a client certificate: give yours with --client-certificate and \
             --client-key"
        ),
        TlsRefusal::CertificateRefused => anyhow!(
            "{address} does not accept the certificate of --client-certificate: an authority of the \
             server's admin_client_ca must have signed it, and it must be valid now"
        ),
    }
}

/// The system's error, if the connection itself failed.
pub(super) fn of_connection<'a>(
    error: &'a (dyn std::error::Error + 'static),
) -> Option<&'a io::Error> {
    let mut cause = Some(error);
    while let Some(error) = cause {
        if let Some(connection_error) = error.downcast_ref() {
            return Some(connection_error);
        }
        cause = error.source();
    }
    None
}

/// Whether the other side closed the connection.
pub(super) fn is_closed(error: &io::Error) -> bool {
    let closed = [
        ErrorKind::ConnectionReset,
        ErrorKind::BrokenPipe,
        ErrorKind::UnexpectedEof,
        ErrorKind::ConnectionAborted,
    ];
    closed.contains(&error.kind())
}
