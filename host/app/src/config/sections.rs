//! All settings, by section: each has one line with its key, type, default, range and help.
//!
//! A line is `key: type = default, range, help;`. The field of a [`Duration`] has no unit in its
//! name, so its key stands in brackets. A setting whose default is `none` is optional.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use gristmill_core::{Name, Origins};
use gristmill_log::LogFormat;
use gristmill_otlp::OtlpProtocol;
use gristmill_store::StoreUrl;

use super::section::section;
use super::value::{AdminToken, Any, HttpUrl, LogFilter};

section! {
    /// Where the server keeps its state.
    Data {
        data_dir: PathBuf = "gristmill-data", Any,
            "Where blobs, the release log and compiled plugins are kept, for one server; with store, \
             what this server needs besides it";
        store: StoreUrl = none, Any,
            "URL of the store of blobs and the release log, which any number of servers share: \
             s3://, gs:// or az:// with a bucket and a folder, or file:/// and a folder. Credentials \
             come from the environment (AWS_*, GOOGLE_*, AZURE_*). If unset, it is the folder store \
             in data_dir, for one server";
        hash_key_file: PathBuf = none, Any,
            "File with the secret with which keys and tokens are hashed, 64 hexadecimal digits; if \
             unset, one is made in data_dir. All servers of a store need the same";
    }
}

section! {
    /// Sharing a store with other servers.
    Replicas {
        replica_name: Name = none, Any,
            "Name of this server among those that share the store, different for each; if unset, \
             one is made in data_dir";
        poll_ms: u32 = "1000", 50..=60_000,
            "Milliseconds between two looks for releases that other servers have made";
        replica_wait["replica_wait_s"]: Duration = "30", 1..=3600,
            "Seconds that a change with wait=all waits for all servers to serve it";
        store_copies_bytes_max: u64 = "10737418240", 0..=1 << 50,
            "The bytes of the local copies of blobs of the store; those that were used longest ago \
             make room";
        start_offline: bool = "false", Any,
            "Whether a server may start with the state that it served last, if the store cannot be \
             reached";
    }
}

section! {
    /// The addresses of the three planes.
    Listeners {
        listen: SocketAddr = "127.0.0.1:8080", Any,
            "Address of the data plane: /v1, /v2 and health";
        grpc_listen: SocketAddr = "127.0.0.1:8082", Any,
            "Address of the Open Inference Protocol over gRPC";
        admin_listen: SocketAddr = "127.0.0.1:8081", Any,
            "Address of the admin plane: /admin/v1";
    }
}

section! {
    /// TLS: without a certificate a plane is not encrypted.
    Tls {
        tls_certificate: PathBuf = none, Any,
            "Certificate chain of all planes, a PEM file that begins with the server's own \
             certificate; with it, all planes are https. The files of TLS are read again when they \
             change";
        tls_key: PathBuf = none, Any,
            "The key of tls_certificate, a PEM file";
        admin_tls_certificate: PathBuf = none, Any,
            "Certificate chain of the admin plane, if it has one of its own";
        admin_tls_key: PathBuf = none, Any,
            "The key of admin_tls_certificate";
        admin_client_ca: PathBuf = none, Any,
            "Certificates of authorities, a PEM file; with it, the admin plane demands a client \
             certificate that one of them signed, besides the token";
    }
}

section! {
    /// How the admin API and calls without an API key are treated.
    Access {
        admin_token: AdminToken = none, Any,
            "The admin token, at least 16 characters; if unset, one is made at the first start and \
             printed once";
        open_tenant: Name = none, Any,
            "Tenant used for calls of /v2 and gRPC without an API key; if unset, such calls are \
             refused";
        cors_origins: Origins = none, Any,
            "Origins of the web pages that may call the data plane from a browser, such as \
             https://app.example.com, separated by commas (in the file also a list), or * for all \
             pages. They are for paths without a tenant, such as those of /v2, and for tenants \
             whose documents have no cors; if unset, no page may";
    }
}

section! {
    /// The limits of requests.
    Requests {
        message_bytes_max: usize = "67108864", 1 << 10..=2 << 30,
            "The largest request of /v2 and gRPC, also once it is decompressed";
        tenant_bytes_max: usize = "1073741824", 1 << 10..=1 << 40,
            "Bytes that one tenant's requests, answers and plugin calls may hold at the same time; \
             further ones are refused for now";
        retained_memory_bytes: usize = "1342177280", 16 << 20..=1 << 40,
            "The most memory that is kept for later requests: a fifth of it for free tensor buffers, \
             which are given back when nobody needs them for a while, the rest for the memory of \
             plugin instances that ended";
        infer_timeout["infer_timeout_s"]: Duration = "30", 1..=3600,
            "Seconds that a request of /v2 or gRPC may take, unless its client asks for less";
    }
}

section! {
    /// The library that runs models, and their limits.
    Models {
        onnxruntime_library: PathBuf = none, Any,
            "ONNX Runtime's shared library, 1.23 or newer; if unset, the one in ORT_DYLIB_PATH, in \
             <data_dir>/onnxruntime/ or of the Python environment that this program is installed in \
             is used. If there is no library, models run on tract";
        model_proof_timeout["model_proof_timeout_s"]: Duration = "60", 1..=86_400,
            "Seconds of CPU time that a model's first load and run may take, in a separate \
             process; it may take ten times as long by the clock";
        model_proof_memory_bytes: u64 = "2147483648", 64 << 20..=1 << 40,
            "The most memory that a model's first load and run may take, besides four times its \
             file";
        model_run_memory_bytes: usize = "1073741824", 1 << 20..=1 << 40,
            "The most memory that the runs of one instance of a model (on CUDA: of one session) may \
             take on the host, besides its weights; a run that would take more fails";
    }
}

section! {
    /// The limits of plugins and of their compilation.
    Plugins {
        concurrent_plugin_calls: u32 = "256", 1..=10_000,
            "Plugin calls running at the same time; further ones wait";
        plugin_memory_bytes: usize = "67108864", 1 << 20..=4 << 30,
            "The most memory that a plugin call may have";
        plugin_held_bytes: usize = "268435456", 1 << 20..=64 << 30,
            "The most memory of tensors and pictures that the server may hold for a plugin call";
        plugin_instances: u32 = "64", 1..=1000,
            "The most core modules that an instance of a plugin may have";
        compile_timeout["compile_timeout_s"]: Duration = "60", 1..=86_400,
            "Seconds of CPU time that compiling a plugin may take; it may take ten times as \
             long by the clock";
        compile_memory_bytes: u64 = "2147483648", 64 << 20..=1 << 40,
            "The most memory that compiling a plugin may take";
        tenant_compiled_bytes_max: u64 = "4294967296", 64 << 10..=1 << 50,
            "The most compiled code that the plugins of one tenant may have on the server's disk; an \
             upload that goes over it is refused";
        asset_bytes_max: u64 = "67108864", 1 << 10..=1 << 40,
            "The largest asset, a file of a tenant that its plugins open";
        tenant_asset_bytes_max: u64 = "268435456", 1 << 10..=1 << 50,
            "The most memory for the files that the plugins of one tenant open: its assets, with all \
             versions that stay, and what its plugins bring in their folder assets";
        runtimes_directory: PathBuf = none, Any,
            "The folder with the shared runtimes of languages, such as python.wasm; if unset, the \
             folder runtimes or share/gristmill/runtimes beside the server's program or one folder \
             above. Without a runtime, plugins that are archives of sources are refused";
        prepare_runtimes: bool = "true", Any,
            "Compile the shared runtimes when the server starts, beside serving, if they are not \
             compiled yet. If false, the first plugin that needs one waits for it: some seconds";
        compile_concurrency: usize = "2", 1..=64,
            "Plugins that are compiled at the same time; further ones wait";
    }
}

section! {
    /// The limits of an upload, of a release's samples, and of what is kept.
    Uploads {
        keep_releases: u64 = "1000", 1..=1 << 32,
            "The last releases that are kept, at least: older ones, and the files that only they \
             name, are removed, and cannot be gone back to";
        upload_bytes_max: usize = "8589934592", 1 << 10..=1 << 40,
            "The largest model that can be uploaded; a plugin has at most 1 GiB of it";
        waiting_bytes_max: usize = "8589934592", 1 << 10..=1 << 50,
            "The most bytes of uploaded files that wait for a release, or for more parts";
        upload_timeout["upload_timeout_s"]: Duration = "900", 1..=86_400,
            "Seconds that an upload may take; an upload that sends nothing for 30 seconds is \
             refused earlier";
        samples_timeout["samples_timeout_s"]: Duration = "60", 1..=3600,
            "Seconds that all samples of the pipelines that a change touches may take; if they take \
             longer, the change is refused";
    }
}

section! {
    /// How many connections there may be, and how long they may wait.
    ConnectionLimits {
        connections_max: usize = none, 16..=1 << 24,
            "Connections of the data plane and gRPC at the same time; if all are taken, those that \
             have waited longest for a request are closed. If unset, it follows from the limit on \
             open files";
        connections_per_client_max: usize = none, 1..=1 << 24,
            "Connections of one client to the data plane and gRPC. A client is an IPv4 address or \
             an IPv6 network of 64 bits. If unset, half of connections_max, and at least 16. Behind \
             a proxy all clients have its address: set it to connections_max there";
        header_timeout["header_timeout_s"]: Duration = "30", 1..=3600,
            "Seconds that a connection may wait for a request, and that a request's headers may take \
             to arrive";
        write_timeout["write_timeout_s"]: Duration = "30", 1..=3600,
            "Seconds for which a client may read almost nothing of its answers before its \
             connection is closed";
    }
}

section! {
    /// How long the end of the server may take.
    Shutdown {
        shutdown_delay["shutdown_delay_s"]: Duration = "5", 0..=3600,
            "Seconds for which a server continues to serve after a signal to end, while /readyz \
             says that it is not ready";
        drain_timeout["drain_timeout_s"]: Duration = "30", 0..=3600,
            "Seconds that a shutdown waits for requests under way";
    }
}

section! {
    /// Metrics, and what tenants use.
    Metrics {
        metrics_listen: SocketAddr = none, Any,
            "Address of a plane that answers the metrics at /metrics without a token; if unset, they \
             are on the admin plane alone, for tokens with the role read or admin";
        metrics_pipelines_max: usize = "100", 0..=10_000,
            "Pipelines with metrics of their own: those with the most requests. All others stand \
             together as _other. Each takes about 25 KB of a scrape";
        push_metrics_s: u64 = none, 1..=3600,
            "Seconds between two pushes of all metrics to otlp_endpoint, by otlp_protocol; if unset, none \
             are pushed";
        keep_usage_days: u64 = "366", 1..=3660,
            "Days for which the usage of tenants is kept, hour by hour";
    }
}

section! {
    /// Traces.
    Traces {
        otlp_endpoint: HttpUrl = none, Any,
            "URL of an OpenTelemetry collector, such as http://collector:4317, to which traces, and \
             metrics with push_metrics_s, are sent; if unset, nothing is traced. OTEL_EXPORTER_OTLP_HEADERS, OTEL_SERVICE_NAME and \
             OTEL_RESOURCE_ATTRIBUTES are read as OpenTelemetry says";
        otlp_protocol: OtlpProtocol = "grpc", Any,
            "How they are sent: grpc, or http (protobuf, to /v1/traces and /v1/metrics below the URL)";
        trace_ratio: f64 = "0.01", 0.0..=1.0,
            "The share of requests that are traced, 0 to 1, if a request brings no traceparent that \
             decides. Slow and failed requests are kept besides, up to 20 a second of each tenant";
        trace_slow_ms: u64 = "1000", 1..=3_600_000,
            "Milliseconds after which a request is slow enough to be traced in any case";
    }
}

section! {
    /// Log lines.
    Logging {
        log: LogFilter = "info,ort=warn", Any,
            "The lines that are logged: error, warn, info, debug, trace, or a filter such as \
             info,gristmill_http=debug";
        log_format: LogFormat = "text", Any,
            "The format of log lines: text or json";
        access_log: bool = "false", Any,
            "Whether each request has a line in the log, with the target access";
        slow_request_ms: u64 = none, 1..=3_600_000,
            "Milliseconds after which a request has a line of its own with the times of its stages, \
             up to ten in ten seconds; if unset, none has";
    }
}
