//! TLS of the planes, by their settings.

use std::path::PathBuf;

use anyhow::{Result, anyhow};
use gristmill_transport::{Tls, TlsFault, TlsFile, TlsFiles, TlsOpenError};

use crate::config::{self, Fault, Faults};

/// The TLS of each plane that has it.
#[derive(Clone)]
pub(super) struct PlanesTls {
    /// Of the data plane over HTTP and over gRPC.
    pub(super) data: Option<Tls>,
    /// Of the admin plane. It has handshakes of its own, so that none of the data plane delays an
    /// operator.
    pub(super) admin: Option<Tls>,
}

/// The settings that name the files of one plane.
struct Keys {
    certificate: &'static str,
    key: &'static str,
}

const SHARED: Keys = Keys { certificate: "tls_certificate", key: "tls_key" };
const ADMIN: Keys = Keys { certificate: "admin_tls_certificate", key: "admin_tls_key" };

impl PlanesTls {
    /// Read the files of all planes. All their faults are reported together.
    pub(super) fn open(config: &config::Tls) -> Result<Self> {
        let config::Tls {
            tls_certificate,
            tls_key,
            admin_tls_certificate,
            admin_tls_key,
            admin_client_ca,
        } = config;
        let shared = pair(tls_certificate, tls_key);
        let (admin, keys) = match pair(admin_tls_certificate, admin_tls_key) {
            Some(admin) => (Some(admin), ADMIN),
            None => (shared.clone(), SHARED),
        };
        let admin = admin.map(|files| TlsFiles { client_ca: admin_client_ca.clone(), ..files });
        let mut faults = Vec::new();
        let data = opened("data", shared, &SHARED, &mut faults)?;
        let admin = opened("admin", admin, &keys, &mut faults)?;
        if faults.is_empty() { Ok(Self { data, admin }) } else { Err(Faults(faults).into()) }
    }
}

fn pair(certificate: &Option<PathBuf>, key: &Option<PathBuf>) -> Option<TlsFiles> {
    let (certificate, key) = (certificate.clone()?, key.clone()?);
    Some(TlsFiles { certificate, key, client_ca: None })
}

/// The TLS of one plane, if it has any. Faults of its files are added to `faults`.
fn opened(
    plane: &'static str,
    files: Option<TlsFiles>,
    keys: &Keys,
    faults: &mut Vec<Fault>,
) -> Result<Option<Tls>> {
    let Some(files) = files else { return Ok(None) };
    match Tls::open(plane, files) {
        Ok(tls) => Ok(Some(tls)),
        Err(TlsOpenError::Files(tls_faults)) => {
            for fault in tls_faults.into_iter().map(|fault| fault_of(fault, keys)) {
                // Both planes may have the same files.
                if !faults.iter().any(|other| other.to_string() == fault.to_string()) {
                    faults.push(fault);
                }
            }
            Ok(None)
        }
        Err(error) => Err(anyhow!(error)),
    }
}

fn fault_of(fault: TlsFault, keys: &Keys) -> Fault {
    let TlsFault { file, path, error } = fault;
    let key = match file {
        TlsFile::Certificate => keys.certificate,
        TlsFile::Key => keys.key,
        TlsFile::ClientCa => "admin_client_ca",
    };
    Fault::Tls { key, path, source: error }
}
