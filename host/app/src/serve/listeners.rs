//! The listeners of the planes. Until the planes are there, they answer that the server is loading.

use std::future::ready;
use std::sync::{Arc, OnceLock};

use anyhow::{Context, Result};
use gristmill_admin::{AdminPlane, MetricsPlane};
use gristmill_client::Addresses;
use gristmill_http::{DataPlane, GrpcPlane, Loading};
use gristmill_transport::{Connections, ListenerConfig, Listening, Protocol, Shutdown, Tls, serve};
use tokio::net::TcpListener;
use tokio::runtime::Handle;
use tokio::task::JoinSet;
use tokio_util::either::Either;

use super::limits::Limits;
use super::tls::PlanesTls;
use crate::config::Config;

/// Maximum connections of the listener for metrics.
const METRICS_CONNECTIONS_MAX: usize = 32;

/// The planes, once the state is loaded.
pub(super) struct Planes {
    pub(super) data: DataPlane,
    pub(super) grpc: GrpcPlane,
    pub(super) admin: AdminPlane,
    pub(super) metrics: MetricsPlane,
}

/// The planes' listeners.
pub(super) struct Listeners {
    data: TcpListener,
    grpc: TcpListener,
    admin: TcpListener,
    /// If it is not a part of the admin plane alone.
    metrics: Option<TcpListener>,
    tls: PlanesTls,
    /// The threads of the admin plane. The others are served by the runtime of the caller.
    control_threads: Handle,
}

impl Listeners {
    /// Bind them all.
    pub(super) async fn bind(
        config: &Config,
        tls: PlanesTls,
        control_threads: Handle,
    ) -> Result<Self> {
        Ok(Self {
            data: bind("listen", config.listeners.listen).await?,
            grpc: bind("grpc_listen", config.listeners.grpc_listen).await?,
            admin: bind("admin_listen", config.listeners.admin_listen).await?,
            metrics: match config.metrics.metrics_listen {
                Some(address) => Some(bind("metrics_listen", address).await?),
                None => None,
            },
            tls,
            control_threads,
        })
    }

    pub(super) fn addresses(&self) -> Result<Addresses> {
        let Self { data, grpc, admin, metrics, tls, .. } = self;
        let url = |listener: &TcpListener, tls: &Option<Tls>| -> Result<String> {
            let scheme = if tls.is_some() { "https" } else { "http" };
            Ok(format!("{scheme}://{}", listener.local_addr()?))
        };
        Ok(Addresses {
            data: url(data, &tls.data)?,
            grpc: url(grpc, &tls.data)?,
            metrics: metrics.as_ref().map(|metrics| url(metrics, &tls.admin)).transpose()?,
            admin: url(admin, &tls.admin)?,
        })
    }

    /// Serve all planes. Each task returns whether all of its connections finished in time.
    pub(super) fn serve(
        self,
        limits: Limits,
        planes: Arc<OnceLock<Planes>>,
        loading: Loading,
        shutdown: Shutdown,
    ) -> JoinSet<bool> {
        let mut serving = JoinSet::new();
        let (opened, not_yet) = (planes.clone(), loading.clone());
        let data = move |request, client| match opened.get() {
            Some(planes) => Either::Left(planes.data.clone().handle(request, client)),
            None => Either::Right(ready(not_yet.answer_data(request))),
        };
        serving.spawn(serve(Listening {
            listener: self.data,
            protocol: Protocol::Http1,
            tls: self.tls.data.clone(),
            config: limits.data.clone(),
            shutdown: shutdown.clone(),
            handler: data,
        }));
        let (opened, not_yet) = (planes.clone(), loading.clone());
        let grpc = move |call, client| match opened.get() {
            Some(planes) => Either::Left(planes.grpc.clone().handle(call, client)),
            None => Either::Right(ready(not_yet.answer_grpc())),
        };
        serving.spawn(serve(Listening {
            listener: self.grpc,
            protocol: Protocol::Http2,
            tls: self.tls.data,
            config: limits.data,
            shutdown: shutdown.clone(),
            handler: grpc,
        }));
        if let Some(listener) = self.metrics {
            let (opened, not_yet) = (planes.clone(), loading.clone());
            let metrics = move |request, _| match opened.get() {
                Some(planes) => Either::Left(planes.metrics.clone().handle(request)),
                None => Either::Right(ready(not_yet.answer(&request))),
            };
            let connections = Connections::new(METRICS_CONNECTIONS_MAX, None);
            let metrics = serve(Listening {
                listener,
                protocol: Protocol::Http1,
                tls: self.tls.admin.clone(),
                config: ListenerConfig { connections, ..limits.admin.clone() },
                shutdown: shutdown.clone(),
                handler: metrics,
            });
            serving.spawn_on(metrics, &self.control_threads);
        }
        let admin = move |request, client| match planes.get() {
            Some(planes) => Either::Left(planes.admin.clone().handle(request, client)),
            None => Either::Right(ready(loading.answer(&request))),
        };
        let admin = serve(Listening {
            listener: self.admin,
            protocol: Protocol::Http1,
            tls: self.tls.admin,
            config: limits.admin,
            shutdown,
            handler: admin,
        });
        serving.spawn_on(admin, &self.control_threads);
        serving
    }
}

async fn bind(setting: &str, address: std::net::SocketAddr) -> Result<TcpListener> {
    let flag = setting.replace('_', "-");
    TcpListener::bind(address).await.with_context(|| {
        format!("cannot listen on {setting} {address}: choose another address with --{flag}")
    })
}
